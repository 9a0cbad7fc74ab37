package columns

const (
	// maxMemory bounds what a [Memory] holds, in bytes as it counts them (wire-format section
	// 11.6).
	maxMemory = 96 << 10
	// shapeWeight, placeWeight and entryWeight are what a shape, each place of it, and a word or
	// text beside its own bytes count for, in bytes: what they take.
	shapeWeight = 192
	placeWeight = 64
	entryWeight = 8
	// maxPlaces is how many places a shape may have that is remembered.
	maxPlaces = 1024
	// maxRecalled bounds a text or a byte string that is remembered as the one before, in bytes.
	maxRecalled = 4096
	// spareOctets is how much more room than it needs what is remembered of a place may have, in
	// bytes, beside as much as it needs.
	spareOctets = 64
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
