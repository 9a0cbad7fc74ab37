package capture

// Passes is how often inputs that can be read again are read, as a rule: to find out what later
// bytes say of earlier ones, and to give their messages. Long ones without streams are read once.
const Passes = 2

const (
	// maxShapes and maxShapeOctets bound the shapes that have numbers in one direction: more than
	// fit in a sync, and four times what a hello states by default.
	maxShapes      = 1 << 13
	maxShapeOctets = 16 << 20
	// maxScratch and maxJoiners bound what is kept for the next message.
	maxScratch = 8 << 20
	maxJoiners = 64
	// restAfter is the number of fragments after which the memories of unused lanes are made small.
	restAfter = 1024
	// maxKept bounds the shapes that are kept for later streams, in bytes of their programs.
	maxKept = 16 << 20
	// maxSessions bounds the sessions whose unchanging headers are remembered.
	maxSessions = 4096
	// maxLooks bounds the bytes of all connections together that may be frames.
	maxLooks = 4 << 20
	// maxSurveys bounds how often an input is read before its messages are given, until no more is
	// found out.
	maxSurveys = 3
	// lengthOfBeginning is how much of each input is surveyed before the messages of a long one are
	// given, in bytes: some hundredths of a second.
	lengthOfBeginning = 4 << 20
	// maxOffers bounds the negotiations of a connection that wait for an answer.
	maxOffers = 64
	// maxOpen bounds the messages of several frames that are begun and not whole, of all streams
	// together: as many as two proxies that take the default of exchanges from each other have open
	// in both directions. Beyond it the direction with the most loses its own.
	maxOpen = 1 << 14
	// maxProblems bounds the texts kept about one direction.
	maxProblems = 100
	// defaultMaxMessage bounds one joined message, head and body, in bytes.
	defaultMaxMessage = 1 << 30
)
