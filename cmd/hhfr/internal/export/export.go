// Package export writes messages of captures in forms that other programs read: HTTP archives (HAR
// 1.2), and commands of a shell that send them with curl.
package export

import (
	"bytes"
	"io"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/replay"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Export writes messages as they come. It is not safe for concurrent use.
type Export struct {
	w       io.Writer
	service func(*capture.Decoded) capture.Endpoint
	archive *archive // nil: curl
}

// New returns a writer of the form har or curl. service says where messages of streams went.
func New(w io.Writer, form string, service func(*capture.Decoded) capture.Endpoint) *Export {
	e := &Export{w: w, service: service}
	if form == "har" {
		e.archive = &archive{w: w, waiting: map[int]*harEntry{}}
	}
	return e
}

// Add takes a message. What is not whole, and what agrees on a session, is left out.
func (e *Export) Add(m chosen.Asked) error {
	if !m.Whole() || m.Number == 0 || m.Interim {
		return nil
	}
	var body bytes.Buffer
	if err := m.WriteBody(&body); err != nil {
		return err
	}
	if m.Reply {
		if e.archive != nil {
			return e.archive.reply(m, body.Bytes())
		}
		return nil
	}
	r, ok := e.request(m, body.Bytes())
	switch {
	case !ok:
		return nil
	case e.archive != nil:
		return e.archive.request(m, r)
	}
	return writeCurl(e.w, m, r)
}

// Close ends what was begun. It does not close the writer below.
func (e *Export) Close() error {
	if e.archive == nil {
		return nil
	}
	return e.archive.close()
}

// resendable is a request as it can be sent again.
type resendable struct {
	method, url string
	fields      []harField
	body        []byte
}

type harField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// request makes a request of a message, without the fields of one connection.
func (e *Export) request(m chosen.Asked, body []byte) (resendable, bool) {
	service := e.service(m.Decoded)
	octets, ok := replay.RequestHead(m.Decoded, service.Path)
	if !ok {
		return resendable{}, false
	}
	h, _, err := http1.ParseHead(octets, 0)
	if err != nil {
		return resendable{}, false
	}
	target := string(h.Target())
	if !strings.Contains(target, "://") {
		target = origin(m, service) + target
	}
	return resendable{string(h.Method()), target, fieldsOf(&h), body}, true
}

// origin is scheme, host and port of where a request went.
func origin(m chosen.Asked, service capture.Endpoint) string {
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
func replyHead(m chosen.Asked) (http1.Head, bool) {
	octets := m.Head
	if len(octets) == 0 {
		octets = negotiate.DefaultReplyHead()
	}
	h, _, err := http1.ParseHead(octets, 0)
	return h, err == nil && h.IsReply()
}
