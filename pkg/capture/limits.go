package capture

const (
	// maxShapes and maxShapeOctets bound the shapes that stand under numbers of one direction: more than fit a sync, and four times
	// what a hello states by default.
	maxShapes      = 1 << 13
	maxShapeOctets = 16 << 20
	// maxCandidates bounds the sync frames looked at to find a direction's word.
	maxCandidates = 1 << 16
	// maxProblems bounds the texts kept about one direction.
	maxProblems = 100
	// defaultMaxMessage bounds one joined message, head and body, in octets.
	defaultMaxMessage = 1 << 30
)
