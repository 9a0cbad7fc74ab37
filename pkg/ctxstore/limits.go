package ctxstore

const (
	// MaxURI is the length of the longest URI, in bytes: what HTTP servers accept in a request
	// line, rounded down.
	MaxURI = 2048
	// MaxValue is the length of the longest value, in bytes: four times the shapes that one stream
	// keeps by default.
	MaxValue = 16 << 20
	// DefaultMaxBytes is the default space that an engine takes for values, in bytes. Beyond it the
	// least recently used shapes are dropped.
	DefaultMaxBytes = 256 << 20
	// MaxShapeBytes is the space that an engine on this machine gives to shapes, in bytes, of
	// whatever space it has: the rest is for what cannot be dropped, as messages under a guarantee.
	MaxShapeBytes = 256 << 20
)
