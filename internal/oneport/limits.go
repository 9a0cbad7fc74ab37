package oneport

import "time"

const (
	// DefaultSilence is how long a connection that says nothing is waited for: a hello leaves with
	// the connection, and TCP sends it again after a second, then two, then four where it is lost.
	DefaultSilence = 10 * time.Second
	// DefaultTimeout is how long a connection may take until it is clear what it is, the TLS
	// handshake included: many round trips of the slowest links.
	DefaultTimeout = 30 * time.Second
	// DefaultMaxSniffed is how many connections are looked at at once; each has a buffer of 16 KiB.
	DefaultMaxSniffed = 1024

	// maxAhead bounds what is read of a connection to find out what it is, in bytes: more than the
	// longest hello.
	maxAhead = 128 << 10
)
