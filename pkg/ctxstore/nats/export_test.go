package nats

import "github.com/nats-io/nats.go"

var (
	KeyOf = keyOf
	URIOf = uriOf
)

// Filters returns the keys under which all URIs with a prefix are.
func Filters(prefix string) []string { return filters(prefix) }

// ReadState reads the fields of a message, and returns how long the value in parts is.
func ReadState(h nats.Header) (size int64, err error) {
	s, err := stateOf(h, 1)
	return s.parts.bytes, err
}

// ReadName returns the servers of a name.
func ReadName(text string) ([]string, error) {
	n, err := parse(text)
	return n.servers, err
}
