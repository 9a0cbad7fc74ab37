package streamer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/inproc"
)

// meetInitiator is a stream under test, the initiator, with a responder by hand that has read nothing but the hello. limits are the responder's.
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
		l.MaxQueued = 16 << 20
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
	coder := newRawCoder()
	coder.shapes[1], coder.shapes[2] = []byte("one"), []byte(strings.Repeat("large", 10000))
	coder.shapes[3], coder.refer[3] = []byte("three"), true
	h := meetInitiator(t, 1<<20, streamer.Config{}, coder, handHello.Limits)
	for _, m := range []string{"#1 a", "#2 b", "#1 c", "#3 d", "none", "#2 e"} {
		require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte(m))))
	}
	pieces := frame.Pieces{MaxShapes: 9, MaxBytes: 1 << 20}
	good := map[uint64]bool{0: true}
	var got []string
	shapes := 0
	for len(got) < 6 {
		switch f := h.next().(type) {
		case frame.Shape:
			shapes++
			if f.Form == frame.Reference {
				assert.Equal(t, fingerprint("three"), f.Fingerprint)
				good[f.Number] = true
				continue
			}
			full, err := pieces.Add(f, 0)
			require.NoError(t, err)
			if full != nil {
				assert.Equal(t, coder.shapes[f.Number], full)
				good[f.Number] = true
			}
		case frame.Data:
			assert.True(t, good[uint64(f.Payload[0])], "number %d", f.Payload[0])
			got = append(got, string(f.Payload[1:]))
		}
	}
	assert.ElementsMatch(t, []string{"#1 a", "#2 b", "#1 c", "#3 d", "none", "#2 e"}, got)
	assert.Equal(t, 1+4+1, shapes)
}

func TestLargeShapeLetsOthersPass(t *testing.T) {
	coder := newRawCoder()
	coder.shapes[2] = make([]byte, 1<<20)
	h := meetInitiator(t, 1000, streamer.Config{}, coder, handHello.Limits)
	require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("#2"))))
	require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("behind"))))
	require.NoError(t, h.s.Lane(1).Send(t.Context(), streamer.NewMessage(nil, []byte("small"))))
	for _, want := range []string{"\x00small", "\x02#2", "\x00behind"} {
		assert.Equal(t, want, string(until[frame.Data](h).Payload))
	}
}

// TestBeginKeepsTheOrder: requests that one goroutine begins have their numbers in that order, whatever their shapes and sizes; replies come in any.
func TestBeginKeepsTheOrder(t *testing.T) {
	a, b := newRawCoder(), newRawCoder()
	for n := range 50 {
		a.shapes[uint64(n+1)] = make([]byte, 1+n*1000)
	}
	p := connect(t, pairing{codera: a, coderb: b, handlerb: func(ctx context.Context, x *streamer.Exchange) {
		_ = x.Reply(ctx, streamer.NewMessage(nil, fmt.Appendf(nil, "%d", x.Number())))
	}})
	var pending []*streamer.Pending
	for n := range 100 {
		body := fmt.Appendf(nil, "#%d %s", 1+(n*7)%50, strings.Repeat("x", (n*7919)%40000))
		c, err := p.a.Lane(0).Begin(t.Context(), streamer.NewMessage(nil, body))
		require.NoError(t, err)
		pending = append(pending, c)
	}
	for n, c := range pending {
		r, err := c.Reply(t.Context())
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(n+1), body(t, r))
	}
}

func TestUnknownShapesAreAskedForAndFramesHeld(t *testing.T) {
	a, b := newRawCoder(), newRawCoder()
	for n, s := range map[uint64]string{1: "one", 2: "two"} {
		a.shapes[n], a.refer[n] = []byte(s), true
		b.shapes[n] = []byte("reply " + s)
	}
	b.store[fingerprint("two")] = []byte("two")
	p := connect(t, pairing{codera: a, coderb: b, handlerb: echo})
	want := []string{"#1 a", "plain on a held lane", "#2 b", "#1 c"}
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
	assert.Equal(t, int64(1+2), p.b.Stats().Sent.Shape.Frames, "one question, and two announcements of its own")
	assert.Equal(t, int64(2+1), p.a.Stats().Sent.Shape.Frames)
}

func TestWhatIsHeldAtTheEndIsUnprocessed(t *testing.T) {
	h := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
	d := newDirection(t)
	h.write(d.fill(frame.Shape{Number: 1, Form: frame.Reference}))
	h.write(d.fill(frame.Data{First: true, Last: true, OneWay: true, Exchange: 1, Payload: []byte("\x01held")}))
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
	h.write(frame.Shape{Number: 1, Form: frame.Reference, Fingerprint: fingerprint("one")},
		oneway("\x00a", 0), oneway("\x01b", 0), oneway("\x00c", 0), oneway("\x00other", 1), oneway("\x01d", 0))
	assert.Equal(t, frame.Shape{Number: 1, Form: frame.Unknown}, h.next())
	assert.Equal(t, "a", <-order)
	assert.Equal(t, "other", <-order)
	h.write(frame.Shape{Number: 1, Form: frame.Full, Total: 3, Piece: []byte("o")}, oneway("\x00e", 0),
		frame.Shape{Number: 1, Form: frame.Full, Total: 3, Offset: 1, Piece: []byte("ne")})
	for _, want := range []string{"b", "c", "d", "e"} {
		assert.Equal(t, want, <-order)
	}
}

func TestHeldBeyondTheLimitIsUnprocessed(t *testing.T) {
	h := meetByHand(t, streamer.Config{Limits: streamer.Limits{MaxHeld: 10}}, newRawCoder(), func(ctx context.Context, x *streamer.Exchange) {
		assert.Contains(t, []uint64{4, 5}, x.Number())
		_ = x.Reply(ctx, x.Message())
	})
	h.write(frame.Shape{Number: 1, Form: frame.Reference, Fingerprint: fingerprint("one")},
		request("\x01b"), frame.Data{First: true, Payload: []byte("\x00part")}, request("\x00 too much"))
	assert.Equal(t, frame.Shape{Number: 1, Form: frame.Unknown}, h.next())
	for _, exchange := range []uint64{1, 2, 3} {
		c := until[frame.Cancel](h)
		assert.Equal(t, frame.Cancel{Message: frame.Key{Exchange: exchange}, Refused: true, Code: frame.Unprocessed, Text: "unprocessed"}, c)
	}
	h.write(named(frame.Data{Last: true, Payload: []byte("dropped")}, 2), request("\x00good again"),
		frame.Shape{Number: 1, Form: frame.Full, Total: 3, Piece: []byte("one")}, request("\x01known"))
	got := []string{string(until[frame.Data](h).Payload), string(until[frame.Data](h).Payload)}
	assert.ElementsMatch(t, []string{"\x00good again", "\x00known"}, got)
}

func TestTextSegmentsAndTheirKeep(t *testing.T) {
	a, b := newRawCoder(), newRawCoder()
	a.text, b.text = true, true
	p := connect(t, pairing{codera: a, coderb: b, handlerb: echo})
	want := strings.Repeat("0123456789", 5000)
	r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage([]byte("h"), []byte(want)))
	require.NoError(t, err)
	assert.Equal(t, want, body(t, r))
}

func TestSyncsAreSentAndChecked(t *testing.T) {
	for name, cfg := range map[string]streamer.Config{
		"by octets":   {SyncBytes: 1000},
		"by messages": {SyncMessages: 3},
		"by each":     {SyncBytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newRawCoder(), newRawCoder()
			for n := range uint64(9) {
				a.shapes[n], b.shapes[n] = []byte{byte(n), 1}, []byte{byte(n), 2}
			}
			p := connect(t, pairing{a: cfg, b: cfg, handlerb: echo, codera: a, coderb: b})
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					for range 10 {
						want := "#" + string(rune('1'+i)) + strings.Repeat("x", i*5000)
						r, err := p.a.Lane(uint64(i)).Call(t.Context(), streamer.NewMessage([]byte("head"), []byte(want)))
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
	coder := newRawCoder()
	coder.shapes[1] = make([]byte, 200000)
	h := meetInitiator(t, 1000, streamer.Config{}, coder, handHello.Limits)
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, make([]byte, 500000))))
		assert.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("#1 end"))))
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
		if d, ok := f.(frame.Data); ok && d.Last && len(d.Payload) == 7 {
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
