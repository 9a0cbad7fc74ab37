// Package peer has services to test and measure with, and a [Server] that offers them in plain SOAP and over negotiated streams alike. A
// service sees the same message by either way: an optional HTTP head and a body that streams.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Service is one test service. Its methods are called concurrently.
type Service interface {
	// Path is where the service stands, beginning with a slash.
	Path() string
	// Serve handles one request. A request without a head is a POST to the negotiated URL with the default fields; a reply without a head has the
	// default reply head (docs/negotiation.md, section 4). reply sends the one reply, and returns when its Body is read; it may read the
	// request's Body as it goes. Without a reply, and without an error, the request is answered as accepted; with an error, by a fault that
	// does not tell its text. The request's Body is not to be used after Serve returned.
	Serve(ctx context.Context, request *streamer.Message, reply func(*streamer.Message) error) error
}

// Services finds services by their paths. It is immutable.
type Services struct {
	byPath map[string]Service
	drift  *drift // nil: replies stay as they are
}

// NewServices makes a registry. Errors: BadConfig, for a path that stands twice or does not begin with a slash.
func NewServices(services ...Service) (*Services, error) {
	s := &Services{byPath: make(map[string]Service, len(services))}
	for _, svc := range services {
		path := svc.Path()
		if _, twice := s.byPath[path]; twice || !strings.HasPrefix(path, "/") {
			return nil, &Error{Code: BadConfig, At: -1, Err: fmt.Errorf("service path %q", path)}
		}
		s.byPath[path] = svc
	}
	return s, nil
}

// Has reports whether a service stands at path.
func (s *Services) Has(path string) bool {
	_, ok := s.byPath[path]
	return ok
}

// At gives the service at path; nil if there is none.
func (s *Services) At(path string) Service { return s.byPath[path] }

// ReplySchema describes the replies of the service at path; nil: nothing does.
func (s *Services) ReplySchema(path string) *schema.Schema {
	if r, ok := s.byPath[path].(Replying); ok {
		return r.ReplySchema()
	}
	return nil
}

// Paths lists the paths of all services, sorted.
func (s *Services) Paths() []string {
	paths := make([]string, 0, len(s.byPath))
	for p := range s.byPath {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// serve has a request served, and sees to it that it is answered once. Its error is why the answer did not get through whole; what a service
// says beside is told by a fault, or too late.
func (s *Services) serve(ctx context.Context, t target, request *streamer.Message, reply func(*streamer.Message) error) error {
	service, ok := s.byPath[t.path]
	switch {
	case t.method == http.MethodGet || t.method == http.MethodHead:
		return s.describe(t, reply)
	case !ok:
		return reply(errorReply(http.StatusNotFound, "no service here\n"))
	case t.method != http.MethodPost:
		return reply(errorReply(http.StatusMethodNotAllowed, "SOAP is posted here\n", soap.Field{Name: "Allow", Value: http.MethodPost}))
	}
	var replied bool
	var sent error
	failed := service.Serve(ctx, request, func(m *streamer.Message) error {
		if replied {
			return &Error{Code: Twice, At: -1}
		}
		replied = true
		if s.drift != nil {
			if m, sent = s.drift.alter(m); sent != nil {
				return sent
			}
		}
		sent = reply(m)
		return sent
	})
	switch {
	case replied:
		return sent
	case errors.Is(failed, &Error{Code: Slow}): // which ends ctx, too
		return reply(errorReply(http.StatusRequestTimeout, "the request's body came too slowly\n"))
	case ctx.Err() != nil:
		return ctx.Err()
	case failed == nil:
		return reply(&streamer.Message{Head: headOf(http.StatusAccepted)})
	}
	fault, err := soap.BuildFault(soap.V11, soap.Fault{Code: soap.Server, Reason: "the service failed"})
	if err != nil {
		return err
	}
	return reply(streamer.NewMessage(headOf(http.StatusInternalServerError, xmlType), fault))
}

var xmlType = soap.Field{Name: "Content-Type", Value: "text/xml; charset=utf-8"}

func errorReply(status int, text string, fields ...soap.Field) *streamer.Message {
	fields = append(fields, soap.Field{Name: "Content-Type", Value: "text/plain; charset=utf-8"})
	return streamer.NewMessage(headOf(status, fields...), []byte(text))
}

// headOf makes a reply's head. A field that cannot stand in a head is left out.
func headOf(status int, fields ...soap.Field) []byte {
	head, err := http1.AppendStatusLine(nil, "HTTP/1.1", status, http.StatusText(status))
	if err != nil {
		return negotiate.DefaultReplyHead()
	}
	for _, f := range fields {
		if longer, err := http1.AppendField(head, f.Name, f.Value); err == nil {
			head = longer
		}
	}
	return http1.AppendEnd(head)
}

// ServeExchange has an exchange of a stream served by the service at path, and answers it; it is what negotiate's responder calls.
func (s *Services) ServeExchange(ctx context.Context, path string, x *streamer.Exchange) {
	request := x.Message()
	t := targetOf(path, request.Head)
	// Whatever fails is known to the stream already, which tells the other end.
	_ = s.serve(ctx, t, request, func(m *streamer.Message) error {
		if x.OneWay() {
			return nil
		}
		return x.Reply(ctx, m)
	})
}
