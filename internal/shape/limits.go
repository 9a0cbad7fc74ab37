package shape

const (
	// maxDepth bounds recursion over trees that come from a peer (wire-format section 9).
	maxDepth = 200
	// maxSerialization bounds one shape, in bytes: the text around values of a message kind; real
	// ones have a few hundred to some ten thousand.
	maxSerialization = 1 << 20
	// MaxSlots bounds prefix slots of one shape: a message has one per generated declaration,
	// arrays of records share theirs.
	MaxSlots = 4096
	// maxFixedRows bounds min = max arrays: rows that need no content cost a joiner work that no
	// content pays for.
	maxFixedRows = 1 << 20
)
