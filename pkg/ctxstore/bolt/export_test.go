package bolt

// LockBeside is what Android needs in addition to bbolt's own lock; ErrLocked is its error.
var (
	LockBeside = lockBeside
	ErrLocked  = errLocked
)

// Verify checks the pages of a file.
var Verify = verify
