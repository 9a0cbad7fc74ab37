package items

const (
	// MaxColumn bounds the rows of one group of a column (wire-format section 10.5).
	MaxColumn = 4096
	// MaxGroup bounds the rows of one group of an array: seven bits.
	MaxGroup = 127
)
