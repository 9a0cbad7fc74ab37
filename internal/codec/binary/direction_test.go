package binary_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

// shapes is a store of shapes in memory.
type shapes struct {
	mu     sync.Mutex
	octets map[binary.Fingerprint][]byte
	broken bool
	gets   int
}

func (s *shapes) Get(_ context.Context, fp binary.Fingerprint) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if b, ok := s.octets[fp]; ok {
		return b, nil
	}
	return nil, errors.New("not there")
}

func (s *shapes) Put(_ context.Context, b []byte) (binary.Fingerprint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return binary.Fingerprint{}, errors.New("no space left")
	}
	if s.octets == nil {
		s.octets = map[binary.Fingerprint][]byte{}
	}
	fp := sha256.Sum256(b)
	s.octets[fp] = bytes.Clone(b)
	return fp, nil
}

// end is one end of a direction.
type end struct {
	store shapes
	book  *binary.Book
	coder *binary.Coder
}

func newEnd(opt binary.Options) *end {
	e := &end{}
	e.book = binary.NewBook(&e.store)
	e.coder = e.book.Coder(opt)
	return e
}

// direction carries messages from one end to the other without a stream, in one goroutine: an
// encoder with a decoder behind it, between two coders. They agree on the stages that both
// coders do.
type direction struct {
	repeated  int // heads that were not cut
	from, to  *end
	enc       *wire.Encoder
	dec       *wire.Decoder
	now       time.Time
	exchanges map[uint64]uint64 // the latest of each lane
	arriving  map[frame.Key]*passing
	lacks     []uint64

	full, references int // bytes of shapes in full, references to others
	content, payload int // bytes of content, and of the payloads that it travels in
	texts            int // segments of text
}

var limits = frame.Limits{MaxFragment: 16384, MaxMessage: 1 << 30, MaxShapes: 1024, MaxShapeBytes: 4 << 20,
	MaxExchanges: 100, Window: 1 << 20}

// newDirection is a direction between two ends that know nothing.
func newDirection(t testing.TB, opt binary.Options) *direction {
	return between(t, newEnd(opt), newEnd(opt), limits)
}

// between is a direction from one end to another that has limits.
func between(t testing.TB, from, to *end, limits frame.Limits) *direction {
	h := frame.Hello{Session: [16]byte{1}, Token: make([]byte, frame.TokenLen), Word: [8]byte{2},
		Representation: frame.Binary, Stages: from.coder.Stages() & to.coder.Stages(), Limits: limits}
	octets := h.AppendTo(nil)
	d := &direction{from: from, to: to, now: time.Unix(1e9, 0)}
	d.exchanges, d.arriving = map[uint64]uint64{}, map[frame.Key]*passing{}
	cfg := wire.EncoderConfig{Origin: frame.OriginOf(h), Word: h.Word, Peer: from.coder, Limits: limits}
	d.enc = wire.NewEncoder(cfg, len(octets), d.now)
	d.dec = wire.NewDecoder(wire.DecoderConfig{Shapes: to.coder, MaxShapes: int(limits.MaxShapes),
		MaxShapeOctets: int64(limits.MaxShapeBytes), MaxHeld: 1 << 20, Scratch: true, Reuse: true})
	_, err := d.dec.Next(octets)
	require.NoError(t, err)
	return d
}

// passing is a message on its way, and what of it is there.
type passing struct {
	wire.Outgoing
	t     testing.TB
	d     *direction
	split wire.SplitStep
	most  int
	begun [2]bool
	held  wire.Part // the last segment of the head: it goes with the first of the body

	frames     [][]byte // data frames that it travelled in
	joins      [2]*program.Joiner
	head, body []byte
	whole      bool
	took       func(body []byte) // if given, it gets what comes of the body
}

// begin begins a message of a lane in segments of at most most bytes.
func (d *direction) begin(t testing.TB, lane uint64, most int) *passing {
	d.exchanges[lane]++
	m := &passing{t: t, d: d, most: most}
	m.Key, m.OneWay = frame.Key{Lane: lane, Exchange: d.exchanges[lane]}, true
	d.arriving[m.Key] = m
	m.split = d.from.coder.Split(lane, most, m.emit)
	return m
}

// emit has a segment travel.
func (m *passing) emit(head bool, p wire.Part) error {
	part := 1
	if head {
		part = 0
	}
	require.True(m.t, p.There)
	require.Equal(m.t, !m.begun[part], p.First)
	require.LessOrEqual(m.t, len(p.Content), max(m.most, program.MinSegment))
	require.False(m.t, head && m.begun[1], "the head comes first")
	m.begun[part] = true
	if p.Text || p.Program == nil {
		m.d.texts++
	}
	if p.Lasting {
		m.d.repeated++
	}
	var none wire.Part
	switch {
	case head:
		m.release()
		p.Content = bytes.Clone(p.Content)
		m.held = p
	case m.held.There && len(m.held.Content)+len(p.Content) <= m.d.enc.MaxSegment():
		held := m.held
		m.held = none
		m.fragment(&held, &p)
	default:
		m.release()
		m.fragment(&none, &p)
	}
	return nil
}

func (m *passing) release() {
	if m.held.There {
		var none wire.Part
		held := m.held
		m.held = none
		m.fragment(&held, &none)
	}
}

// fragment encodes segments with what must stand before them, and decodes that.
func (m *passing) fragment(head, body *wire.Part) {
	d := m.d
	for i, p := range []*wire.Part{head, body} {
		if !p.First {
			continue
		}
		if transfer := d.enc.Announce(m.Lane, p, i == 0, d.now); transfer != nil {
			for !d.enc.Piece(transfer, d.now) {
				continue
			}
		}
	}
	require.NoError(m.t, d.enc.Data(&m.Outgoing, head, body, body.Last, d.now))
	d.read(m.t, m)
}

// read decodes what was encoded; m is the message that its data frames are of.
func (d *direction) read(t testing.TB, m *passing) {
	b := d.enc.Bytes()
	for _, w := range d.enc.Written() {
		octets := b[:w.Octets]
		d.count(t, w, octets)
		if w.Kind == frame.KindData {
			m.frames = append(m.frames, bytes.Clone(octets))
		}
		f, err := d.dec.Next(octets)
		require.NoError(t, err)
		require.Equal(t, w.Octets, f.Octets)
		for i := range f.Events {
			d.event(t, &f.Events[i])
		}
		b = b[w.Octets:]
	}
	require.Empty(t, b)
	d.enc.Reset()
	for len(d.lacks) > 0 {
		transfer := d.enc.Lacks(d.lacks[0])
		require.NotNil(t, transfer)
		d.lacks = d.lacks[1:]
		for !d.enc.Piece(transfer, d.now) {
			continue
		}
		d.read(t, m)
	}
}

func (d *direction) count(t testing.TB, w wire.Written, octets []byte) {
	switch w.Kind {
	case frame.KindData:
		d.content += w.Content
		d.payload += w.Payload
	case frame.KindShape:
		f, _, err := frame.Parse(octets, w.At, 0)
		require.NoError(t, err)
		if s := f.(frame.Shape); s.Form == frame.Reference {
			d.references++
		} else {
			d.full += len(s.Piece)
		}
	default:
	}
}

func (d *direction) event(t testing.TB, ev *wire.Event) {
	switch ev.Kind {
	case wire.Fragment:
		m := d.arriving[ev.Message.Key]
		require.NoError(t, ev.Err)
		m.head = m.join(0, m.head, &ev.Head)
		m.arrived(m.join(1, m.body, &ev.Body))
		if m.whole = ev.Last; m.whole {
			delete(d.arriving, m.Key)
		}
	case wire.Settled:
		m := d.arriving[ev.Message.Key]
		body, err := m.joins[1].Settle(m.body, int64(ev.Settled))
		require.NoError(t, err)
		m.arrived(body)
	case wire.Lacks:
		d.lacks = append(d.lacks, ev.Number)
	case wire.Synced:
		require.True(t, ev.Verdict.Known && ev.Verdict.Right)
	default:
		require.Failf(t, "unexpected event", "%v", ev)
	}
}

func (m *passing) join(i int, dst []byte, p *wire.Part) []byte {
	switch {
	case !p.There:
		return dst
	case p.Program == nil:
		return append(dst, p.Content...)
	case p.First:
		m.joins[i] = new(program.Joiner)
		m.joins[i].Reset(p.Program)
	}
	dst, err := m.joins[i].Join(dst, p.Content, p.Text, p.Last)
	require.NoError(m.t, err)
	return dst
}

func (m *passing) arrived(body []byte) {
	if m.body = body; m.took != nil {
		m.took(body)
		m.body = body[:0]
	}
}

// write goes on with the body.
func (m *passing) write(octets []byte) { require.NoError(m.t, m.split.Write(octets)) }

// flush has what was written so far arrive.
func (m *passing) flush(force bool) {
	settled, err := m.split.Flush(force)
	require.NoError(m.t, err)
	m.release()
	if settled > 0 {
		require.NoError(m.t, m.d.enc.Flush(&m.Outgoing, settled, m.d.now))
		m.d.read(m.t, m)
	}
}

// close ends the body.
func (m *passing) close() {
	require.NoError(m.t, m.split.Close())
	m.over()
}

func (m *passing) over() {
	m.split.Free()
	require.True(m.t, m.whole, "a body has at least one segment")
}

// send has a message of lane 0 travel whose body is there as a whole, and gives what arrives;
// nil: it has no head.
func (d *direction) send(t testing.TB, head, body []byte, most int) (gotHead, gotBody []byte) {
	t.Helper()
	m := d.begin(t, 0, most)
	if head != nil {
		require.NoError(t, m.split.Head(head))
	}
	require.NoError(t, m.split.All(body))
	m.over()
	return m.head, m.body
}

// stream is send for a body that is written as it comes.
func (d *direction) stream(t testing.TB, head []byte, body io.Reader, most int) (gotHead, gotBody []byte) {
	t.Helper()
	m := d.begin(t, 0, most)
	if head != nil {
		require.NoError(t, m.split.Head(head))
	}
	m.copy(body)
	return m.head, m.body
}

// copy writes a body to its end.
func (m *passing) copy(body io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := body.Read(b)
		m.write(b[:n])
		clear(b[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(m.t, err)
	}
	m.close()
}

// carry has a message without a head arrive as it was.
func (d *direction) carry(t testing.TB, message []byte) {
	t.Helper()
	_, got := d.send(t, nil, message, 4096)
	requireSame(t, message, got, string(message[:min(len(message), 1000)]))
}

// onLane is carry for a message of a lane, in segments as long as they may be; it gives the
// frames that the message takes.
func (d *direction) onLane(t testing.TB, lane uint64, message []byte) (frames [][]byte) {
	t.Helper()
	m := d.begin(t, lane, d.enc.MaxSegment())
	require.NoError(t, m.split.All(message))
	m.over()
	requireSame(t, message, m.body, string(message[:min(len(message), 1000)]))
	return m.frames
}

// sync has a sync travel.
func (d *direction) sync(t testing.TB) {
	d.enc.Sync(d.now)
	d.read(t, nil)
}

func requireSame(t testing.TB, want, got []byte, what string) {
	t.Helper()
	if !bytes.Equal(want, got) {
		t.Fatalf("%s: %d octets became %d", what, len(want), len(got))
	}
}

// enveloped makes a body long enough that its shape goes with the first of its kind.
func enveloped(m string) []byte {
	const begin, end = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`,
		`</s:Body></s:Envelope>`
	return []byte(begin + m + end)
}

// drop is for who wants no segments.
func drop(bool, wire.Part) error { return nil }
