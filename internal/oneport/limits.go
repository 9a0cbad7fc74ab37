package oneport

import "time"

const (
	// DefaultSilence is how long a connection may be silent: a hello leaves with the connection,
	// and if it is lost TCP sends it again after one second, then two, then four.
	DefaultSilence = 10 * time.Second
	// DefaultTimeout is how long a connection may take until its kind is known, the TLS handshake
	// included: many round trips of the slowest links.
	DefaultTimeout = 30 * time.Second
	// DefaultMaxSniffed is how many connections are inspected at once; each has a buffer of 16 KiB.
	DefaultMaxSniffed = 1024
	// lastHandOut is how long a port that is closed waits for somebody to accept a connection of
	// which it has read something: who serves it can say why nothing is served.
	lastHandOut = 100 * time.Millisecond
	// maxAhead bounds the bytes that are read of a connection to detect its kind: more than the
	// longest hello.
	maxAhead = 128 << 10
)
