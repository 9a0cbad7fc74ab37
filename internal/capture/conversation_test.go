package capture_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

// knowing is a peer that has only what it was sent.
type knowing map[shape.Fingerprint]bool

func (k knowing) Has(fp shape.Fingerprint) (has, sure bool) { return k[fp], k[fp] }
func (k knowing) Learned(p *program.Program)                { k[p.Shape().Fingerprint()] = true }

// talk is a stream whose directions are made by encoders, at once or as packets.
type talk struct {
	t    testing.TB
	enc  [2]*wire.Encoder
	said [2][]byte
	took [2]int // bytes that were taken as packets
}

// timeZero is a moment at which no sync is due.
var timeZero time.Time

const allStages = wire.Columns | wire.Memory | wire.Zstd

func newTalk(t testing.TB, session byte) *talk {
	return newTalkOf(t, func(h *frame.Hello) {
		if h.Session[0] = session; !h.Responder {
			h.Token = make([]byte, frame.TokenLen)
		}
	})
}

// newTalkOf has hellos that are edited before they are sent.
func newTalkOf(t testing.TB, edit func(*frame.Hello)) *talk {
	x := &talk{t: t}
	for i := range x.enc {
		h := frame.Hello{
			Responder:      i == 1,
			Word:           [8]byte{9, 8, byte(i)},
			Representation: frame.Binary,
			Stages:         allStages,
			Limits: frame.Limits{
				MaxFragment:   16384,
				MaxMessage:    1 << 40,
				MaxShapes:     1024,
				MaxShapeBytes: 4 << 20,
				MaxExchanges:  1000,
			},
		}
		edit(&h)
		x.said[i] = h.AppendTo(nil)
		x.enc[i] = wire.NewEncoder(wire.EncoderConfig{Origin: frame.OriginOf(h), Word: h.Word, Peer: knowing{},
			Limits: h.Limits}, len(x.said[i]), time.Time{})
	}
	return x
}

// message sends a message in one direction, under a shape or, with none, as text.
func (x *talk) message(dir int, m wire.Outgoing, p *program.Program, body []byte) {
	e := x.enc[dir]
	var s program.Splitter
	type piece struct {
		content []byte
		text    bool
	}
	var pieces []piece
	if p == nil {
		pieces = []piece{{body, false}}
	} else {
		if t := e.Announce(0, &wire.Part{Program: p}, false, time.Time{}); t != nil {
			for !e.Piece(t, timeZero) {
				continue
			}
		}
		s.Reset(p, e.MaxSegment(), false, func(text bool, content []byte) error {
			pieces = append(pieces, piece{bytes.Clone(content), text})
			return nil
		})
		require.NoError(x.t, s.Split(body))
	}
	for i, one := range pieces {
		last := i == len(pieces)-1
		part := wire.Part{There: true, Program: p, Content: one.content, Text: one.text, Last: last}
		require.NoError(x.t, e.Data(&m, &wire.Part{}, &part, last, time.Time{}))
	}
	x.take(dir)
}

func (x *talk) take(dir int) {
	x.said[dir] = append(x.said[dir], x.enc[dir].Bytes()...)
	x.enc[dir].Reset()
}

func (x *talk) close() {
	for i, e := range x.enc {
		e.Close(frame.CloseDone, "")
		x.take(i)
	}
}

// calls makes so many exchanges on lanes, a request and its reply each.
func (x *talk) calls(n int, p *program.Program, body func(i int) []byte) {
	for i := range n {
		k := frame.Key{Lane: uint64(i % 3), Exchange: uint64(i/3 + 1)}
		x.message(0, wire.Outgoing{Key: k}, p, body(i))
		k.Reply = true
		x.message(1, wire.Outgoing{Key: k}, p, body(i))
	}
}

// packets writes a capture of raw IPv4.
type packets struct {
	t    testing.TB
	file bytes.Buffer
	w    *pcapgo.NgWriter
	at   time.Time
}

func newPackets(t testing.TB) *packets {
	p := &packets{t: t, at: time.Unix(1e9, 0)}
	var err error
	p.w, err = pcapgo.NewNgWriter(&p.file, layers.LinkTypeRaw)
	require.NoError(t, err)
	return p
}

func (p *packets) bytes() []byte {
	require.NoError(p.t, p.w.Flush())
	return p.file.Bytes()
}

// connection is one of them.
type connection struct {
	*packets
	port uint16
	seq  [2]uint32
}

// Flags of TCP.
const (
	flagFIN, flagSYN, flagACK = 1, 2, 16
)

func (p *packets) connect(port uint16) *connection {
	c := &connection{p, port, [2]uint32{100, 200}}
	c.segment(0, flagSYN, nil)
	c.segment(1, flagSYN|flagACK, nil)
	return c
}

func (c *connection) segment(dir int, flags byte, b []byte) {
	h := make([]byte, 40, 40+len(b))
	h[0], h[8], h[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(h[2:], uint16(40+len(b)))
	ends := [2][4]byte{{192, 0, 2, 1}, {192, 0, 2, 2}}
	ports := [2]uint16{c.port, 80}
	copy(h[12:], ends[dir][:])
	copy(h[16:], ends[1-dir][:])
	binary.BigEndian.PutUint16(h[20:], ports[dir])
	binary.BigEndian.PutUint16(h[22:], ports[1-dir])
	binary.BigEndian.PutUint32(h[24:], c.seq[dir])
	binary.BigEndian.PutUint32(h[28:], c.seq[1-dir])
	h[32], h[33] = 5<<4, flags
	c.seq[dir] += uint32(len(b))
	if flags&(flagSYN|flagFIN) != 0 {
		c.seq[dir]++
	}
	c.at = c.at.Add(time.Millisecond)
	n := len(h) + len(b)
	require.NoError(c.t,
		c.w.WritePacket(gopacket.CaptureInfo{Timestamp: c.at, CaptureLength: n, Length: n}, append(h, b...)))
}

// carry sends what was written and not sent yet, at most so many bytes per packet.
func (c *connection) carry(x *talk, most int) {
	for dir := range x.said {
		for x.took[dir] < len(x.said[dir]) {
			b := x.said[dir][x.took[dir]:]
			b = b[:min(len(b), most)]
			x.took[dir] += len(b)
			c.segment(dir, flagACK, b)
		}
	}
}

func (c *connection) end() {
	c.segment(0, flagFIN|flagACK, nil)
	c.segment(1, flagFIN|flagACK, nil)
}

// learned compiles the shape of a message.
func learned(t testing.TB, message []byte) *program.Program {
	s, err := learn.FromMessage(message)
	require.NoError(t, err)
	return program.Compile(s)
}
