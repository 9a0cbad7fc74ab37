package capture

import (
	"bytes"
	"net/netip"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxAsked bounds the messages over UDP that later ones may be about.
const maxAsked = 4096

// soapDatagrams reads the SOAP messages that are datagrams (SOAP-over-UDP 1.1), as those of
// WS-Discovery.
type soapDatagrams struct {
	seen  map[string]datagramMessage // by their MessageID
	order []string
}

type datagramMessage struct {
	number, packet int
	src            netip.AddrPort
}

// isEnvelope reports whether a datagram is a message.
func isEnvelope(b []byte) bool {
	start := bytes.TrimLeft(b, "\xEF\xBB\xBF \t\r\n")
	return len(start) > 0 && start[0] == '<' && soap.Recognize(b).Version != soap.None
}

// place returns the number of a message: that of the one which it answers, or which it repeats, in
// packet first; otherwise the next.
func (s *soapDatagrams) place(m datagramMessage, body []byte, next func() int) (number int, reply bool, first int) {
	id, about := addressing(body)
	earlier, again := s.seen[id]
	asked, answers := s.seen[about]
	switch {
	case again && earlier.src == m.src:
		return earlier.number, false, earlier.packet
	case answers:
		m.number, reply = asked.number, true
	default:
		m.number = next()
	}
	if again || id == "" {
		return m.number, reply, 0
	}
	if s.seen == nil {
		s.seen = map[string]datagramMessage{}
	}
	if s.order = append(s.order, id); len(s.order) > maxAsked {
		delete(s.seen, s.order[0])
		s.order = s.order[1:]
	}
	s.seen[id] = m
	return m.number, reply, 0
}

// addressing returns what WS-Addressing says of a message: its id, and that of the message which it
// is about.
func addressing(body []byte) (id, about string) {
	e, err := soap.Parse(body, soap.Limits{})
	if err != nil {
		return "", ""
	}
	for i := range e.Header {
		block := &e.Header[i]
		switch block.Name.Space {
		case xmlns.WSA, xmlns.WSA200408, xmlns.WSA200403:
		default:
			continue
		}
		switch block.Name.Local {
		case "MessageID":
			id = strings.TrimSpace(block.Text)
		case "RelatesTo":
			about = strings.TrimSpace(block.Text)
		}
	}
	return id, about
}
