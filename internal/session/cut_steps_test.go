//go:build !soak

package session_test

// entrySteps is how far apart the places are where connections are cut, in bytes.
const entrySteps = 181
