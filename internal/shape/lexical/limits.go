package lexical

const (
	// MaxScale bounds the digits after a point (wire-format section 10).
	MaxScale = 18
	// MaxMantissa bounds |m| of a number outside columns, exclusive, so that 8·zigzag(m) + 7 fits
	// 64 bits.
	MaxMantissa = 1 << 59
	// MaxZigzag bounds the zigzag form of such a number, exclusive.
	MaxZigzag = 2*MaxMantissa - 1
	// MaxPrefix bounds a generated prefix, in bytes (wire-format section 10.2).
	MaxPrefix = 64
)
