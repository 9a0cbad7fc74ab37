package columns

const (
	// maxMemory bounds what a [Memory] holds beside words and texts, in bytes as it counts them
	// (wire-format section 11.6).
	maxMemory = 96 << 10
	// placeWeight is what a place of a shape counts for, in bytes.
	placeWeight = 64
	// maxPlaces is how many places a shape may have that is remembered.
	maxPlaces = 1024
	// maxRecalled bounds a text or a byte string that is remembered as the one before, in bytes.
	maxRecalled = 4096
	// maxWords and maxTexts are how many words and texts a memory has at most.
	maxWords = 1 << 11
	maxTexts = 1 << 8
	// shortestRef and longestRef bound what is entered in a memory, in bytes.
	shortestRef = 3
	longestRef  = 40
	// maxWorded bounds a text that is taken apart into words, in bytes.
	maxWorded = 4096
	// maxCounted bounds the digits of a number within a text that is counted on.
	maxCounted = 18
	// maxStep bounds the step from one such number to the next.
	maxStep = 1e18
	// maxFew bounds the values of a column of numbers that has a dictionary.
	maxFew = 16
	// maxAligned bounds a number at the largest scale of its column.
	maxAligned = 1 << 62
)
