//go:build !race

package shared

// Raced reports whether this is built with the race detector.
const Raced = false
