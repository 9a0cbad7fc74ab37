package shape

const (
	// maxDepth bounds recursion over trees that come from a peer (wire-format section 9).
	maxDepth = 200
	// maxSerialization bounds one shape, in octets: the text around values of a message kind; real ones have a few hundred to some ten thousand.
	maxSerialization = 1 << 20
	// maxDeclaration is how long an XML declaration may be that a shape holds, in octets.
	maxDeclaration = 256
	// maxSlots bounds prefix slots of one shape: a message has one per generated declaration, arrays of records share theirs.
	maxSlots = 4096
	// maxPrefix bounds a generated prefix, in octets (wire-format section 10.2).
	maxPrefix = 64
	// maxSegmentJoined bounds what one segment joins to, in octets (wire-format section 10): memory of a joiner.
	maxSegmentJoined = 4 << 20
	// segmentCut is where a splitter ends a segment whatever its size, in octets of message, well below maxSegmentJoined.
	segmentCut = 1 << 20
	// maxColumn bounds the rows of one group of a column (wire-format section 10.5).
	maxColumn = 4096
	// maxGroup bounds the rows of one group of an array: seven bits.
	maxGroup = 127
	// maxScale bounds the digits after a point (wire-format section 10).
	maxScale = 18
	// maxMantissa bounds |m| of a number outside columns, exclusive, so that 8·zigzag(m) + 7 fits 64 bits.
	maxMantissa = 1 << 59
	maxZigzag   = 2*maxMantissa - 1 // exclusive, of such a number
	// maxLeaf bounds how much of a value without an end a splitter looks at before it lets go of it in pieces, in octets.
	maxLeaf = 4096
	// maxException bounds the text of a row of a column that is no number, in octets, so that it fits any segment.
	maxException = 100
	// maxFixedRows bounds min = max arrays: rows that need no content cost a joiner work that no content pays for.
	maxFixedRows = 1 << 20
)
