package export

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/pcap"
)

// pduWriter writes a capture (pcapng) with a packet for each message: its envelope behind tags that
// say how Wireshark shows it (LINKTYPE_WIRESHARK_UPPER_PDU; the tags are those of
// wsutil/exported_pdu_tlvs.h there).
type pduWriter struct {
	w     io.Writer
	begun error // of writing the beginning
}

const linkUpperPDU = 252

// mostOfPacket is the longest packet of this link type that Wireshark reads, in bytes, its tags
// included.
const mostOfPacket = 256 << 10

// Tags of such packets. Each has a length, which is a multiple of four.
const (
	tagEnd             = 0
	tagDissector       = 12
	tagSource4         = 20 // those of the receiver, and of IPv6, come after it
	tagSource6         = 22
	tagTransport       = 24
	tagSourcePort      = 25
	tagDestinationPort = 26
	tagPacket          = 30 // number of the packet that the message was in
	tagProtocol        = 33 // text of the column
	tagInfo            = 36 // likewise
)

// Values of tagTransport.
const (
	overTCP = 2
	overUDP = 3
)

func newPDUs(w io.Writer) *pduWriter {
	_, err := w.Write(pcap.AppendHead(nil, "hhfr", "hhfr decode", linkUpperPDU))
	return &pduWriter{w: w, begun: err}
}

// Add implements [Export]. What is not whole is written, too, with its state.
func (p *pduWriter) Add(m facts.Asked, wanted bool) (written bool, err error) {
	if p.begun != nil || !wanted {
		return false, p.begun
	}
	info := infoOf(m)
	b := tagsOf(m, info)
	tags := len(b)
	body := &headOf{b: b}
	if err := m.WriteBody(body); err != nil {
		return false, err
	}
	when := m.First
	if when.IsZero() {
		when = time.Unix(0, 0)
	}
	_, err = p.w.Write(pcap.AppendPacket(nil, pcap.PacketRecord{
		Time: when, Data: body.b, Length: tags + body.all,
		Comments: []string{info}, // for versions that do not know the tag
	}))
	return true, err
}

// Close implements [Export].
func (p *pduWriter) Close() error { return p.begun }

// headOf is the beginning of a packet: as much as is read.
type headOf struct {
	b   []byte
	all int // length of what was written, in bytes
}

// Write implements [io.Writer].
func (h *headOf) Write(b []byte) (int, error) {
	h.all += len(b)
	h.b = append(h.b, b[:min(len(b), mostOfPacket-len(h.b))]...)
	return len(b), nil
}

// tagsOf are those of a message.
func tagsOf(m facts.Asked, info string) []byte {
	dissector := "data"
	if start := bytes.TrimSpace(bytes.TrimPrefix(m.Body, []byte("\uFEFF"))); bytes.HasPrefix(start, []byte("<")) {
		dissector = "xml"
	}
	b := appendTag(nil, tagDissector, []byte(dissector))
	if m.Src.IsValid() {
		b = appendAddresses(b, m.Src.Addr(), m.Dst.Addr())
		transport := uint32(overTCP)
		if capture.IsUDP(m.Decoded) {
			transport = overUDP
		}
		b = appendNumber(b, tagTransport, transport)
		b = appendNumber(b, tagSourcePort, uint32(m.Src.Port()))
		b = appendNumber(b, tagDestinationPort, uint32(m.Dst.Port()))
	}
	if m.Packet > 0 {
		b = appendNumber(b, tagPacket, uint32(m.Packet))
	}
	protocol := "SOAP"
	if m.HHFR {
		protocol = "hhfr"
	}
	b = appendTag(b, tagProtocol, []byte(protocol))
	b = appendTag(b, tagInfo, []byte(info))
	return appendTag(b, tagEnd, nil)
}

// infoOf is what the list of packets says of a message.
func infoOf(m facts.Asked) string {
	const longest = 512 // characters
	number := "-"       // of a negotiation
	if m.Number > 0 {
		number = strconv.Itoa(m.Number)
	}
	list := []string{number, m.Kind, cmp.Or(m.Operation.Local, "-")}
	if status := m.Status(); status > 0 {
		list = append(list, strconv.Itoa(status))
	}
	if m.Took > 0 {
		list = append(list, fmt.Sprintf("%.1f ms", m.Took.Seconds()*1000))
	}
	list = append(list, m.State.String())
	if m.Why != "" {
		list = append(list, "("+m.Why+")")
	}
	if fault := m.Fault(); fault != "" {
		list = append(list, "fault", fault)
	}
	return printing.Shorten(strings.Join(list, " "), longest)
}

func appendAddresses(b []byte, src, dst netip.Addr) []byte {
	src, dst = src.Unmap(), dst.Unmap()
	tag := uint16(tagSource4)
	if src.Is6() {
		tag = tagSource6
	}
	return appendTag(appendTag(b, tag, src.AsSlice()), tag+1, dst.AsSlice())
}

func appendNumber(b []byte, tag uint16, n uint32) []byte {
	return appendTag(b, tag, binary.BigEndian.AppendUint32(nil, n))
}

// appendTag appends a tag. Texts are filled up with zeros.
func appendTag(b []byte, tag uint16, value []byte) []byte {
	fill := -len(value) & 3
	b = binary.BigEndian.AppendUint16(b, tag)
	b = binary.BigEndian.AppendUint16(b, uint16(len(value)+fill))
	return append(append(b, value...), make([]byte, fill)...)
}
