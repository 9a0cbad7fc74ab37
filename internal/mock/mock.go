// Package mock answers the operations of a WSDL as a service would: with samples, or with replies
// from a folder. It opens no connection.
package mock

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/envelope"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Config says how a mock answers.
type Config struct {
	// Seed chooses samples. 0: each reply has every optional part, and is the same for all
	// requests; others: each request gets another choice, the same in each run.
	Seed uint64
	// Replies is a folder with replies in place of samples: OPERATION.xml is an envelope, and
	// OPERATION.json values as hhfr call prints them; empty: there is none.
	Replies string
	// Recorded are exchanges whose replies take the place of samples, and of Replies: each
	// request gets the next one of its operation, from the first again behind the last. nil:
	// there are none.
	Recorded []KnownReply
	// Match are paths of values (docs/values.md) that a request has in common with the one whose
	// reply it gets; nil: the operation is enough. A request that has nothing recorded gets a
	// fault, if its operation has.
	Match []string
	// Latency is how long each reply waits.
	Latency time.Duration
	// Fail is the share of requests that a fault answers, 0 to 1.
	Fail float64
	// Log gets a line for each request that is not as described; nil: nothing is logged.
	Log *slog.Logger
}

// Mock answers the operations of a description. It is safe for concurrent use.
type Mock struct {
	cfg     Config
	d       *wsdl.ServiceDescription
	replies map[string]reply // by operation

	recorded map[string]*recordedReplies // by operation
	met      map[string]bool             // of Match: requests had them

	mu      sync.Mutex // over all below, and the schemas of d
	r       *rand.Rand
	samples map[*wsdl.Operation][]byte // of seed 0
}

// New makes the mock of a description. Errors are those of files in the folder with replies: that
// they cannot be read, are of no operation, or are not as described.
func New(d *wsdl.ServiceDescription, cfg Config) (*Mock, error) {
	m := &Mock{
		cfg: cfg, d: d, samples: map[*wsdl.Operation][]byte{}, met: map[string]bool{},
		r: rand.New(rand.NewPCG(cfg.Seed, 1)), //nolint:gosec // no secret
	}
	if m.cfg.Log == nil {
		m.cfg.Log = slog.New(slog.DiscardHandler)
	}
	var err error
	if m.replies, err = m.read(cfg.Replies); err == nil {
		err = m.record(cfg.Recorded)
	}
	return m, err
}

// maxRequest bounds a request, in bytes.
const maxRequest = 64 << 20

// ServeHTTP answers a request.
func (m *Mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version := soap.V11
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/soap+xml") {
		version = soap.V12
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	var tooLong *http.MaxBytesError
	if err != nil && !errors.As(err, &tooLong) {
		return // the client is gone
	}
	status, answer := http.StatusOK, []byte(nil)
	op, body, err := m.asked(r, text, err)
	if err == nil && m.fails() {
		err = &soapFault{soap.Server, fmt.Errorf("this mock fails %g %% of its calls", 100*m.cfg.Fail)}
	}
	if err == nil {
		answer, status, err = m.answer(op, body)
	}
	if err != nil {
		fault := soap.Fault{Code: soap.Client, Reason: err.Error()}
		var own *soapFault
		if errors.As(err, &own) {
			fault.Code = own.code
		}
		if fault.Code == soap.VersionMismatch {
			version = versionOf(op)
			fault.Supported = []soap.Version{version}
		}
		status = soap.FaultStatus(version, fault.Code)
		if answer, err = soap.BuildFault(version, fault); err != nil {
			status = http.StatusInternalServerError
		}
	}
	select {
	case <-time.After(m.cfg.Latency):
	case <-r.Context().Done():
		return
	}
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if contentType, err := soap.ContentType(version, ""); err == nil {
		w.Header().Set("Content-Type", contentType)
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer) // a client that is gone needs none
}

// soapFault is an error that is not the sender's.
type soapFault struct {
	code soap.FaultCode
	error
}

func versionOf(op *wsdl.Operation) soap.Version {
	if op.SOAP == 12 {
		return soap.V12
	}
	return soap.V11
}

func (m *Mock) fails() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cfg.Fail > 0 && m.r.Float64() < m.cfg.Fail
}

// asked finds the operation of a request, and logs where the request is not as described.
func (m *Mock) asked(
	r *http.Request, text []byte, read error,
) (op *wsdl.Operation, body *xsd.DocumentNode, err error) {
	if read != nil {
		return nil, nil, read
	}
	tree, err := envelope.Parse("request", r.Header.Get("Content-Type"), text)
	if err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if op = m.find(tree, actionOf(r.Header)); op == nil {
		what := "an empty Body"
		if len(tree.Body.Children) > 0 {
			what = tree.Body.Children[0].Name.String()
		}
		return nil, nil, fmt.Errorf("no operation of the WSDL takes %s", what)
	}
	if op.SOAP != tree.SOAP {
		return op, nil, &soapFault{soap.VersionMismatch, fmt.Errorf("%s is of SOAP 1.%d alone", op.Name, op.SOAP-10)}
	}
	for _, misfit := range m.d.Check(tree.Root) {
		m.cfg.Log.Warn("request not as described", "operation", op.Name, "where", misfit.Path, "what", misfit.What)
	}
	return op, tree.Body, nil
}

// actionOf is the SOAP action of a request.
func actionOf(header http.Header) string {
	if action := soap.ParseAction(header.Get("SOAPAction")); action != "" {
		return action
	}
	_, params, _ := strings.Cut(header.Get("Content-Type"), "action=")
	action, _, _ := strings.Cut(params, ";")
	return strings.Trim(action, `" `)
}

// find finds the operation that takes a Body: of the version of SOAP and the action, if there is
// one, else of any.
func (m *Mock) find(t *envelope.Tree, action string) (best *wsdl.Operation) {
	most, got := 0, t.Body.Children
	for _, op := range m.d.Operations {
		if len(op.Problems) > 0 || op.Input == nil {
			continue
		}
		fits := 0
		switch parts := op.Input.Body; {
		case len(parts) > 0 && len(got) > 0 && parts[0].Name == got[0].Name:
			fits = 8
		case len(parts) == 0 && op.Input.BodyType == nil && len(got) == 0 && action == op.Action,
			len(parts) == 0 && op.Input.BodyType != nil && action != "" && action == op.Action:
			fits = 4
		default:
			continue
		}
		if action != "" && action == op.Action {
			fits += 2
		}
		if t.SOAP == op.SOAP {
			fits++
		}
		if fits > most {
			best, most = op, fits
		}
	}
	return best
}

// answer makes the reply to a request, and its status; nil: the operation has none.
func (m *Mock) answer(op *wsdl.Operation, body *xsd.DocumentNode) ([]byte, int, error) {
	if op.Output == nil {
		return nil, http.StatusAccepted, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.recorded[op.Name]; known != nil {
		return known.next(op, m.key(op, body))
	}
	if known, ok := m.replies[op.Name]; ok {
		status := http.StatusOK
		if known.fault {
			status = http.StatusInternalServerError
		}
		text, err := known.envelope(m.d, op)
		return text, status, err
	}
	text, err := m.sample(op)
	return text, http.StatusOK, err
}

// sample is a reply that nothing else says.
func (m *Mock) sample(op *wsdl.Operation) ([]byte, error) {
	seed := m.cfg.Seed
	if seed == 0 {
		if known := m.samples[op]; known != nil {
			return known, nil
		}
	} else {
		seed = m.r.Uint64() | 1
	}
	text, err := values.New(m.d.Set(), op.Output.Contents(), op.SOAP).Sample(seed)
	if err != nil {
		return nil, &soapFault{soap.Server, fmt.Errorf("no sample of %s was found: %w", op.Name, err)}
	}
	if m.cfg.Seed == 0 {
		m.samples[op] = text
	}
	return text, nil
}
