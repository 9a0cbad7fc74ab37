package wire

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/columns"
	"github.com/hhfr/hhfr/pkg/shape/program"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Peer tells which shapes the peer has. It must be safe for concurrent use.
type Peer interface {
	// Has reports whether the peer has a shape; sure: this stream carried it, one way or the other.
	Has(fp shape.Fingerprint) (has, sure bool)
	// Learned notes that it has, for sure.
	Learned(p *program.Program)
}

// EncoderConfig says what an encoder is to do. It is copied.
type EncoderConfig struct {
	// Origin and Word are those of the direction's hello.
	Origin frame.Origin
	Word   [8]byte
	// Peer is required.
	Peer Peer
	// Refer has every shape announced by reference: whoever reads has the store.
	Refer bool
	// Limits are the peer's: MaxFragment, MaxShapes and MaxShapeBytes count here.
	Limits frame.Limits
	// Compression is shared with others; nil: with none.
	Compression *Compression
	// SyncBytes and SyncMessages bound what stands between two syncs; 0 means, and at most, 65,536 and 1,024.
	SyncBytes    int64
	SyncMessages int
	// SyncInterval bounds the time between two syncs of a direction that has messages; 0 means 15 minutes, below 0 time does not count.
	SyncInterval time.Duration
}

const (
	// defaultSyncInterval is how long a decoder that joins waits for a sync; soonestSync is from when on one is sent if it adds no
	// more than a syncShare-th part to what was sent. syncOctets is about what a sync has beside shapes, laneOctets what it has of a lane.
	defaultSyncInterval = 15 * time.Minute
	soonestSync         = time.Minute
	syncShare           = 20
	syncOctets          = 64
	laneOctets          = 4
	// maxSyncShapes and maxSyncLanes bound the lists of a sync, so that it fits a frame.
	maxSyncShapes = 1024
	maxSyncLanes  = 256
	// packRoom is how many octets beyond its own a segment may take when it is packed, where there is room: enough for a memory to
	// get to know what is new.
	packRoom = 64
)

// SegmentRoom is what the framing of head and body inside one payload may take, in octets: two shape numbers and a length. A segment
// that is to be sent has at most as much less than a payload.
const SegmentRoom = 32

func (c EncoderConfig) withDefaults() EncoderConfig {
	if c.Compression == nil {
		c.Compression = new(Compression)
	}
	if c.SyncBytes == 0 || c.SyncBytes > frame.MaxSyncOctets {
		c.SyncBytes = frame.MaxSyncOctets
	}
	if c.SyncMessages == 0 || c.SyncMessages > frame.MaxSyncMessages {
		c.SyncMessages = frame.MaxSyncMessages
	}
	if c.SyncInterval == 0 {
		c.SyncInterval = defaultSyncInterval
	}
	return c
}

// Outgoing is a message on its way out: key and the rest are set before its first fragment.
type Outgoing struct {
	frame.Key
	Interim bool
	OneWay  bool
	Place   frame.Place

	begun bool
	over  bool
	texts bool       // a part found no number for its shape
	parts [2]partOut // head and body
}

// Begun reports whether the first fragment of the message was encoded.
func (m *Outgoing) Begun() bool { return m.begun }

// partOut is a head or body that goes out.
type partOut struct {
	begun    bool
	sent     *sent           // the shape under whose number it goes; nil: as text
	join     *program.Joiner // of content that had no number to go under: it is joined again, and goes as text
	at       columns.Packing
	memory   *columns.Memory // of its own
	remember bool            // its lane is to remember it
	fresh    bool            // its lane remembers nothing of the shape yet
}

// Written is what an encoder has appended: a frame.
type Written struct {
	Kind   frame.Kind
	At     int64
	Octets int
	// Of a data frame: octets of payload, and of content before it was packed.
	Payload, Content int
}

// Encoder turns content into the frames of one direction, behind its hello. It appends to a buffer that its owner takes. Not safe for
// concurrent use.
type Encoder struct {
	cfg       EncoderConfig
	at        int64
	buf       []byte
	numbering frame.Numbering
	checks    frame.Checks
	syncEnd   int64
	syncedAt  time.Time
	before    time.Time // of the last data frame
	worth     int64     // how many octets there must be for a sync to be cheap

	shapes sending
	lanes  sentLanes

	payload []byte // of the frame at hand, and a segment of it
	segment []byte
	written []Written
}

// NewEncoder makes the encoder of a direction whose hello took so many octets, at a moment.
func NewEncoder(cfg EncoderConfig, hello int, now time.Time) *Encoder {
	e := &Encoder{cfg: cfg.withDefaults(), at: int64(hello), syncEnd: int64(hello), syncedAt: now, before: now, checks: frame.NewChecks(cfg.Origin)}
	e.shapes.init()
	e.Limit(cfg.Limits)
	return e
}

// Bytes are those appended since [Encoder.Reset], Written their frames. They hold until the next call.
func (e *Encoder) Bytes() []byte      { return e.buf }
func (e *Encoder) Written() []Written { return e.written }

// Reset forgets what was appended, once it is taken.
func (e *Encoder) Reset() { e.buf, e.written = e.buf[:0], e.written[:0] }

// Limit says what the peer's hello states of its limits.
func (e *Encoder) Limit(l frame.Limits) {
	l.MaxShapes = min(l.MaxShapes, maxSyncShapes)
	e.cfg.Limits = l
}

// Open is the number of messages begun and not whole.
func (e *Encoder) Open() int { return e.checks.Len() }

// MaxSegment is the longest segment that fits a fragment, in octets.
func (e *Encoder) MaxSegment() int { return int(e.cfg.Limits.MaxFragment) - SegmentRoom }

// append puts a frame behind the others.
func (e *Encoder) append(f frame.Frame) {
	from := len(e.buf)
	e.buf = f.AppendTo(e.buf)
	e.note(Written{Kind: f.Kind(), Octets: len(e.buf) - from})
}

func (e *Encoder) note(w Written) {
	w.At = e.at
	e.written = append(e.written, w)
	e.at += int64(w.Octets)
}

// Cancel appends a cancel.
func (e *Encoder) Cancel(f frame.Cancel) {
	e.checks.Cancel(f)
	e.append(f)
}

// Ack, Grant and Ask append what is said about the other direction: of a sequence, credit, and that a shape is lacking.
func (e *Encoder) Ack(octets []byte)    { e.append(frame.Ack{Octets: octets}) }
func (e *Encoder) Grant(w frame.Window) { e.append(w) }
func (e *Encoder) Ask(number uint64)    { e.append(frame.Shape{Number: number, Form: frame.Unknown}) }

// Close appends the end of the direction.
func (e *Encoder) Close(code frame.CloseCode, text string) {
	e.append(frame.Close{Code: code, Text: text, Messages: e.checks.Messages(), Check: e.checks.Check()})
}

// Drop gives a message up that is not whole: a cancel is appended if any of it was encoded.
func (e *Encoder) Drop(m *Outgoing, code frame.CancelCode) {
	if m.begun && !m.over {
		e.Cancel(frame.Cancel{Message: m.Key, Code: code})
	}
	m.finish()
}

// finish is the end of a message's way.
func (m *Outgoing) finish() {
	if m.over {
		return
	}
	m.over = true
	for i := range m.parts {
		p := &m.parts[i]
		if p.sent != nil {
			p.sent.open--
		}
		if p.memory != nil {
			p.memory.Reset()
		}
		if p.join != nil {
			joiners.Put(p.join)
		}
		p.sent, p.memory, p.join = nil, nil, nil
	}
}

// Data appends a fragment of a message: up to one segment of its head and one of its body; what is not There is left out. The shapes
// of parts that it begins must have been announced ([Encoder.Announce]). last: it is the message's last; then the body has begun.
func (e *Encoder) Data(m *Outgoing, head, body *Part, last bool, now time.Time) error {
	e.shapes.begin(m, 0, head)
	e.shapes.begin(m, 1, body)
	if m.parts[0].join == nil && m.parts[1].join == nil {
		return e.fragment(m, head, body, last, now)
	}
	return e.texts(m, head, body, last, now)
}

// texts appends parts that are joined, in as many fragments as they take.
func (e *Encoder) texts(m *Outgoing, head, body *Part, last bool, now time.Time) error {
	for i, s := range [2]*Part{head, body} {
		if !s.There {
			continue
		}
		part := *s
		if at := &m.parts[i]; at.join != nil {
			joined, err := at.join.Join(nil, s.Content, s.Text, s.Last)
			if err != nil {
				return err
			}
			part.Content, part.Text = joined, false
		}
		if err := e.cut(m, i, &part, last && (i == 1 || !body.There), now); err != nil {
			return err
		}
	}
	return nil
}

// cut appends one part in as many fragments as it takes.
func (e *Encoder) cut(m *Outgoing, i int, part *Part, last bool, now time.Time) error {
	var none Part
	whole := *part
	for more := true; more; {
		piece := whole
		n := min(len(whole.Content), e.MaxSegment())
		piece.Content, whole.Content = whole.Content[:n], whole.Content[n:]
		more = len(whole.Content) > 0
		piece.Last = whole.Last && !more
		both := [2]*Part{&none, &none}
		both[i] = &piece
		if err := e.fragment(m, both[0], both[1], last && !more, now); err != nil {
			return err
		}
	}
	return nil
}

// Flush appends that the sender of a message waits, whose body has begun and of which so many octets of the texts behind the last
// item of its content are there ([Splitter.Flush]); of none nothing is said.
func (e *Encoder) Flush(m *Outgoing, settled int64, now time.Time) error {
	if settled == 0 {
		return nil
	}
	at := &m.parts[1]
	if at.join == nil {
		e.append(frame.Flush{Message: m.Key, Settled: uint64(settled)})
		return nil
	}
	text, err := at.join.Settle(nil, settled)
	if err != nil || len(text) == 0 {
		return err
	}
	return e.cut(m, 1, &Part{There: true, Content: text}, false, now)
}

// fragment appends one data frame.
func (e *Encoder) fragment(m *Outgoing, head, body *Part, last bool, now time.Time) error {
	e.syncIfDue(len(head.Content)+len(body.Content)+frame.DataOverhead+SegmentRoom, now)
	d := frame.Data{First: !m.begun, Last: last, Reply: m.Reply, Interim: m.Interim && !m.begun, OneWay: m.OneWay && !m.begun, Head: head.There,
		Lane: m.Lane, Exchange: m.Exchange}
	if d.First {
		d.Place = m.Place
	}
	parts := frame.Parts{HasHead: head.There, HasBody: body.There}
	room := max(0, min(packRoom, (int(e.cfg.Limits.MaxFragment)-SegmentRoom-len(head.Content)-len(body.Content))/2-2))
	b := e.payload[:0]
	if head.There {
		b = e.number(b, m, 0, head, &parts.Head, d.First && last, now)
		e.segment = e.pack(e.segment[:0], m, 0, head, room)
		n := 2 * uint64(len(e.segment))
		if !head.Last {
			n++
		}
		b = append(binary.AppendUvarint(b, n), e.segment...)
	}
	if body.There {
		b = e.number(b, m, 1, body, &parts.Body, d.First && last, now)
		b = e.pack(b, m, 1, body, room)
		d.Text = parts.Body.Text
	}
	e.payload, d.Payload = b, b
	e.numbering.Choose(&d)
	e.checks.Put(&d, &parts, e.shapes.name)
	m.begun, e.before = true, now
	from := len(e.buf)
	e.buf = d.AppendTo(e.buf)
	e.note(Written{Kind: frame.KindData, Octets: len(e.buf) - from, Payload: len(b), Content: len(head.Content) + len(body.Content)})
	if last {
		m.finish()
	}
	return nil
}

var joiners = sync.Pool{New: func() any { return new(program.Joiner) }}

// number appends the number of the shape that a part is under, where it begins. alone: the message is in one frame.
func (e *Encoder) number(b []byte, m *Outgoing, i int, s *Part, p *frame.Part, alone bool, now time.Time) []byte {
	at := &m.parts[i]
	p.First, p.Last, p.Text = !at.begun, s.Last, s.Text
	if at.begun {
		return b
	}
	at.begun = true
	if at.sent != nil {
		p.Shape = at.sent.number
		e.lanes.begin(e, m, at, alone, now)
	}
	return binary.AppendUvarint(b, p.Shape)
}

// pack appends a segment as it travels.
func (e *Encoder) pack(dst []byte, m *Outgoing, i int, s *Part, room int) []byte {
	at := &m.parts[i]
	from, packed := len(dst), at.sent != nil && !s.Text && e.cfg.Origin.Stages&Columns != 0
	if packed {
		dst = e.packSegment(dst, m, at, s, len(s.Content)+1+room)
	} else {
		dst = append(dst, s.Content...)
	}
	if e.cfg.Origin.Stages&Zstd != 0 {
		dst = e.cfg.Compression.compress(dst, from, packed, e.lanes.trials(m.Lane, packed))
	}
	if at.remember {
		e.lanes.note(at, len(dst)-from)
	}
	return dst
}

var packers = sync.Pool{New: func() any { return new(columns.Packer) }}

func (e *Encoder) packSegment(dst []byte, m *Outgoing, at *partOut, s *Part, most int) []byte {
	memory := at.memory
	if at.remember {
		memory = e.lanes.memory(m.Lane)
	} else if memory == nil {
		at.memory = new(columns.Memory)
		memory = at.memory
	}
	k := packers.Get().(*columns.Packer)
	defer packers.Put(k)
	return k.Pack(dst, at.sent.program, &at.at, memory, s.Content, s.Last, most)
}
