package streamer_test

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func TestCallGivenUpEndsTheHandlersContext(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
		if x.Number() > 1 {
			echo(ctx, x)
			return
		}
		close(began)
		<-ctx.Done()
		ended <- x.Reply(ctx, x.Message())
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	_, err := p.a.Lane(0).Call(ctx, streamer.NewMessage(nil, []byte("x")))
	require.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Aborted})
	var e *streamer.Error
	require.ErrorAs(t, <-ended, &e)
	assert.Equal(t, streamer.Error{Code: streamer.Aborted, Remote: true}, *e)
	r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("the stream goes on")))
	require.NoError(t, err)
	assert.Equal(t, "the stream goes on", body(t, r))
}

func TestReplyGivenUpWhileItComes(t *testing.T) {
	ended := make(chan error, 2)
	p := connect(t, pairing{buffer: 1000, b: streamer.Config{QueueBytes: 1000}, handlerb: func(ctx context.Context,
		x *streamer.Exchange) {
		ended <- x.Reply(ctx, &streamer.Message{Body: endless{}})
	}})
	r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
	require.NoError(t, err)
	_, err = io.ReadFull(r.Body, make([]byte, 100000))
	require.NoError(t, err)
	require.NoError(t, r.Body.(io.Closer).Close())
	_, err = r.Body.Read(make([]byte, 1))
	assert.Error(t, err)
	assert.ErrorIs(t, <-ended, &streamer.Error{Code: streamer.Aborted})

	ctx, cancel := context.WithCancel(t.Context())
	r, err = p.a.Lane(0).Call(ctx, streamer.NewMessage(nil, nil))
	require.NoError(t, err)
	cancel()
	_, err = io.Copy(io.Discard, r.Body)
	assert.ErrorIs(t, err, context.Canceled)
	assert.ErrorIs(t, <-ended, &streamer.Error{Code: streamer.Aborted})
}

type endless struct{}

// Read clears p: what other tests left in it could name a shape.
func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestRefusals(t *testing.T) {
	small := streamer.Config{Limits: streamer.Limits{MaxMessage: 1000}}
	long := strings.Repeat("x", 1001)
	for name, tc := range map[string]struct {
		p      pairing
		body   string
		code   streamer.Code
		remote bool
	}{
		"nobody serves": {pairing{}, "x", streamer.Unserved, true},
		"no reply": {pairing{handlerb: func(context.Context, *streamer.Exchange) {}}, "x",
			streamer.Failed, true},
		"reply could not begin":  {pairing{handlerb: replyBroken}, "x", streamer.Failed, true},
		"reply broke":            {replyThatBreaks(), "x", streamer.Aborted, true},
		"longer than peer takes": {pairing{b: small, handlerb: echo}, long, streamer.TooLarge, false},
		"reply too long":         {pairing{a: small, handlerb: replyLong}, "x", streamer.Failed, true},
		"content does not fit": {pairing{codera: &liar{newRawCoder()}, handlerb: echo}, "x", streamer.Malformed,
			true},
		"reply does not fit": {pairing{coderb: &liar{newRawCoder()}, handlerb: echo}, "x", streamer.FateUnknown,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			p := connect(t, tc.p)
			r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte(tc.body)))
			if err == nil {
				_, err = r.ReadAll(1 << 20)
			}
			var e *streamer.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, tc.code, e.Code, "%v", e)
			assert.Equal(t, tc.remote, e.Remote)
			assert.NoError(t, p.a.Close())
			assert.NoError(t, p.b.Close())
		})
	}
}

// liar gives content that fits no shape.
type liar struct{ *rawCoder }

func (l *liar) Split(_ uint64, _ int, emit wire.Emit) wire.SplitStep {
	return &lie{rawSplit{c: l.rawCoder, most: 100, emit: emit}}
}

type lie struct{ rawSplit }

func (l *lie) All([]byte) error {
	return l.emit(false, wire.Part{There: true, First: true, Last: true, Program: one.Program, Content: []byte{0xff,
		0xff, 0xff}})
}

func (l *lie) Close() error { return l.All(nil) }

func replyBroken(ctx context.Context, x *streamer.Exchange) {
	now := make(chan struct{})
	close(now)
	_ = x.Reply(ctx, &streamer.Message{Body: errReader{now}})
}

// replyThatBreaks replies with a body that fails once the first of it has been sent.
func replyThatBreaks() pairing {
	sent := make(chan struct{})
	once := sync.OnceFunc(func() { close(sent) })
	return pairing{
		b: streamer.Config{Events: func(ev streamer.Event) {
			if ev.Dir == streamer.Sent && ev.Kind == frame.KindData {
				once()
			}
		}},
		handlerb: func(ctx context.Context, x *streamer.Exchange) {
			_ = x.Reply(ctx, &streamer.Message{Body: io.MultiReader(strings.NewReader(strings.Repeat("x", 40000)),
				errReader{sent})})
		},
	}
}

func replyLong(ctx context.Context, x *streamer.Exchange) {
	_ = x.Reply(ctx, streamer.NewMessage(nil, make([]byte, 1001)))
}

func TestReceivedMessageTooLargeIsRefused(t *testing.T) {
	errs := make(chan error, 1)
	h := meetByHand(t, streamer.Config{Limits: streamer.Limits{MaxMessage: 100}}, newRawCoder(), func(_ context.Context,
		x *streamer.Exchange) {
		_, err := x.Message().ReadAll(1000)
		errs <- err
	})
	h.write(frame.Data{First: true, Payload: make([]byte, 60)}, frame.Data{Payload: make([]byte, 60)})
	assert.Equal(t, frame.MessageTooLarge, until[frame.Cancel](h).Code)
	assert.ErrorIs(t, <-errs, &streamer.Error{Code: streamer.TooLarge})
	h.write(frame.Data{Last: true, Payload: []byte("dropped")})
}

func TestBeyondWhatHelloStatesIsBusy(t *testing.T) {
	release := make(chan struct{})
	handler := func(ctx context.Context, x *streamer.Exchange) {
		<-release
		_ = x.Reply(ctx, x.Message())
	}
	t.Run("exchanges", func(t *testing.T) {
		h := meetByHand(t, streamer.Config{Limits: streamer.Limits{MaxExchanges: 2}}, newRawCoder(), handler)
		h.write(request("\x00a"), request("\x00b"), request("\x00c"))
		assert.Equal(t, frame.Cancel{Message: frame.Key{Exchange: 3}, Refused: true, Code: frame.Busy, Text: "busy"},
			h.next())
		release <- struct{}{}
		release <- struct{}{}
		assert.True(t, until[frame.Data](h).Last)
		assert.True(t, until[frame.Data](h).Last)
		h.write(request("\x00d"))
		release <- struct{}{}
		assert.Equal(t, "\x00d", string(until[frame.Data](h).Payload))
	})
	t.Run("credit", func(t *testing.T) {
		h := meetByHand(t, streamer.Config{Limits: streamer.Limits{Window: 32 << 10}}, newRawCoder(),
			func(ctx context.Context, _ *streamer.Exchange) { <-ctx.Done() })
		d := newDirection(t)
		fragment := frame.Data{Exchange: 1, Payload: make([]byte, 16000)}
		first := fragment
		first.First = true
		h.write(d.fill(first))
		for i := range 6 << 20 / 16000 {
			if i%4 == 3 {
				h.write(d.fill(frame.Sync{}))
			}
			h.write(d.fill(fragment))
		}
		assert.Equal(t, frame.CloseLimits, until[frame.Close](h).Code)
	})
	t.Run("one-way messages of no octets", func(t *testing.T) {
		h := meetByHand(t, streamer.Config{Limits: streamer.Limits{MaxExchanges: 1, MaxQueued: 10000}}, newRawCoder(),
			func(ctx context.Context, x *streamer.Exchange) { <-release })
		for range 100 {
			h.write(frame.Data{First: true, Last: true, OneWay: true, Payload: []byte{0}})
		}
		assert.Equal(t, frame.Busy, until[frame.Cancel](h).Code)
		close(release)
	})
}

// The sender keeps to the limits the peer states, so that it never hears busy.
func TestSenderKeepsToTheStatedLimits(t *testing.T) {
	narrow := streamer.Config{Limits: streamer.Limits{MaxExchanges: 3, Window: 32 << 10}}
	p := connect(t, pairing{b: narrow, handlerb: func(ctx context.Context, x *streamer.Exchange) {
		b, err := x.Message().ReadAll(1 << 20)
		if assert.NoError(t, err) {
			_ = x.Reply(ctx, streamer.NewMessage(nil, b))
		}
	}})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			want := strings.Repeat("x", 10000+i*20000)
			r, err := p.a.Lane(uint64(i)).Call(t.Context(), streamer.NewMessage(nil, []byte(want)))
			if assert.NoError(t, err) {
				assert.Len(t, body(t, r), len(want))
			}
		})
	}
	wg.Wait()
	assert.Zero(t, p.b.Stats().Sent.Cancel)
	assert.Positive(t, p.b.Stats().Sent.Other.Frames, "credit")
}

// A message that the peer gives no credit for waits; others pass it, and its context ends the wait.
func TestContextEndsTheWaitForCredit(t *testing.T) {
	limits := handHello.Limits
	limits.Window = 32 << 10
	h := meetInitiator(t, 1<<20, streamer.Config{}, newRawCoder(), limits)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			_, err := h.s.Lane(uint64(i)).Call(ctx, streamer.NewMessage(nil, make([]byte, 100_000)))
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	for range 6 { // 2 fragments each
		until[frame.Data](h)
	}
	r := make(chan error, 1)
	go func() {
		_, err := h.s.Lane(9).Call(t.Context(), streamer.NewMessage(nil, []byte("passes")))
		r <- err
	}()
	d := until[frame.Data](h)
	h.write(frame.Data{First: true, Last: true, Reply: true, NamesLane: true, Lane: d.Lane, NamesExchange: true,
		Exchange: 1, Payload: d.Payload})
	assert.NoError(t, <-r)
	cancel()
	wg.Wait()
}

func TestRefusedWhileItIsSent(t *testing.T) {
	h := meetInitiator(t, 1<<20, streamer.Config{QueueBytes: 1000}, newRawCoder(), handHello.Limits)
	errs := make(chan error, 1)
	go func() {
		_, err := h.s.Lane(0).Call(t.Context(), &streamer.Message{Body: endless{}})
		errs <- err
	}()
	until[frame.Data](h)
	h.write(frame.Cancel{Message: frame.Key{Exchange: 1}, Refused: true, Code: frame.Busy, Text: "not now"})
	c := until[frame.Cancel](h)
	assert.Equal(t, frame.Cancel{Message: frame.Key{Exchange: 1}, Code: frame.Aborted}, c)
	var e *streamer.Error
	require.ErrorAs(t, <-errs, &e)
	assert.Equal(t, streamer.Busy, e.Code)
	assert.True(t, e.Remote)
	assert.ErrorContains(t, e, "not now")
}

func TestRestOfARequestIsRefusedAfterTheReply(t *testing.T) {
	p := connect(t, pairing{buffer: 1000, a: streamer.Config{QueueBytes: 1000}, handlerb: func(ctx context.Context,
		x *streamer.Exchange) {
		_ = x.Reply(ctx, streamer.NewMessage(nil, []byte("enough")))
	}})
	var closed closing
	r, err := p.a.Lane(0).Call(t.Context(), &streamer.Message{Body: &closed})
	require.NoError(t, err)
	assert.Equal(t, "enough", body(t, r))
	require.NoError(t, p.a.Close())
	require.NoError(t, p.b.Close())
	assert.True(t, closed.closed)
	assert.Equal(t, int64(1), p.b.Stats().Sent.Cancel.Frames)
}

// closing is an endless body that can be closed.
type closing struct {
	endless
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestEchoOfAStreamWithoutEnd(t *testing.T) {
	p := connect(t, pairing{buffer: 5000, a: streamer.Config{QueueBytes: 50000}, b: streamer.Config{QueueBytes: 50000},
		handlerb: echo})
	r, w := io.Pipe()
	go func() {
		for range 2000 {
			_, _ = w.Write(make([]byte, 1000))
		}
		_ = w.Close()
	}()
	reply, err := p.a.Lane(0).Call(t.Context(), &streamer.Message{Body: r})
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, reply.Body)
	require.NoError(t, err)
	assert.Equal(t, int64(2000*1000), n)
}
