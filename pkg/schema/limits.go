package schema

const (
	// MaxSchema is the longest schema, in bytes: it travels in an offer, which has 64 KiB.
	MaxSchema = 32 << 10
	// maxDepth bounds the nesting of elements in a message: shapes are learned up to 48, and an
	// envelope takes two.
	maxDepth = 40
	// maxNodes is how many elements and attributes a schema describes.
	maxNodes = 1024
	// maxItems is the longest fixed array: as many rows as a fixed array of a shape may have
	// (docs/wire-format.md, section 9).
	maxItems = 1 << 20
	// maxName is the longest name, in bytes.
	maxName = 256
	// maxDrifts is how many differences are reported for one message.
	maxDrifts = 32
	// maxMessage is the longest message made of values, in bytes.
	maxMessage = 64 << 20
)
