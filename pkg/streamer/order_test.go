package streamer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// meetInitiator is a stream under test, the initiator, with a responder by hand that has read
// nothing but the hello. limits are the responder's.
func meetInitiator(t testing.TB, buffer int, cfg streamer.Config, coder streamer.Coder, limits frame.Limits) *byHand {
	t.Helper()
	here, there := inproc.Pipe(buffer)
	h := &byHand{t: t, conn: there}
	hello := handHello
	hello.Responder, hello.Token, hello.Limits = true, nil, limits
	cfg.Initiator, cfg.Session, cfg.Token, cfg.Representation, cfg.Coder = true, session, make([]byte, 16), 1, coder
	met := make(chan error, 1)
	go func() {
		var err error
		h.s, err = streamer.Over(context.Background(), here, cfg)
		met <- err
	}()
	_, ok := h.next().(frame.Hello)
	require.True(t, ok)
	h.write(hello)
	require.NoError(t, <-met)
	t.Cleanup(func() {
		_ = there.Close()
		h.s.Abort(streamer.CloseGoingAway, "")
	})
	return h
}

func TestSmallMessageOvertakesALargeOne(t *testing.T) {
	h := meetInitiator(t, 4096, streamer.Config{QueueBytes: 16 << 20}, newRawCoder(), func() frame.Limits {
		l := handHello.Limits
		l.Window = 16 << 20
		return l
	}())
	const size = 5 << 20
	require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, make([]byte, size))))
	require.NoError(t, h.s.Lane(1).Send(t.Context(), streamer.NewMessage(nil, []byte("small"))))
	before, all := 0, 0
	for seen := false; all < size; {
		d := until[frame.Data](h)
		if d.First && d.Last {
			seen = true
			continue
		}
		all += len(d.Payload)
		if d.First {
			all-- // the shape number
		}
		if !seen {
			before++
		}
	}
	assert.LessOrEqual(t, before, 4)
}

func TestSmallCallsPassWhileTheQueueIsFull(t *testing.T) {
	p := connect(t, pairing{handlerb: echo, a: streamer.Config{QueueBytes: 20000}})
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, p.a.Lane(0).Send(t.Context(), streamer.NewMessage(nil, make([]byte, 20<<20))))
	})
	for range 20 {
		r, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte("small")))
		require.NoError(t, err)
		assert.Equal(t, "small", body(t, r))
	}
	wg.Wait()
}

func TestShapesAreAnnouncedBeforeTheirUse(t *testing.T) {
	large := newKind("large", 50000)
	coder := newRawCoder(one, large, three)
	coder.believes[three.Fingerprint()] = true
	h := meetInitiator(t, 1<<20, streamer.Config{}, coder, handHello.Limits)
	sent := []string{one.message("a"), large.message("b"), one.message("c"), three.message("d"), "none",
		large.message("e")}
	for _, m := range sent {
		require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte(m))))
	}
	pieces := frame.Pieces{MaxShapes: 9, MaxBytes: 1 << 20}
	stands := map[uint64]*program.Program{}
	var got []string
	var full, referred int
	var base []byte // of the second shape
	for len(got) < len(sent) {
		switch f := h.next().(type) {
		case frame.Shape:
			if f.Form == frame.Reference {
				referred++
				assert.Equal(t, [32]byte(three.Fingerprint()), f.Fingerprint)
				stands[f.Number] = three.Program
				continue
			}
			packed, err := pieces.Add(f, 0)
			require.NoError(t, err)
			if packed == nil {
				continue
			}
			full++
			octets, err := transit.Unpack(packed, anyBase(base))
			require.NoError(t, err)
			s, err := shape.Parse(octets)
			require.NoError(t, err)
			base = octets
			stands[f.Number] = program.Compile(s)
		case frame.Data:
			number := uint64(f.Payload[0])
			if number == 0 {
				got = append(got, string(f.Payload[1:]))
				continue
			}
			require.NotNil(t, stands[number], "number %d", number)
			var j program.Joiner
			j.Reset(stands[number])
			m, err := j.Join(nil, f.Payload[1:], false, true)
			require.NoError(t, err)
			got = append(got, string(m))
		}
	}
	assert.ElementsMatch(t, sent, got)
	assert.Equal(t, [2]int{2, 1}, [2]int{full, referred})
}

func TestLargeShapeLetsOthersPass(t *testing.T) {
	large := newKind("large", 100<<10)
	h := meetInitiator(t, 1000, streamer.Config{}, newRawCoder(large), handHello.Limits)
	require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte(large.message("x")))))
	require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("behind"))))
	require.NoError(t, h.s.Lane(1).Send(t.Context(), streamer.NewMessage(nil, []byte("small"))))
	for _, want := range []string{"\x00small", "\x01" + large.content("x"), "\x00behind"} {
		assert.Equal(t, want, string(until[frame.Data](h).Payload))
	}
}

// TestBeginKeepsTheOrder: requests that one goroutine begins have their numbers in that order,
// whatever their shapes and sizes; replies come in any.
func TestBeginKeepsTheOrder(t *testing.T) {
	var kinds []*kind
	for n := range 50 {
		kinds = append(kinds, newKind(fmt.Sprintf("k%d", n), n*1000))
	}
	p := connect(t, pairing{codera: newRawCoder(kinds...), handlerb: func(ctx context.Context, x *streamer.Exchange) {
		_ = x.Reply(ctx, streamer.NewMessage(nil, fmt.Appendf(nil, "%d", x.Number())))
	}})
	var pending []*streamer.Pending
	for n := range 100 {
		body := kinds[(n*7)%50].message(strings.Repeat("x", (n*7919)%40000))
		c, err := p.a.Lane(0).Begin(t.Context(), streamer.NewMessage(nil, []byte(body)))
		require.NoError(t, err)
		pending = append(pending, c)
	}
	for n, c := range pending {
		r, err := c.Reply(t.Context())
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(n+1), body(t, r))
	}
}

// TestBeginOfLongRequests: the reply of a request can be read while the rest of it waits for a peer
// that answers as it reads, and what is begun behind it has its turn.
func TestBeginOfLongRequests(t *testing.T) {
	p := connect(t, pairing{handlerb: echo})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // in place of a hang
	defer cancel()
	var pending []*streamer.Pending
	var bodies []string
	for n := range 5 {
		bodies = append(bodies, strings.Repeat(fmt.Sprint(n), 3_000_000*(n%2)+1))
		c, err := p.a.Lane(0).Begin(ctx, streamer.NewMessage(nil, []byte(bodies[n])))
		require.NoError(t, err)
		pending = append(pending, c)
	}
	for n, c := range pending {
		r, err := c.Reply(ctx)
		require.NoError(t, err)
		assert.Equal(t, bodies[n], body(t, r))
	}
}

func TestUnknownShapesAreAskedForAndFramesHeld(t *testing.T) {
	a, b := newRawCoder(one, two), newRawCoder()
	for _, k := range []*kind{one, two} {
		a.believes[k.Fingerprint()] = true
	}
	b.store[two.Fingerprint()] = two.Program
	p := connect(t, pairing{codera: a, coderb: b, handlerb: echo})
	want := []string{one.message("a"), "plain on a held lane", two.message("b"), one.message("c")}
	var wg sync.WaitGroup
	for _, m := range want {
		wg.Go(func() {
			r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte(m)))
			if assert.NoError(t, err) {
				assert.Equal(t, m, body(t, r))
			}
		})
	}
	wg.Wait()
	assert.Equal(t, int64(1), p.b.Stats().Sent.Shape.Frames, "one question")
	assert.Equal(t, int64(2+1), p.a.Stats().Sent.Shape.Frames)
}

func TestWhatIsHeldAtTheEndIsUnprocessed(t *testing.T) {
	h := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
	d := newDirection(t)
	h.write(d.fill(one.reference(1)))
	h.write(d.fill(frame.Data{First: true, Last: true, OneWay: true, Exchange: 1,
		Payload: []byte("\x01" + one.content("held"))}))
	h.write(d.fill(frame.Close{}))
	assert.Equal(t, frame.Unprocessed, until[frame.Cancel](h).Code)
	assert.Equal(t, frame.CloseDone, until[frame.Close](h).Code)
	assert.NoError(t, h.s.Close())
}

func TestCloseWaitsForReplies(t *testing.T) {
	began, go1 := make(chan struct{}), make(chan struct{})
	p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
		if x.Number() == 1 {
			close(began)
			<-go1
		}
		_ = x.Reply(ctx, x.Message())
	}})
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("late")))
		if assert.NoError(t, err) {
			assert.Equal(t, "late", body(t, r))
		}
	})
	<-began
	wg.Go(func() { assert.NoError(t, p.a.Close()) })
	for {
		_, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
		if errors.Is(err, &streamer.Error{Code: streamer.Unsent}) {
			break
		}
	}
	close(go1)
	wg.Wait()
}

func TestHeldFramesGoOnInOrder(t *testing.T) {
	coder := newRawCoder()
	order := make(chan string, 10)
	limits := streamer.Limits{MaxExchanges: 1}
	h := meetByHand(t, streamer.Config{Limits: limits}, coder, func(_ context.Context, x *streamer.Exchange) {
		m, err := x.Message().ReadAll(100)
		assert.NoError(t, err)
		order <- string(m)
	})
	oneway := func(payload string, lane uint64) frame.Data {
		return frame.Data{First: true, Last: true, OneWay: true, NamesLane: true, Lane: lane, Payload: []byte(payload)}
	}
	held := func(text string) frame.Data { return oneway("\x01"+one.content(text), 0) }
	h.write(one.reference(1), oneway("\x00a", 0), held("b"), oneway("\x00c", 0), oneway("\x00other", 1), held("d"))
	assert.Equal(t, frame.Shape{Number: 1, Form: frame.Unknown}, h.next())
	assert.Equal(t, "a", <-order)
	assert.Equal(t, "other", <-order)
	begin, end := one.full(1), one.full(1)
	begin.Piece, end.Piece, end.Offset = begin.Piece[:5], end.Piece[5:], 5
	h.write(begin, oneway("\x00e", 0), end)
	for _, want := range []string{one.message("b"), "c", one.message("d"), "e"} {
		assert.Equal(t, want, <-order)
	}
}

func TestHeldBeyondTheLimitIsUnprocessed(t *testing.T) {
	h := meetByHand(t, streamer.Config{Limits: streamer.Limits{MaxHeld: 10}}, newRawCoder(), func(ctx context.Context,
		x *streamer.Exchange) {
		assert.Contains(t, []uint64{4, 5}, x.Number())
		_ = x.Reply(ctx, x.Message())
	})
	h.write(one.reference(1), request("\x01"+one.content("b")), frame.Data{First: true, Payload: []byte("\x00part")},
		request("\x00 too much"))
	assert.Equal(t, frame.Shape{Number: 1, Form: frame.Unknown}, h.next())
	for _, exchange := range []uint64{1, 2, 3} {
		c := until[frame.Cancel](h)
		assert.Equal(t, frame.Cancel{Message: frame.Key{Exchange: exchange}, Refused: true, Code: frame.Unprocessed,
			Text: "unprocessed"}, c)
	}
	h.write(named(frame.Data{Last: true, Payload: []byte("dropped")}, 2), request("\x00good again"),
		one.full(1), request("\x01"+one.content("known")))
	got := []string{string(until[frame.Data](h).Payload), string(until[frame.Data](h).Payload)}
	assert.ElementsMatch(t, []string{"\x00good again", "\x00" + one.message("known")}, got)
}

func TestSyncsAreSentAndChecked(t *testing.T) {
	for name, cfg := range map[string]streamer.Config{
		"by octets":   {SyncBytes: 1000},
		"by messages": {SyncMessages: 3},
		"by each":     {SyncBytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var kinds []*kind
			for n := range 8 {
				kinds = append(kinds, newKind(fmt.Sprintf("k%d", n), 0))
			}
			p := connect(t, pairing{a: cfg, b: cfg, handlerb: echo, codera: newRawCoder(kinds...),
				coderb: newRawCoder(kinds[4:]...)})
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for range 10 {
						want := kinds[i].message(strings.Repeat("x", i*5000))
						r, err := p.a.Lane(uint64(i)).Call(t.Context(), streamer.NewMessage([]byte("head"),
							[]byte(want)))
						if assert.NoError(t, err) {
							assert.Equal(t, want, body(t, r))
						}
					}
				})
			}
			wg.Wait()
			require.NoError(t, p.a.Close())
			require.NoError(t, p.b.Close())
			assert.Greater(t, p.a.Stats().Sent.Sync.Frames, int64(20))
			assert.Greater(t, p.b.Stats().Sent.Sync.Frames, int64(20))
			assert.LessOrEqual(t, p.a.Stats().Sent.Sync.Octets, int64(65536)*p.a.Stats().Sent.Sync.Frames)
		})
	}
}

func TestNoMoreThan65536OctetsStandWithoutASync(t *testing.T) {
	large := newKind("large", 200000)
	limits := handHello.Limits
	limits.Window = 1 << 20
	h := meetInitiator(t, 1000, streamer.Config{}, newRawCoder(large), limits)
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, make([]byte, 500000))))
		assert.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte(large.message("end")))))
	})
	since := 0
	for {
		f := h.next()
		n := len(f.AppendTo(nil))
		if f.Kind() == frame.KindSync {
			since = 0
			continue
		}
		since += n
		require.LessOrEqual(t, since, 65536)
		if d, ok := f.(frame.Data); ok && d.Last && len(d.Payload) < 10 {
			break
		}
	}
	wg.Wait()
}

func TestBodyErrorGivesTheRequestUp(t *testing.T) {
	seen, began := make(chan error, 1), make(chan struct{})
	p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
		close(began)
		_, err := x.Message().ReadAll(1 << 30)
		<-ctx.Done()
		seen <- err
	}})
	broken := io.MultiReader(strings.NewReader(strings.Repeat("x", 100000)), errReader{began})
	_, err := p.a.Lane(0).Call(t.Context(), &streamer.Message{Body: broken})
	assert.ErrorIs(t, err, errBroken)
	assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Aborted})
	var e *streamer.Error
	require.ErrorAs(t, <-seen, &e)
	assert.Equal(t, streamer.Aborted, e.Code)
	assert.True(t, e.Remote)
}

var errBroken = errors.New("broken reader")

// errReader fails once it may.
type errReader struct{ when chan struct{} }

func (r errReader) Read([]byte) (int, error) {
	<-r.when
	return 0, errBroken
}

// anyBase is the base, whatever it is called.
type anyBase []byte

func (b anyBase) Base(transit.Name) []byte { return b }

func (b anyBase) Styled(transit.OwnName, string) []byte { return nil }
