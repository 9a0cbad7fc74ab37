package program

const (
	// maxSegmentJoined bounds what one segment joins to, in bytes (wire-format section 10): memory
	// of a joiner.
	maxSegmentJoined = 4 << 20
	// segmentCut is where a splitter ends a segment whatever its size, in bytes of message: well
	// below maxSegmentJoined, and so little that to pack it takes a few milliseconds, for which
	// others wait.
	segmentCut = 256 << 10
	// maxLeaf bounds how much of a value without an end a splitter looks at before it lets go of it
	// in pieces, in bytes.
	maxLeaf = 4096
	// maxOwn is how much space a splitter keeps for what it cannot split yet, in bytes, unless it
	// needs it.
	maxOwn = 64 << 10
	// maxException bounds the text of a row of a column that is no number, in bytes, so that it
	// fits any segment.
	maxException = 100
)
