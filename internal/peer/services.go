// Package peer has services to test and measure with, and a [Server] that offers them in plain SOAP
// and over negotiated streams alike. Services are handlers of net/http, which know nothing of
// streams.
package peer

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Service is one test service, with what is known about it. Its functions are called concurrently.
type Service struct {
	// Path is where the service stands, beginning with a slash.
	Path string
	// Handler answers what is posted there.
	Handler http.Handler
	// WSDL makes the description, WSDL 1.1, document/literal wrapped, for SOAP 1.1 and 1.2;
	// location is the URL it is to name. nil: there is none.
	WSDL func(location string) []byte
	// Document is a document that the description imports, at ?wsdl=N from 1; nil: it is none. The
	// field may be nil, too.
	Document func(location string, n int) []byte
	// Example is an envelope that the service answers without a fault; nil: it takes any.
	Example []byte
	// ReplySchema describes replies that are no faults; answers to offers have it. nil: nothing
	// does.
	ReplySchema *schema.Schema
	// Transactional: Handler puts the effects of a message that came in a sequence into its
	// transaction (responder.TxOf).
	Transactional bool
	// Verbatim: Handler reads no envelopes. Those in Fast Infoset come as they are, to all others
	// as XML; replies of these go in Fast Infoset where the request was, or accepts it.
	Verbatim bool
	// Attend, if given, does something with each stream negotiated at Path, in a goroutine of its
	// own. It ends soon after ctx is done.
	Attend func(ctx context.Context, stream *streamer.Stream)
}

// Services finds services by their paths. It is immutable.
type Services struct {
	byPath    map[string]Service
	contracts map[string]func() *typed.Contract // of those that have a description
	machine   func() experiment.Computer        // nil: it is not told
	queues    []string                          // whose requests are answered, too
}

// AtQueues returns the same services, whose descriptions name these queues.
func (s *Services) AtQueues(names []string) *Services {
	other := *s
	other.queues = names
	return &other
}

// Telling returns the same services, with a JSON object at [experiment.MachinePath] for a GET: what
// machine says.
func (s *Services) Telling(machine func() experiment.Computer) *Services {
	other := *s
	other.machine = machine
	return &other
}

// NewServices makes a registry. Errors: BadConfig, for a path that stands twice or does not begin
// with a slash.
func NewServices(services ...Service) (*Services, error) {
	s := &Services{byPath: make(map[string]Service, len(services)), contracts: map[string]func() *typed.Contract{}}
	for _, service := range services {
		if s.Has(service.Path) || !strings.HasPrefix(service.Path, "/") {
			return nil, &Error{Code: BadConfig, Err: fmt.Errorf("service path %q", service.Path)}
		}
		s.byPath[service.Path] = service
		if service.WSDL != nil {
			s.contracts[service.Path] = service.compiled()
		}
	}
	return s, nil
}

// Has reports whether a service stands at path.
func (s *Services) Has(path string) bool {
	_, ok := s.byPath[path]
	return ok
}

// At gives the service at path; zero if there is none.
func (s *Services) At(path string) Service { return s.byPath[path] }

// Paths lists the paths of all services, sorted.
func (s *Services) Paths() []string {
	paths := make([]string, 0, len(s.byPath))
	for p := range s.byPath {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// ServeHTTP has the service at the path of a request serve it. A GET gives its description.
func (s *Services) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r, nil, nil) }

func (s *Services) serve(w http.ResponseWriter, r *http.Request, streams *wsdl.DeclaredStreams, policy []byte) {
	tracked := *r
	tracked.Body = &trackedBody{ReadCloser: r.Body, ended: r.ContentLength == 0}
	r = &tracked
	service, ok := s.byPath[r.URL.Path]
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		s.describe(w, r, streams, policy)
	case !ok:
		sendText(w, r, http.StatusNotFound, "no service here\n")
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		sendText(w, r, http.StatusMethodNotAllowed, "SOAP is posted here\n")
	default:
		// Without it net/http reads the request's body to its end, and drops it, before the first
		// byte of the reply. A writer that cannot do it (HTTP/2 needs not) says so, and is used as
		// it is.
		_ = http.NewResponseController(w).EnableFullDuplex()
		if service.Verbatim {
			service.Handler.ServeHTTP(w, r)
			return
		}
		withInfosets(service.Handler).ServeHTTP(w, r)
	}
}
