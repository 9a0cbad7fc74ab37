package bolt

// LockBeside is what Android needs beside bbolt's own lock; ErrLocked is how it gives up.
var (
	LockBeside = lockBeside
	ErrLocked  = errLocked
)
