package flow

// Reasons why a packet was not decoded, for [Stats.Undecoded]; an unknown link type has its number.
const (
	ReasonShort    = "header cut off"
	ReasonNotIP    = "not IP"
	ReasonNotTCP   = "neither TCP nor UDP"
	ReasonFragment = "fragment without the rest"
	ReasonHeader   = "malformed header"
	ReasonNested   = "nested too deep"
	// ReasonAggregate: several packets in one frame of 802.11.
	ReasonAggregate = "aggregate of 802.11"
)
