package xsd

const (
	// MaxDocument is the longest document, in bytes: the largest WSDL in use that is known has 3
	// MB.
	MaxDocument = 32 << 20
	// MaxDocuments is how many documents a description may consist of.
	MaxDocuments = 1000
	// maxTotal bounds all documents of a description together, in bytes.
	maxTotal = 128 << 20
	// maxDepth bounds the nesting of elements in a document.
	maxDepth = 256
	// maxAttrs is how many attributes an element may have.
	maxAttrs = 256
	// maxTag bounds a tag, in bytes, with what stands in its attributes.
	maxTag = 1 << 20
	// maxElements bounds the elements of a document, and twice as many those of a description: the
	// largest WSDL in use that is known has some 50,000.
	maxElements = 500_000
	// maxParticles bounds the content model of one type, in which groups stand as often as they are
	// used: the largest that is known has some 900.
	maxParticles = 20_000
	// maxMembers bounds the types that a simple type is made of, with those of these.
	maxMembers = 20_000
	// maxInAll bounds what all types of a description contain together, with what they take from
	// their bases, and the members of all substitution groups.
	maxInAll = 2_000_000
	// maxProblems is how many problems are kept.
	maxProblems = 1000
)
