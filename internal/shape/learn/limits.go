package learn

const (
	// maxDepth bounds the nesting of elements: each takes four levels or so of a tree that may have
	// 200.
	maxDepth = 48
	// maxDeclaration is how long an XML declaration may be that a shape holds, in bytes.
	maxDeclaration = 256
	// maxAlternatives bounds the alternatives of a choice, since a splitter tries one after the
	// other; an element with more in it has open content.
	maxAlternatives = 32
	// maxEntries bounds the elements that an element may have inside, alternatives of choices
	// counted each, so that siblings without order cannot make shapes without end.
	maxEntries = 256
	// maxFixed bounds the values of one attribute that are markup.
	maxFixed = 64
	// maxAlign bounds the work of one alignment.
	maxAlign = 1 << 18
	// guessWindow is how much of a long value is looked at, in bytes.
	guessWindow = 4096
	// heldMessage bounds the message that a family may keep because its texts are cut from it, in
	// bytes.
	heldMessage = 4096
)
