// Package facts is what filters and lists ask of a message: what it says itself, and what its
// exchange tells of it.
package facts

import (
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/filter"
)

// Asked is a message with what its exchange tells of it.
type Asked struct {
	*capture.Decoded
	// Kind is request, reply, interim or one-way; Call the operation of the request that it is, or
	// belongs to.
	Kind, Call string
	// Took is how long a reply took from the first byte of its request; 0: that is not known.
	Took time.Duration
}

// KindOf is the kind of a message, as filters name it.
func KindOf(m *capture.Decoded) string {
	switch {
	case m.Interim:
		return "interim"
	case m.Reply:
		return "reply"
	case m.OneWay:
		return "one-way"
	}
	return "request"
}

// Candidate is the message as filters see it.
func (m Asked) Candidate() filter.Candidate {
	return filter.Candidate{
		Number: m.Number, Packet: m.Packet, Status: m.Status(), Operation: m.Operation.Local,
		Session: m.SessionString(), Kind: m.Kind, Call: m.Call, State: m.State.String(), Fault: m.Fault(),
		Client: m.Client(), Server: m.Server(), Source: m.Src, Target: m.Dst,
		BodyOctets: m.BodyOctets, WireOctets: m.Wire, Duration: m.Took, Time: m.First, HHFR: m.HHFR,
		Head: m.Head, Body: m.Body,
	}
}

// Status is that of a reply in HTTP; 0: it has none.
func (m Asked) Status() int {
	switch {
	case !m.Reply:
		return 0
	case len(m.Head) == 0 && m.HHFR:
		return 200 // of the default head (negotiation.md, section 4)
	}
	_, rest, _ := strings.Cut(string(m.Head[:min(len(m.Head), 32)]), " ")
	code, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(strings.TrimSpace(code))
	return n
}

// Fault is the code and the reason of a fault; empty for other messages.
func (m Asked) Fault() string {
	if !m.Reply || m.Operation.Local != "Fault" {
		return ""
	}
	return capture.FaultText(m.Body)
}

// mostWaiting bounds the requests that are remembered.
const mostWaiting = 4096

// SeenRequests are those that were seen last, of which replies need to know.
type SeenRequests struct {
	seen  map[int]begunRequest
	order []int
}

type begunRequest struct {
	at        time.Time
	operation string
}

// Of is what is known of the request to a reply: how long that took from its first byte (0: not
// known), and its operation. Of a request it is its own operation.
func (d *SeenRequests) Of(m *capture.Decoded) (took time.Duration, operation string) {
	if !m.Reply {
		d.note(m)
		return 0, m.Operation.Local
	}
	r, ok := d.seen[m.Number]
	if !ok || m.Number == 0 {
		return 0, ""
	}
	if !r.at.IsZero() && !m.Last.IsZero() {
		took = max(m.Last.Sub(r.at), 1)
	}
	return took, r.operation
}

func (d *SeenRequests) note(m *capture.Decoded) {
	if m.Number == 0 || m.OneWay {
		return
	}
	if d.seen == nil {
		d.seen = map[int]begunRequest{}
	}
	if _, ok := d.seen[m.Number]; !ok {
		d.order = append(d.order, m.Number)
	}
	d.seen[m.Number] = begunRequest{m.First, m.Operation.Local}
	if len(d.order) > mostWaiting {
		delete(d.seen, d.order[0])
		d.order = d.order[1:]
	}
}
