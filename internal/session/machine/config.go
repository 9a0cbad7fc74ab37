package machine

import "time"

// Config is what a session may do. It does not change.
type Config struct {
	// Asks: calls can ask for a stream.
	Asks bool
	// Sequenced: messages stand in a sequence, which waits for streams, and is not spoken in plain
	// SOAP.
	Sequenced bool
	// Required: messages wait for a stream, rather than that the next call asks for one.
	Required bool
	// Reconnect is for how long a session without a stream tries to get one, from the end of the
	// last; 0: one attempt for each node.
	Reconnect time.Duration
	// Nodes is how many nodes the service has, at least 1.
	Nodes int
	// Random returns a time below the given one: the clients of one server do not come back all at
	// once.
	Random func(time.Duration) time.Duration
}
