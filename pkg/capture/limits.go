package capture

const (
	// maxShapes and maxShapeOctets bound the shapes that stand under numbers of one direction: more than fit a sync, and four times
	// what a hello states by default.
	maxShapes      = 1 << 13
	maxShapeOctets = 16 << 20
	// maxScratch and maxJoiners bound what is kept for the next message.
	maxScratch = 8 << 20
	maxJoiners = 64
	// maxSurveys bounds how often an input is read before its messages are given, until no more is found out.
	maxSurveys = 3
	// maxOffers bounds the negotiations of a connection that wait for an answer.
	maxOffers = 64
	// maxProblems bounds the texts kept about one direction.
	maxProblems = 100
	// defaultMaxMessage bounds one joined message, head and body, in octets.
	defaultMaxMessage = 1 << 30
)
