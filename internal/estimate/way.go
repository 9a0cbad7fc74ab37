package estimate

import "slices"

// Way is how calls travel.
type Way string

// The ways.
const (
	// Plain is as captured.
	Plain Way = "plain"
	// Gzip is as captured, each body compressed by itself.
	Gzip Way = "gzip"
	// Zstd is as captured, each direction of each connection compressed as a whole.
	Zstd Way = "zstd"
	// FirstContact is through pairs that meet for the first time, MetBefore through pairs that had
	// a session with the same traffic before, Steady with the same traffic once more on the streams
	// that are open already.
	FirstContact Way = "first_contact"
	MetBefore    Way = "met_before"
	Steady       Way = "steady"
)

// Ways are all of them, in the order of reports.
func Ways() []Way { return []Way{Plain, Gzip, Zstd, FirstContact, MetBefore, Steady} }

const ways = 6

func (w Way) index() int { return slices.Index(Ways(), w) }
