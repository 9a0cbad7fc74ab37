package ctxstore

const (
	// MaxURI is the length of the longest URI, in bytes: what HTTP servers accept in a request
	// line, rounded down.
	MaxURI = 2048
	// MaxValue is the length of the longest value, in bytes: four times the shapes that one stream
	// keeps by default.
	MaxValue = 16 << 20
	// DefaultMaxBytes is the room an engine takes for values unless told otherwise, in bytes.
	// Beyond it the shapes that were not used for longest go.
	DefaultMaxBytes = 256 << 20
)
