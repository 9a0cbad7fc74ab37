package wire_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/workload"
)

// shelf is where the shapes of one end are.
type shelf struct {
	mu     sync.Mutex
	shapes map[shape.Fingerprint]*program.Program
}

func newShelf() *shelf { return &shelf{shapes: map[shape.Fingerprint]*program.Program{}} }

func (s *shelf) Find(fp shape.Fingerprint) *program.Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shapes[fp]
}

func (s *shelf) Keep(one *shape.Shape) *program.Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.shapes[one.Fingerprint()]; p != nil {
		return p
	}
	p := program.Compile(one)
	s.shapes[one.Fingerprint()] = p
	return p
}

func (s *shelf) named(name [8]byte) *program.Program {
	s.mu.Lock()
	defer s.mu.Unlock()
	for fp, p := range s.shapes {
		if frame.NameOf(fp) == name {
			return p
		}
	}
	return nil
}

// peer is what an encoder knows of the peer. believed: it was said to have these.
type peer struct{ sure, believed map[shape.Fingerprint]bool }

func newPeer() *peer {
	return &peer{sure: map[shape.Fingerprint]bool{}, believed: map[shape.Fingerprint]bool{}}
}

func (p *peer) Has(fp shape.Fingerprint) (has, sure bool) {
	return p.sure[fp] || p.believed[fp], p.sure[fp]
}
func (p *peer) Learned(s *program.Program) { p.sure[s.Shape().Fingerprint()] = true }

// segment is a piece of a part's content.
type segment struct {
	content []byte
	text    bool
}

// contentOf splits a message by a shape, in segments of at most most octets; no program: as text.
func contentOf(t testing.TB, p *program.Program, message []byte, most int) (all []segment) {
	t.Helper()
	if p == nil {
		for {
			n := min(most, len(message))
			all = append(all, segment{content: message[:n]})
			if message = message[n:]; len(message) == 0 {
				return all
			}
		}
	}
	var s program.Splitter
	s.Reset(p, most, false, func(text bool, content []byte) error {
		all = append(all, segment{bytes.Clone(content), text})
		return nil
	})
	require.NoError(t, s.Split(message))
	return all
}

// sending is a message on its way: what is left of it.
type sending struct {
	wire.Outgoing
	head, body         []byte
	headBy, bodyBy     *program.Program
	headLeft, bodyLeft []segment
	bodyBegun          bool
	apart              bool // no frame has both of head and body
	content            int
}

var origin = frame.Origin{Session: [16]byte{1, 2, 3}, Representation: frame.Binary, Stages: wire.Columns | wire.Memory |
	wire.Zstd | wire.Plain}

var hello = frame.Hello{Session: origin.Session, Token: make([]byte, frame.TokenLen), Word: [8]byte{9, 8, 7},
	Representation: frame.Binary,
	Limits: frame.Limits{MaxFragment: 16384, MaxMessage: 1 << 30, MaxShapes: 1024, MaxShapeBytes: 4 << 20,
		MaxExchanges: 100, Window: 1 << 20, Far: true}}

// line is a direction: an encoder, and what it has written.
type line struct {
	t       testing.TB
	enc     *wire.Encoder
	peer    *peer
	now     time.Time
	stages  uint64
	tape    []byte
	numbers map[[2]uint64]uint64 // last exchange by lane and R
	sent    map[frame.Key]*sending
}

func newLine(t testing.TB, cfg wire.EncoderConfig, stages uint64) *line {
	h := hello
	h.Stages = stages
	l := &line{t: t, stages: stages, peer: newPeer(), now: time.Unix(1e9, 0), numbers: map[[2]uint64]uint64{},
		sent: map[frame.Key]*sending{}}
	cfg.Origin, cfg.Word = frame.OriginOf(h), h.Word
	if cfg.Peer == nil {
		cfg.Peer = l.peer
	}
	if cfg.Limits.MaxFragment == 0 {
		cfg.Limits = h.Limits
	}
	l.tape = h.AppendTo(nil)
	l.enc = wire.NewEncoder(cfg, len(l.tape), l.now)
	return l
}

// take takes what was written.
func (l *line) take() {
	total := 0
	for _, w := range l.enc.Written() {
		total += w.Octets
	}
	require.Equal(l.t, len(l.enc.Bytes()), total)
	l.tape = append(l.tape, l.enc.Bytes()...)
	l.enc.Reset()
}

// begin makes a message ready to be sent.
func (l *line) begin(lane uint64, reply bool, head, body []byte, headBy, bodyBy *program.Program) *sending {
	r := uint64(0)
	if reply {
		r = 1
	}
	l.numbers[[2]uint64{lane, r}]++
	s := &sending{Outgoing: wire.Outgoing{Key: frame.Key{Lane: lane, Reply: reply, Exchange: l.numbers[[2]uint64{lane,
		r}]}}, head: head, body: body, headBy: headBy, bodyBy: bodyBy}
	most := l.enc.MaxSegment()
	if head != nil {
		s.headLeft = contentOf(l.t, headBy, head, most)
	}
	s.bodyLeft = contentOf(l.t, bodyBy, body, most)
	l.sent[s.Key] = s
	return s
}

// announce has a shape announced, to the end.
func (l *line) announce(lane uint64, part *wire.Part, head bool) {
	if t := l.enc.Announce(lane, part, head, l.now); t != nil {
		for !l.enc.Piece(t, l.now) {
			continue
		}
	}
}

// next sends the next fragment of a message; false: it is whole.
func (l *line) next(s *sending) bool {
	var head, body wire.Part
	if len(s.headLeft) > 0 {
		head = wire.Part{There: true, Program: s.headBy, Content: s.headLeft[0].content, Last: len(s.headLeft) == 1}
		s.headLeft = s.headLeft[1:]
		if !s.Begun() {
			l.announce(s.Lane, &head, true)
		}
	}
	both := !s.apart && len(head.Content)+len(s.bodyLeft[0].content) <= l.enc.MaxSegment()
	if len(s.headLeft) == 0 && (!head.There || both) {
		body = wire.Part{There: true, Program: s.bodyBy, Content: s.bodyLeft[0].content, Text: s.bodyLeft[0].text,
			Last: len(s.bodyLeft) == 1}
		s.bodyLeft = s.bodyLeft[1:]
		if !s.bodyBegun {
			l.announce(s.Lane, &body, false)
		}
		s.bodyBegun = true
	}
	s.content += len(head.Content) + len(body.Content)
	last := len(s.bodyLeft) == 0
	require.NoError(l.t, l.enc.Data(&s.Outgoing, &head, &body, last, l.now))
	l.take()
	return !last
}

// whole sends a message.
func (l *line) whole(s *sending) {
	for l.next(s) {
		continue
	}
}

// receivedShapes is a message that was decoded, and joined as far as it came.
type receivedShapes struct {
	*wire.IncomingMessage
	joins      [2]*program.Joiner
	head, body []byte
	err        error
	content    int // of head and body
	whole      bool
	state      string
}

// reader decodes a direction.
type reader struct {
	dec      *wire.Decoder
	messages []*receivedShapes
	verdicts []wire.Verdict
	lacks    []uint64
	passed   int
	closed   bool
}

func newReader(cfg wire.DecoderConfig) *reader { return &reader{dec: wire.NewDecoder(cfg)} }

// read decodes as much of b as there are whole frames, and gives what is left of it.
func (r *reader) read(b []byte) ([]byte, error) {
	for len(b) > 0 {
		f, err := r.dec.Next(b)
		if err != nil {
			return b, err
		}
		if f.Octets == 0 {
			return b, nil
		}
		if f.Passed {
			r.passed += f.Octets
		}
		for i := range f.Events {
			r.event(&f.Events[i])
		}
		b = b[f.Octets:]
	}
	return b, nil
}

func (r *reader) event(ev *wire.Event) {
	of := func() *receivedShapes { return ev.Message.User.(*receivedShapes) }
	switch ev.Kind {
	case wire.Fragment:
		if ev.First {
			m := &receivedShapes{IncomingMessage: ev.Message}
			ev.Message.User = m
			r.messages = append(r.messages, m)
		}
		m := of()
		if ev.Err != nil {
			m.err = ev.Err
		}
		if m.err == nil {
			m.head, m.err = m.join(0, m.head, &ev.Head)
		}
		if m.err == nil {
			m.body, m.err = m.join(1, m.body, &ev.Body)
		}
		m.content += len(ev.Head.Content) + len(ev.Body.Content)
		if m.whole = ev.Last; m.whole {
			own := *ev.Message // the decoder may use it again
			m.IncomingMessage = &own
		}
	case wire.Settled:
		if m := of(); m.err == nil && m.joins[1] != nil {
			m.body, m.err = m.joins[1].Settle(m.body, int64(ev.Settled))
		}
	case wire.Cancelled, wire.Lost, wire.Dropped:
		if ev.Message != nil && ev.Message.User != nil {
			of().state = map[wire.EventKind]string{wire.Cancelled: "cancelled", wire.Lost: "lost",
				wire.Dropped: "dropped"}[ev.Kind]
		}
	case wire.Lacks:
		r.lacks = append(r.lacks, ev.Number)
	case wire.Synced:
		r.settle(ev.Verdict)
	case wire.Closed:
		r.settle(ev.Verdict)
		r.closed = true
	default:
	}
}

func (r *reader) settle(v wire.Verdict) {
	r.verdicts = append(r.verdicts, v)
	for _, m := range r.messages {
		if m.Number <= v.From || m.Number > v.To || !v.Known {
			continue
		}
		if m.state = "verified"; !v.Right {
			m.state = "withdrawn"
		}
	}
}

func (m *receivedShapes) join(i int, dst []byte, p *wire.Part) ([]byte, error) {
	if !p.There {
		return dst, nil
	}
	if p.Program == nil {
		return append(dst, p.Content...), nil
	}
	if p.First {
		m.joins[i] = new(program.Joiner)
		m.joins[i].Reset(p.Program)
	}
	return m.joins[i].Join(dst, p.Content, p.Text, p.Last)
}

// kind is a kind of message with the shape of its bodies, and messages.
type kind struct {
	head   []byte
	headBy *program.Program
	by     *program.Program
	bodies [][]byte
}

// kinds are messages of all sorts, with shapes that a shelf has.
func kinds(t testing.TB, s *shelf) (all []kind) {
	t.Helper()
	keep := func(m []byte, learn func([]byte) (*shape.Shape, error)) *program.Program {
		one, err := learn(m)
		require.NoError(t, err)
		return s.Keep(one)
	}
	head := []byte("POST /a HTTP/1.1\r\nContent-Type: text/xml\r\nAuthorization: Bearer 17\r\n\r\n")
	headBy := keep(head, learn.FromHead)
	add := func(bodies ...[]byte) {
		all = append(all, kind{by: keep(bodies[0], learn.FromMessage), bodies: bodies})
		if len(all)%2 == 0 {
			all[len(all)-1].head, all[len(all)-1].headBy = head, headBy
		}
	}
	for _, messages := range [][][]byte{take(12, workload.Floats(1, 10)), take(5, workload.Records(1, 20)), take(8,
		workload.Headers(1)), take(2, workload.Records(1, 500)), take(2, workload.Floats(1, 1000))} {
		add(messages...)
	}
	for _, path := range shared.Files(t, shared.Testdata(t, "soap"),
		func(p string) bool { return filepath.Ext(p) == ".xml" }) {
		b := shared.Read(t, path)
		add(b, bytes.ReplaceAll(b, []byte("1"), []byte("7")))
	}
	noise := make([]byte, 40000)
	rnd := rand.New(rand.NewPCG(2, 3))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	return append(all, kind{bodies: [][]byte{nil, []byte("no XML"), bytes.Repeat([]byte("ab "), 9000), noise}})
}

func take(n int, messages func(yield func([]byte) bool)) (list [][]byte) {
	for m := range messages {
		list = append(list, bytes.Clone(m))
		if n--; n == 0 {
			return list
		}
	}
	return list
}

func (m *receivedShapes) String() string {
	return fmt.Sprintf("%s number %d %s %v, %d + %d octets", m.Key, m.Number, m.state, m.err, len(m.head), len(m.body))
}
