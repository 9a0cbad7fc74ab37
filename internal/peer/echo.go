package peer

import (
	"context"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// EchoPath is where [Echo] stands.
const EchoPath = "/echo"

// Echo gives back the body of each request, octet for octet as it arrives, with the request's Content-Type (and Content-Encoding, if it has one)
// and status 200. It parses nothing: what is no SOAP comes back too.
func Echo() Service { return echo{} }

type echo struct{}

// Path is EchoPath.
func (echo) Path() string { return EchoPath }

// Serve replies with the request's own body.
func (echo) Serve(_ context.Context, request *streamer.Message, reply func(*streamer.Message) error) error {
	return reply(&streamer.Message{Head: echoHead(request.Head), Body: request.Body})
}

// echoHead is the reply's head for a request's; nil when the default reply head says the same.
func echoHead(request []byte) []byte {
	if request == nil {
		return nil
	}
	h, _, err := http1.ParseHead(request, 0)
	if err != nil {
		return nil
	}
	var fields []soap.Field
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		if v, ok := h.Get(name); ok {
			fields = append(fields, soap.Field{Name: name, Value: string(v)})
		}
	}
	if len(fields) == 1 && fields[0] == xmlType {
		return nil
	}
	return headOf(200, fields...)
}
