package capture

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxAsked bounds the messages over UDP that later ones may be about.
const maxAsked = 4096

// soapDatagrams finds the SOAP messages that are datagrams (SOAP-over-UDP 1.1), as those of
// WS-Discovery.
type soapDatagrams struct {
	reader *Reader
	seen   map[string]datagramMessage // by their MessageID
	order  []string
}

type datagramMessage struct {
	number, packet int
	src            netip.AddrPort
}

// take reads a datagram, and reports whether it is a message.
func (s *soapDatagrams) take(g flow.UDPDatagram) bool {
	if start := bytes.TrimLeft(g.Data, "\xEF\xBB\xBF \t\r\n"); len(start) == 0 || start[0] != '<' ||
		soap.Recognize(g.Data).Version == soap.None {
		return false
	}
	r := s.reader
	r.met(&flow.Flow{Src: g.Src, Dst: g.Dst})
	d := &Decoded{OneWay: true, Datagram: true, Src: g.Src, Dst: g.Dst, First: g.Time, Last: g.Time, Packet: g.PacketNo,
		Wire: int64(len(g.Data)), State: Unchecked, content: r.bodies.Body()}
	_, err := d.content.Write(g.Data)
	if err == nil {
		err = d.open()
	}
	switch {
	case err != nil:
		d.State, d.Why = Undecodable, err.Error()
	case g.Missing > 0:
		d.State, d.Why = Incomplete, flow.WhyCut.String()
	}
	d.recognize()
	s.number(d)
	r.give(d)
	return true
}

// number gives a message the number of the one that it answers, or repeats; otherwise its own.
func (s *soapDatagrams) number(d *Decoded) {
	id, about := addressing(d.Body)
	first, again := s.seen[id]
	asked, answers := s.seen[about]
	switch {
	case again && id != "" && first.src == d.Src:
		d.Number = first.number
		d.Why = fmt.Sprintf("sent again, first in packet %d", first.packet)
	case answers && about != "":
		d.Number, d.Reply, d.OneWay = asked.number, true, false
	default:
		d.Number = s.reader.numbers.next()
	}
	if again || id == "" {
		return
	}
	if s.seen == nil {
		s.seen = map[string]datagramMessage{}
	}
	if s.order = append(s.order, id); len(s.order) > maxAsked {
		delete(s.seen, s.order[0])
		s.order = s.order[1:]
	}
	s.seen[id] = datagramMessage{d.Number, d.Packet, d.Src}
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
