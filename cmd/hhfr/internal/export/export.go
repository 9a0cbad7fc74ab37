// Package export writes messages of captures in forms that other programs read: HTTP archives (HAR
// 1.2), commands of a shell that send them with curl, and captures with a packet for each message.
package export

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/replay"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Export writes messages in a form. It is not safe for concurrent use.
type Export interface {
	// Add takes a message, and reports whether anything was written. Messages that are not wanted
	// may belong to others that are.
	Add(m facts.Asked, wanted bool) (written bool, err error)
	// Close ends what was begun. It does not close the writer below.
	Close() error
}

// exchangeExport writes exchanges as they end.
type exchangeExport struct {
	w       io.Writer
	service func(*capture.Decoded) capture.Endpoint
	archive *archive // nil: curl

	waiting map[int]*resendable // for their replies, by the number of the exchange
	order   []int
	held    int // bytes of what waits
}

// maxHeld bounds what waits for replies, in bytes; then the oldest request has none. A request
// counts as its body and requestCost.
const (
	maxHeld     = 16 << 20
	requestCost = 2 << 10
)

// Forms are those of [New].
var Forms = []string{"har", "curl", "pcapng"}

// New returns an export in one of [Forms]. service says where messages of streams went.
func New(w io.Writer, form string, service func(*capture.Decoded) capture.Endpoint) Export {
	e := &exchangeExport{w: w, service: service, waiting: map[int]*resendable{}}
	switch form {
	case "pcapng":
		return newPDUs(w)
	case "har":
		e.archive = &archive{w: w}
	}
	return e
}

// resendable is a request that can be sent again.
type resendable struct {
	facts.Asked
	method, url string
	fields      []harField
	body        []byte
	wanted      bool // it is chosen itself
}

type harField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Add implements [Export]. An exchange is written if its request or its reply is wanted. What is
// not whole, and what agrees on a session, is left out.
func (e *exchangeExport) Add(m facts.Asked, wanted bool) (written bool, err error) {
	if !m.Whole() || m.Number == 0 || m.Interim {
		return false, nil
	}
	if m.Reply {
		return e.reply(m, wanted)
	}
	r, ok, err := e.request(m, wanted)
	if err != nil || !ok {
		return false, err
	}
	if m.OneWay {
		return wanted, e.write(r, nil, nil)
	}
	if e.waiting[m.Number] != nil {
		return false, nil // an exchange has one request
	}
	e.waiting[m.Number], e.order = r, append(e.order, m.Number)
	e.held += len(r.body) + requestCost
	for e.held > maxHeld && len(e.order) > 1 && err == nil {
		written, err = e.unanswered()
	}
	return written, err
}

// reply ends an exchange.
func (e *exchangeExport) reply(m facts.Asked, wanted bool) (written bool, err error) {
	r := e.taken(m.Number)
	if r == nil || !wanted && !r.wanted {
		return false, nil
	}
	r.wanted = true
	var body bytes.Buffer
	if e.archive != nil {
		err = m.WriteBody(&body)
	}
	if err == nil {
		err = e.write(r, &m, body.Bytes())
	}
	return true, err
}

// taken is the request of an exchange, which waits no longer; nil: none does.
func (e *exchangeExport) taken(number int) *resendable {
	r := e.waiting[number]
	if r != nil {
		delete(e.waiting, number)
		e.order = slices.DeleteFunc(e.order, func(n int) bool { return n == number })
		e.held -= len(r.body) + requestCost
	}
	return r
}

// unanswered ends the oldest exchange without a reply.
func (e *exchangeExport) unanswered() (written bool, err error) {
	r := e.taken(e.order[0])
	return r.wanted, e.write(r, nil, nil)
}

// write writes an exchange that is wanted. reply is nil if there is none.
func (e *exchangeExport) write(r *resendable, reply *facts.Asked, body []byte) error {
	switch {
	case !r.wanted:
		return nil
	case e.archive != nil:
		return e.archive.write(r, reply, body)
	}
	return writeCurl(e.w, r)
}

// Close implements [Export].
func (e *exchangeExport) Close() error {
	for len(e.order) > 0 {
		if _, err := e.unanswered(); err != nil {
			return err
		}
	}
	if e.archive == nil {
		return nil
	}
	return e.archive.close()
}

// request makes a request of a message, without the fields of one connection; false: it is none of
// HTTP.
func (e *exchangeExport) request(m facts.Asked, wanted bool) (*resendable, bool, error) {
	service := e.service(m.Decoded)
	octets, ok := replay.RequestHead(m.Decoded, service.Path)
	if !ok {
		return nil, false, nil
	}
	h, _, err := http1.ParseHead(octets, 0)
	if err != nil {
		return nil, false, nil //nolint:nilerr // it is none
	}
	target := string(h.Target())
	if !strings.Contains(target, "://") {
		target = origin(m, service) + target
	}
	var body bytes.Buffer
	err = m.WriteBody(&body)
	known := *m.Decoded // its head and frames are the reader's
	known.Body, known.Frames = nil, nil
	m.Decoded = &known
	return &resendable{m, string(h.Method()), target, fieldsOf(&h), body.Bytes(), wanted}, true, err
}

// origin is scheme, host and port of where a request went.
func origin(m facts.Asked, service capture.Endpoint) string {
	if service.Origin != "" {
		return service.Origin
	}
	if h, _, err := http1.ParseHead(m.Head, 0); err == nil {
		if host, ok := h.Get("Host"); ok && len(host) > 0 {
			return "http://" + string(host)
		}
	}
	if m.Dst.IsValid() {
		return "http://" + m.Dst.String()
	}
	return "http://unknown.invalid"
}

func fieldsOf(h *http1.Head) (list []harField) {
	list = []harField{}
	for _, f := range h.Fields() {
		list = append(list, harField{string(f.Name), string(f.Unfolded())})
	}
	return list
}

// replyHead is the head of a reply; that of a stream may be the default one.
func replyHead(m facts.Asked) (http1.Head, bool) {
	octets := m.Head
	if len(octets) == 0 {
		octets = negotiate.DefaultReplyHead()
	}
	h, _, err := http1.ParseHead(octets, 0)
	return h, err == nil && h.IsReply()
}
