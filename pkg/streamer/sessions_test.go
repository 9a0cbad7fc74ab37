package streamer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	codec "github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/workload"
)

// TestRandomSessions is the short form of TestSoakSessions: seeds that never change.
func TestRandomSessions(t *testing.T) {
	material := append(shared.Envelopes(t, false), workload.Mixed(5)...)
	for seed := range uint64(40) {
		runSession(t, seed, material)
	}
}

// TestSessionsThatEndInTheMiddle: whatever ends a session, all who wait are told, and what is said
// not to be sent did not come.
func TestSessionsThatEndInTheMiddle(t *testing.T) {
	material := workload.Mixed(5)
	for seed := range uint64(60) {
		runBroken(t, seed, material)
	}
}

// runBroken runs a random session that somebody ends at any time: in order, at once, or as the
// connection does.
func runBroken(t *testing.T, seed uint64, material [][]byte) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	after, how := time.Duration(rnd.IntN(8000))*time.Microsecond, rnd.IntN(4)
	runSessionUntil(t, seed, material, func(a, b *streamer.Stream, conn net.Conn) {
		time.Sleep(after)
		switch how {
		case 0:
			_ = a.Close()
		case 1:
			_ = b.Close()
		case 2:
			b.Abort(frame.CloseGoingAway, "enough")
		default:
			_ = conn.Close()
		}
	})
}

// randomSession is two ends with random limits, and what both have to say. A seed gives limits and
// messages; which exchange is when is up to the machine.
type randomSession struct {
	t     *testing.T
	seed  uint64
	sides [2]*side
}

// side is one end of a session: it sends messages with a number of their own in the head, and
// counts those that come.
type side struct {
	stream   *streamer.Stream
	cfg      streamer.Config
	messages [][]byte
	cancels  bool
	ends     bool // before all is said, maybe
	peer     *side
	odd      func(format string, args ...any)

	mu     sync.Mutex
	came   map[uint64]int // by number: how often
	posted map[uint64]*streamer.Posted
}

func runSession(t *testing.T, seed uint64, material [][]byte) (messages int) {
	t.Helper()
	return runSessionUntil(t, seed, material, nil)
}

// runSessionUntil runs a session to its end, or until finish ends it.
func runSessionUntil(t *testing.T, seed uint64, material [][]byte, finish func(a, b *streamer.Stream,
	conn net.Conn)) (messages int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	var wrong sync.Once
	r := &randomSession{t: t, seed: seed}
	books := [2]*codec.Book{}
	stores := [2]ctxstore.Store{}
	for i := range r.sides {
		stores[i] = memory.New(memory.Config{})
		books[i] = codec.NewBook(ctxstore.Shapes{Store: stores[i]})
		s := &side{cfg: randomConfig(rnd), messages: randomMessages(rnd, material), cancels: rnd.IntN(3) == 0,
			ends: finish != nil, came: map[uint64]int{}, posted: map[uint64]*streamer.Posted{}}
		s.odd = func(format string, args ...any) {
			wrong.Do(func() { assert.Fail(t, "session goes wrong", "seed %d: %s", seed, fmt.Sprintf(format, args...)) })
		}
		r.sides[i] = s
	}
	a, b := r.sides[0], r.sides[1]
	a.peer, b.peer = b, a
	lies := knownShapes(t, rnd, books, material)
	text := rnd.IntN(4) == 0
	coder := func(i int) *codec.Coder {
		l := r.sides[i].cfg.Limits
		return books[i].Coder(codec.Options{Text: text, PeerKnows: lies, MaxShapes: l.MaxShapes,
			MaxShapeBytes: l.MaxShapeBytes})
	}
	coders := [2]*codec.Coder{coder(0), coder(1)}
	buffer := 1 << (8 + rnd.IntN(9))
	here, there := inproc.Pipe(buffer)
	a.cfg.Initiator, a.cfg.Session, a.cfg.Token, a.cfg.Representation, a.cfg.Coder, a.cfg.Handler = true, session,
		make([]byte, 16), 1, coders[0], a.serve
	b.cfg.Accept = func(context.Context, frame.Hello) (streamer.Admission, error) {
		return streamer.Admission{Coder: coders[1], Handler: b.serve}, nil
	}
	var met sync.WaitGroup
	met.Go(func() { b.stream, _ = streamer.Over(context.Background(), there, b.cfg) })
	var err error
	a.stream, err = streamer.Over(context.Background(), here, a.cfg)
	require.NoError(t, err, "seed %d", seed)
	met.Wait()
	require.NotNil(t, b.stream, "seed %d", seed)
	var said sync.WaitGroup
	for i, s := range r.sides {
		rnd := rand.New(rand.NewPCG(seed, uint64(2+i)))
		said.Go(func() { s.say(rnd) })
	}
	if finish != nil {
		said.Go(func() { finish(a.stream, b.stream, here) })
	}
	said.Wait()
	errs := [2]error{a.stream.Close(), b.stream.Close()}
	for i, s := range r.sides {
		if errs[i] != nil && finish == nil {
			s.odd("stream %d ends with %v", i, errs[i])
		}
		s.checkPosted()
	}
	return len(a.messages) + len(b.messages)
}

// knownShapes has one end learn shapes before the session, and maybe the other: the list says that
// both know them.
func knownShapes(t *testing.T, rnd *rand.Rand, books [2]*codec.Book, material [][]byte) (list [][32]byte) {
	if rnd.IntN(2) == 0 {
		return nil
	}
	knows := books[rnd.IntN(2)]
	for range 1 + rnd.IntN(20) {
		m := material[rnd.IntN(len(material))]
		err := knows.Coder(codec.Options{}).Split(0, 16000, func(bool, wire.Part) error { return nil }).All(m)
		require.NoError(t, err)
	}
	return knows.Known(64)
}

func randomConfig(rnd *rand.Rand) streamer.Config {
	upTo := func(n int) int { return 1 + rnd.IntN(n) }
	return streamer.Config{
		SyncBytes: int64(1) << (6 + rnd.IntN(11)), SyncMessages: upTo(1 << upTo(10)),
		QueueBytes: int64(1) << (10 + rnd.IntN(11)),
		Limits: streamer.Limits{MaxFragment: 512 + rnd.IntN(16384-512), MaxShapes: upTo(1 << upTo(7)),
			MaxShapeBytes: int64(1) << (8 + rnd.IntN(14)),
			MaxExchanges:  upTo(1 << upTo(6)), Window: 32<<10 + int64(rnd.IntN(1<<18)),
			MaxQueued: int64(1) << (9 + rnd.IntN(18)), MaxHeld: int64(1) << (6 + rnd.IntN(15)),
			MaxMessage: int64(1) << (18 + rnd.IntN(8))},
	}
}

// randomMessages draws messages: as they are, cut off, with bytes or pieces changed, or of bytes
// that are no XML.
func randomMessages(rnd *rand.Rand, material [][]byte) (list [][]byte) {
	few := material
	if rnd.IntN(2) == 0 {
		few = [][]byte{material[rnd.IntN(len(material))], material[rnd.IntN(len(material))],
			material[rnd.IntN(len(material))]}
	}
	for range 1 + rnd.IntN(60) {
		m := bytes.Clone(few[rnd.IntN(len(few))])
		switch rnd.IntN(8) {
		case 0:
			m = m[:rnd.IntN(len(m)+1)]
		case 1:
			for range 1 + rnd.IntN(4) {
				m[rnd.IntN(len(m))] = byte(rnd.IntN(256))
			}
		case 2:
			other := few[rnd.IntN(len(few))]
			at, from := rnd.IntN(len(m)+1), rnd.IntN(len(other)+1)
			m = append(append(bytes.Clone(m[:at]), other[from:min(len(other), from+rnd.IntN(2000))]...), m[at:]...)
		case 3:
			m = make([]byte, rnd.IntN(1<<(4+rnd.IntN(14))))
			for i := range m {
				m[i] = byte(rnd.Uint32())
			}
		}
		list = append(list, m)
	}
	return list
}

// dripping gives a body in small pieces, now and then to another goroutine's advantage.
type dripping struct{ from io.Reader }

func (d dripping) Read(p []byte) (int, error) {
	time.Sleep(time.Duration(len(p) % 50 * int(time.Microsecond)))
	return d.from.Read(p[:min(len(p), 700)])
}

// say sends all messages of this side over a few lanes, as calls and one-way, some of which it
// gives up.
func (s *side) say(rnd *rand.Rand) {
	work := make(chan func())
	var workers sync.WaitGroup
	for range 1 + rnd.IntN(12) {
		workers.Go(func() {
			for f := range work {
				f()
			}
		})
	}
	lanes := uint64(1 + rnd.IntN(5))
	for n := range s.messages {
		lane, oneway, drip := s.stream.Lane(rnd.Uint64N(lanes)), rnd.IntN(4) == 0, rnd.IntN(6) == 0
		patience := time.Duration(0)
		if s.cancels && rnd.IntN(3) == 0 {
			patience = time.Duration(1+rnd.IntN(3000)) * time.Microsecond
		}
		closes, talks, seed := s.cancels && rnd.IntN(8) == 0, !oneway && rnd.IntN(4) == 0, rnd.Uint64()
		work <- func() {
			if talks {
				s.talk(lane, uint64(n), patience, rand.New(rand.NewPCG(seed, 0)))
				return
			}
			s.one(lane, uint64(n), oneway, drip, closes, patience)
		}
	}
	close(work)
	workers.Wait()
}

func (s *side) one(lane *streamer.Lane, n uint64, oneway, drip, closes bool, patience time.Duration) {
	ctx := context.Background()
	if patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	m := streamer.NewMessage(binary.BigEndian.AppendUint64(nil, n), s.messages[n])
	if drip {
		m.Body = dripping{m.Body}
	}
	if oneway {
		p, err := lane.Post(ctx, m)
		if err != nil {
			s.failed(ctx, n, err, false)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.posted[n] = p
		return
	}
	reply, err := lane.Call(ctx, m)
	if err != nil {
		s.failed(ctx, n, err, closes)
		return
	}
	if closes {
		_, _ = io.CopyN(io.Discard, reply.Body, 10)
		_ = reply.Body.(io.Closer).Close()
		return
	}
	back, err := reply.ReadAll(1 << 30)
	switch {
	case err != nil:
		s.failed(ctx, n, err, closes)
	case !bytes.Equal(back, s.messages[n]) || !bytes.Equal(reply.Head, m.Head):
		s.odd("reply %d differs: %d octets, not %d", n, len(back), len(s.messages[n]))
	}
}

// failed judges the error of an exchange: limits, cancels and the closing of a body are all that
// explains one.
func (s *side) failed(ctx context.Context, n uint64, err error, closed bool) {
	var e *streamer.Error
	switch {
	case !errors.As(err, &e):
		s.odd("message %d: untyped %v", n, err)
	case e.Code == streamer.Unsent && s.peer.hasSeen(n):
		s.odd("message %d came, and is said not to be sent: %v", n, err)
	case ctx.Err() != nil || closed || s.ends:
	case e.Code == streamer.Busy, e.Code == streamer.Unprocessed, e.Code == streamer.TooLarge:
	case e.Code == streamer.FateUnknown && (errors.Is(e.Err, &streamer.Error{Code: streamer.Busy}) || errors.Is(e.Err,
		&streamer.Error{Code: streamer.Unprocessed})):
	case e.Code == streamer.Failed &&
		int64(len(s.messages[n])+8) > s.cfg.Limits.MaxMessage: // the reply could not begin
	default:
		s.odd("message %d: %v", n, err)
	}
}

func (s *side) hasSeen(n uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.came[n] > 0
}

// serve notes what comes from the other side, and echoes requests.
func (s *side) serve(ctx context.Context, x *streamer.Exchange) {
	head := x.Message().Head
	if len(head) == 8 && head[0]&0x80 != 0 {
		n := binary.BigEndian.Uint64(head) &^ talking
		s.mu.Lock()
		s.came[n]++
		s.mu.Unlock()
		s.answer(ctx, x, n)
		return
	}
	if x.OneWay() && len(head) == 8 && head[7]%8 == 0 { // what it leaves is dropped
		s.mu.Lock()
		s.came[binary.BigEndian.Uint64(head)]++
		s.mu.Unlock()
		return
	}
	b, err := x.Message().ReadAll(1 << 30)
	if err != nil {
		var e *streamer.Error
		if !errors.As(err, &e) || !s.ends && (e.Code == streamer.Malformed || e.Code >= streamer.Protocol) {
			s.odd("reading a message: %v", err)
		}
		return
	}
	if len(head) != 8 {
		s.odd("head of %d octets", len(head))
		return
	}
	n := binary.BigEndian.Uint64(head)
	if n >= uint64(len(s.peer.messages)) || !bytes.Equal(b, s.peer.messages[n]) {
		s.odd("message %d differs", n)
		return
	}
	s.mu.Lock()
	s.came[n]++
	s.mu.Unlock()
	if !x.OneWay() {
		_ = x.Reply(ctx, streamer.NewMessage(head, b))
	}
}

// checkPosted tells that one-way messages of which nothing else is said came, and that no message
// came twice.
func (s *side) checkPosted() {
	for n, p := range s.posted {
		if err := p.Err(); err != nil {
			s.failed(context.Background(), n, err, errors.Is(err, &streamer.Error{Code: streamer.FateUnknown}))
		} else if s.peer.came[n] == 0 {
			s.odd("one-way message %d is lost", n)
		}
	}
	for n, times := range s.came {
		if times != 1 {
			s.odd("message %d came %d times", n, times)
		}
	}
}
