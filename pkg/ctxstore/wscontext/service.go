package wscontext

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Config of a [ContextService].
type Config struct {
	// Store has the contexts. Required; it stays the caller's.
	Store ctxstore.Store
	// Admit decides who may use the service, by the request; its error is told to the client. nil
	// means [AdmitLoopback].
	Admit func(*http.Request) error
	// ReadOnly refuses whatever would change something.
	ReadOnly bool
	// Clock is the clock of lifetimes; nil means the machine's.
	Clock clock.Clock
	// Log receives what clients are not told about failures; nil: nothing is logged.
	Log *slog.Logger
}

// ContextService is the service as an [http.Handler], for SOAP 1.1 and 1.2; a GET of ?wsdl gives
// its description. Its methods are safe for concurrent use.
type ContextService struct {
	cfg     Config
	long    chan struct{}
	watches chan struct{}
	drained chan struct{} // closed when nobody is to wait any more
	drain   sync.Once
	// busy has whoever changes a context wait for whoever completes it; by hash of the URI.
	busy [64]sync.RWMutex
	seed maphash.Seed
}

// New returns a service for a store.
func New(cfg Config) (*ContextService, error) {
	if cfg.Store == nil {
		return nil, &ctxstore.Error{Code: ctxstore.Invalid, Err: errors.New("a service needs a store")}
	}
	if cfg.Admit == nil {
		cfg.Admit = AdmitLoopback
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &ContextService{
		cfg: cfg, long: make(chan struct{}, maxLong), watches: make(chan struct{}, maxWatches),
		drained: make(chan struct{}), seed: maphash.MakeSeed(),
	}, nil
}

// Drain has requests that wait for changes answered at once, now and later, so that a server that
// shuts down need not wait for them.
func (s *ContextService) Drain() { s.drain.Do(func() { close(s.drained) }) }

// of is the lock of a context.
func (s *ContextService) of(uri string) *sync.RWMutex {
	return &s.busy[maphash.String(s.seed, uri)%uint64(len(s.busy))]
}

// serviceOperation answers a request with an envelope. One that changes something is refused by a
// service that only reads.
type serviceOperation struct {
	changes bool
	answer  func(s *ContextService, ctx context.Context, m *soapMessage) (*envelopeWriter, error)
}

var operations = map[soap.Name]serviceOperation{
	std("begin"):       {true, (*ContextService).begin},
	std("complete"):    {true, (*ContextService).complete},
	std("getStatus"):   {false, (*ContextService).getStatus},
	std("setTimeout"):  {true, (*ContextService).setTimeout},
	std("getTimeout"):  {false, (*ContextService).getTimeout},
	std("getContents"): {false, (*ContextService).getContents},
	std("setContents"): {true, (*ContextService).setContents},
	own("delete"):      {true, (*ContextService).delete},
	own("watch"):       {false, (*ContextService).watch},
	own("about"):       {false, (*ContextService).about},
}

// ServeHTTP implements [http.Handler].
func (s *ContextService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.cfg.Admit(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	media := soap.ParseContentType(r.Header.Get("Content-Type"))
	switch {
	case r.Method == http.MethodGet && strings.EqualFold(r.URL.RawQuery, "wsdl"):
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = w.Write(Description(addressOf(r)))
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		http.Error(w, "a context service: POST an envelope, or get ?wsdl", http.StatusNotFound)
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "a context service takes POST", http.StatusMethodNotAllowed)
	case media.Version() == soap.None || strings.HasPrefix(media.Type, "multipart/"):
		// Pages of a browser may send other types anywhere without being asked.
		http.Error(w, "the Content-Type of an envelope is text/xml or application/soap+xml",
			http.StatusUnsupportedMediaType)
	case r.Header.Get("Content-Encoding") != "" && !strings.EqualFold(r.Header.Get("Content-Encoding"), "identity"):
		http.Error(w, "no content coding is known here", http.StatusUnsupportedMediaType)
	default:
		s.post(w, r, media)
	}
}

func (s *ContextService) post(w http.ResponseWriter, r *http.Request, media soap.Media) {
	body, release, err := s.read(w, r)
	defer release()
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		s.fault(w, media.Version(), &contextFault{
			fault: faultInvalid, reason: "the request is longer than " + strconv.Itoa(MaxRequest) + " bytes",
		})
		return
	case err != nil:
		panic(http.ErrAbortHandler) // nobody is there to be told
	}
	m, err := parseMessage(body)
	if err == nil && media.Charset != "" && media.Charset != "utf-8" && media.Charset != "us-ascii" {
		err = bad("the charset %.40q is not read, only UTF-8", media.Charset)
	}
	if err != nil {
		s.fault(w, media.Version(), err)
		return
	}
	s.answer(w, r, m)
}

// read reads a request. Few long ones are in memory at a time.
func (s *ContextService) read(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	release = func() {}
	if r.ContentLength > MaxRequest {
		return nil, release, &http.MaxBytesError{Limit: MaxRequest}
	}
	in := http.MaxBytesReader(w, r.Body, MaxRequest)
	if r.ContentLength >= 0 && r.ContentLength <= longRequest {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(in, body)
		return body, release, err
	}
	if body, err = io.ReadAll(io.LimitReader(in, longRequest)); err != nil || len(body) < longRequest {
		return body, release, err
	}
	select {
	case s.long <- struct{}{}:
		release = func() { <-s.long }
	case <-r.Context().Done():
		return nil, release, context.Cause(r.Context())
	}
	rest, err := io.ReadAll(in)
	return append(body, rest...), release, err
}

func (s *ContextService) answer(w http.ResponseWriter, r *http.Request, m *soapMessage) {
	if len(m.mandatory) > 0 {
		s.send(w, m.version, soap.Fault{
			Code: soap.MustUnderstand, Reason: "a mandatory header block is not understood", NotUnderstood: m.mandatory,
		})
		return
	}
	if m.name == own("list") {
		s.list(w, r, m)
		return
	}
	o, known := operations[m.name]
	var reply *envelopeWriter
	var err error
	switch {
	case !known:
		err = bad("%.200s is no operation of this service", m.name)
	case o.changes && s.cfg.ReadOnly:
		err = &contextFault{fault: faultNotGiven, reason: "this service only reads"}
	default:
		reply, err = o.answer(s, r.Context(), m)
	}
	if err != nil {
		s.fault(w, m.version, err)
		return
	}
	s.write(w, m.version, http.StatusOK, reply.end())
}

func (s *ContextService) write(w http.ResponseWriter, v soap.Version, status int, envelope []byte) {
	contentType, _ := soap.ContentType(v, "") // fails for an action only
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(envelope)))
	w.WriteHeader(status)
	_, _ = w.Write(envelope) // the client notices
}

func (s *ContextService) send(w http.ResponseWriter, v soap.Version, f soap.Fault) {
	envelope, err := soap.BuildFault(v, f)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.write(w, v, soap.FaultStatus(v, f.Code), envelope)
}

// fault answers with the fault that an error stands for.
func (s *ContextService) fault(w http.ResponseWriter, v soap.Version, err error) {
	var m *malformed
	if errors.As(err, &m) {
		f := soap.Fault{Code: m.code, Reason: m.reason}
		switch m.code {
		case soap.VersionMismatch:
			f.Supported = []soap.Version{soap.V12, soap.V11}
		default:
			f.Detail = []soap.Element{{Name: std(faultInvalid)}}
		}
		s.send(w, v, f)
		return
	}
	f, inside := refusalOf(err)
	if inside {
		s.cfg.Log.Warn("the context service could not answer", "err", err)
	}
	s.send(w, v, f.soap())
}

// addressOf is the URL of the service as the client names it.
func addressOf(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host + r.URL.Path
}
