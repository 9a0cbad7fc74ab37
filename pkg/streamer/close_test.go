package streamer_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func TestBrokenConnectionTellsWhatWasSent(t *testing.T) {
	here, there := inproc.Pipe(0)
	began, ended := make(chan struct{}), make(chan struct{})
	p := connectOver(t, pairing{b: streamer.Config{Limits: streamer.Limits{MaxExchanges: 1}},
		handlerb: func(ctx context.Context, x *streamer.Exchange) {
			close(began)
			<-ctx.Done()
			close(ended)
		}}, here, there)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
		assert.ErrorIs(t, err, &streamer.Error{Code: streamer.FateUnknown})
		assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Closed})
	})
	<-began
	wg.Go(func() {
		_, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
		assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Unsent})
	})
	require.NoError(t, here.Close())
	wg.Wait()
	<-ended
	for _, s := range []*streamer.Stream{p.a, p.b} {
		<-s.Done()
		assert.ErrorIs(t, s.Err(), &streamer.Error{Code: streamer.Closed})
		assert.Error(t, s.Close())
	}
	_, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
	assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Unsent})
	assert.ErrorIs(t, p.b.Lane(0).Send(t.Context(), streamer.NewMessage(nil, nil)),
		&streamer.Error{Code: streamer.Unsent})
}

func TestAbortTellsTheOtherEnd(t *testing.T) {
	p := connect(t, pairing{handlerb: func(ctx context.Context, _ *streamer.Exchange) { <-ctx.Done() }})
	errs := make(chan error, 1)
	go func() {
		_, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
		errs <- err
	}()
	p.a.Abort(streamer.CloseGoingAway, "idle")
	err := <-errs
	assert.True(t, errors.Is(err, &streamer.Error{Code: streamer.FateUnknown}) || errors.Is(err,
		&streamer.Error{Code: streamer.Unsent}), "%v", err)
	<-p.b.Done()
	var e *streamer.Error
	require.ErrorAs(t, p.b.Err(), &e)
	assert.Equal(t, streamer.GoingAway, e.Code)
	assert.True(t, e.Remote)
	assert.ErrorContains(t, e, "idle")
}

func TestCloseOfBothEndsAtOnce(t *testing.T) {
	for range 50 {
		p := connect(t, pairing{handlera: echo, handlerb: echo})
		var wg sync.WaitGroup
		for _, s := range []*streamer.Stream{p.a, p.b} {
			wg.Go(func() { _ = s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, nil)) })
			wg.Go(func() { assert.NoError(t, s.Close()) })
		}
		wg.Wait()
	}
}

func TestCloseGivesUpOnAHandlerThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, pairing{handlerb: func(ctx context.Context, _ *streamer.Exchange) { <-ctx.Done() }})
		errs := make(chan error, 1)
		go func() {
			_, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
			errs <- err
		}()
		synctest.Wait()
		assert.ErrorIs(t, p.a.Close(), &streamer.Error{Code: streamer.GoingAway})
		assert.ErrorIs(t, <-errs, &streamer.Error{Code: streamer.FateUnknown})
		<-p.b.Done()
	})
}

// A handler that has replied and reads on sees the end of the stream, whichever way that ends: it
// does not wait for the rest of a request that cannot come.
func TestHandlersThatReadBehindTheirReplySeeTheEnd(t *testing.T) {
	for name, end := range map[string]func(p *pair, conn net.Conn){
		"broken":  func(_ *pair, conn net.Conn) { _ = conn.Close() },
		"aborted": func(p *pair, _ net.Conn) { p.b.Abort(streamer.CloseGoingAway, "") },
		"closed":  func(p *pair, _ net.Conn) { _ = p.b.Close() },
		"left":    func(p *pair, _ net.Conn) { p.a.Abort(streamer.CloseGoingAway, "") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := inproc.Pipe(0)
				read := make(chan error, 1)
				p := connectOver(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
					assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, []byte("enough"))))
					_, err := io.ReadAll(x.Message().Body)
					read <- err
				}}, here, there)
				pending, w, err := p.a.Lane(0).Start(t.Context(), nil, -1)
				require.NoError(t, err)
				_, err = w.Write([]byte("some"))
				require.NoError(t, err)
				require.NoError(t, w.Flush())
				m, err := pending.Reply(t.Context())
				require.NoError(t, err)
				_, err = io.ReadAll(m.Body)
				require.NoError(t, err)
				synctest.Wait()
				end(p, here)
				assert.Error(t, <-read)
				_ = w.Close()
				_ = p.b.Close() // returns when the handler has
			})
		})
	}
}

func TestPeerThatDoesNotReadDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := meetInitiator(t, 10, streamer.Config{}, newRawCoder(), handHello.Limits)
		require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, make([]byte, 100000))))
		assert.ErrorIs(t, h.s.Close(), &streamer.Error{Code: streamer.GoingAway})
	})
}

func TestHelloThatDoesNotCome(t *testing.T) {
	coder := newRawCoder()
	initiator := streamer.Config{Initiator: true, Token: make([]byte, 16), Representation: 1, Coder: coder}
	responder := streamer.Config{Accept: func(context.Context, streamer.Hello) (streamer.Admission, error) {
		return streamer.Admission{Coder: coder}, nil
	}}
	for _, cfg := range []streamer.Config{initiator, responder} {
		synctest.Test(t, func(t *testing.T) {
			here, there := inproc.Pipe(0)
			_, err := streamer.Over(t.Context(), here, cfg)
			assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Closed})
			_, err = there.Write([]byte("x"))
			assert.Error(t, err, "the connection is closed")
		})
		synctest.Test(t, func(t *testing.T) {
			here, _ := inproc.Pipe(0)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := streamer.Over(ctx, here, cfg)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

func TestHelloRefused(t *testing.T) {
	accept := func(_ context.Context, h streamer.Hello) (streamer.Admission, error) {
		switch h.Token[0] {
		case 1:
			return streamer.Admission{}, &streamer.Refusal{CloseCode: streamer.CloseUnknownSession,
				Text: "no such session"}
		case 2:
			return streamer.Admission{}, errors.New("secret cause")
		}
		return streamer.Admission{Coder: newRawCoder()}, nil
	}
	scheme2 := append([]byte("\x01HHFR/1\n\x02"), 2, 0)
	stages := handHello
	stages.Stages = 4
	token := func(b byte) frame.Hello {
		h := handHello
		h.Token = append([]byte{b}, make([]byte, 15)...)
		return h
	}
	xml := handHello
	xml.Representation = 2
	for name, tc := range map[string]struct {
		in   []byte
		code streamer.Code
		text string
	}{
		"unknown session": {token(1).AppendTo(nil), streamer.UnknownSession, "no such session"},
		"cause stays":     {token(2).AppendTo(nil), streamer.Internal, ""},
		"scheme":          {scheme2, streamer.Unsupported, "offset 9: unsupported scheme: scheme 2"},
		"stages":          {stages.AppendTo(nil), streamer.Unsupported, "representation 1, stages 0x4"},
		"representation":  {xml.AppendTo(nil), streamer.Unsupported, "representation 2, stages 0x0"},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := inproc.Pipe(0)
			_, err := here.Write(tc.in)
			require.NoError(t, err)
			require.NoError(t,
				here.(interface{ CloseWrite() error }).CloseWrite()) // else what it sends is read for a while
			_, err = streamer.Over(t.Context(), there, streamer.Config{Representation: 1, Accept: accept})
			assert.ErrorIs(t, err, &streamer.Error{Code: tc.code})
			all, err := io.ReadAll(here)
			require.NoError(t, err)
			_, n, err := frame.Parse(all, 0, 0)
			require.NoError(t, err)
			f, _, err := frame.Parse(all[n:], 0, 0)
			require.NoError(t, err)
			assert.Equal(t, tc.code.String(), f.(frame.Close).Code.String())
			assert.Equal(t, tc.text, f.(frame.Close).Text)
		})
	}
	for name, first := range map[string][]byte{
		"plain HTTP":        []byte("GET / HTTP/1.1\r\n\r\n"),
		"another frame":     frame.Close{}.AppendTo(nil),
		"responder's hello": frame.Hello{Responder: true, Limits: handHello.Limits}.AppendTo(nil),
		"nothing":           nil,
	} {
		t.Run(name, func(t *testing.T) {
			here, there := inproc.Pipe(0)
			_, err := here.Write(first)
			require.NoError(t, err)
			require.NoError(t, here.(interface{ CloseWrite() error }).CloseWrite())
			_, err = streamer.Over(t.Context(), there, streamer.Config{Accept: accept})
			var e *streamer.Error
			require.ErrorAs(t, err, &e)
		})
	}
}

func TestInitiatorSeesWhyItIsRefused(t *testing.T) {
	here, there := inproc.Pipe(0)
	hello := handHello
	hello.Responder, hello.Token, hello.Representation = true, nil, 0
	_, err := there.Write(frame.Close{Code: frame.CloseUnknownSession, Text: "gone"}.AppendTo(hello.AppendTo(nil)))
	require.NoError(t, err)
	_, err = streamer.Over(t.Context(), here, streamer.Config{Initiator: true, Session: session, Token: make([]byte,
		16), Representation: 1, Coder: newRawCoder()})
	var e *streamer.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, streamer.UnknownSession, e.Code)
	assert.True(t, e.Remote)

	hello.Representation = 1
	for name, change := range map[string]func(*frame.Hello){
		"session":        func(h *frame.Hello) { h.Session[0]++ },
		"representation": func(h *frame.Hello) { h.Representation++ },
		"stages":         func(h *frame.Hello) { h.Stages++ },
	} {
		here, there := inproc.Pipe(0)
		other := hello
		change(&other)
		_, err := there.Write(other.AppendTo(nil))
		require.NoError(t, err)
		_, err = streamer.Over(t.Context(), here, streamer.Config{Initiator: true, Session: session, Token: make([]byte,
			16), Representation: 1, Coder: newRawCoder()})
		assert.Error(t, err, name)
	}
}

// A responder says in its hello that it does not take the session, and then why: whatever the
// reason is, it has processed nothing.
func TestLateRefusalMeansNothingWasProcessed(t *testing.T) {
	for _, code := range []frame.CloseCode{frame.CloseUnknownSession, frame.CloseLimits, frame.CloseInternal,
		frame.CloseUnsupported} {
		here, there := inproc.Pipe(0)
		s, err := streamer.Over(t.Context(), here, streamer.Config{Initiator: true, Session: session,
			Token:          make([]byte, 16),
			Representation: 1, Coder: newRawCoder(), Early: &frame.EarlyLimits})
		require.NoError(t, err)
		posted, errs := post(t, s, "one-way"), make(chan error, 1)
		go func() {
			_, err := s.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
			errs <- err
		}()
		var sent []byte
		for { // hello, and a request
			b := make([]byte, 4096)
			n, err := there.Read(b)
			require.NoError(t, err)
			sent = append(sent, b[:n]...)
			if _, n, _ = frame.Parse(sent, 0, 0); n > 0 && len(sent) > n {
				break
			}
		}
		hello := handHello
		hello.Responder, hello.Token, hello.Representation = true, nil, 0
		_, err = there.Write(frame.Close{Code: code}.AppendTo(hello.AppendTo(nil)))
		require.NoError(t, err)
		err = <-errs
		assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Unsent}, code.String())
		assert.ErrorIs(t, err, &streamer.Error{Code: 32 + streamer.Code(code)}, code.String())
		<-s.Done()
		assert.ErrorIs(t, posted.Err(), &streamer.Error{Code: streamer.Unsent}, code.String())
		require.NoError(t, there.Close())
	}
}

// Without that, a stream that breaks has an unknown part of the messages processed.
func TestBreakingRightAfterHelloLeavesFatesUnknown(t *testing.T) {
	h := meetInitiator(t, 10000, streamer.Config{}, newRawCoder(), handHello.Limits)
	errs := make(chan error, 1)
	go func() {
		_, err := h.s.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
		errs <- err
	}()
	until[frame.Data](h)
	h.write(frame.Close{Code: frame.CloseInternal})
	assert.ErrorIs(t, <-errs, &streamer.Error{Code: streamer.FateUnknown})
}

func TestConfigIsChecked(t *testing.T) {
	good := streamer.Config{Initiator: true, Token: make([]byte, 16), Representation: 1, Coder: newRawCoder()}
	for name, change := range map[string]func(*streamer.Config){
		"no coder":          func(c *streamer.Config) { c.Coder = nil },
		"short token":       func(c *streamer.Config) { c.Token = nil },
		"no representation": func(c *streamer.Config) { c.Representation = 0 },
		"no accept":         func(c *streamer.Config) { c.Initiator = false },
		"fragment":          func(c *streamer.Config) { c.Limits.MaxFragment = 100 },
		"negative limit":    func(c *streamer.Config) { c.Limits.MaxHeld = -1 },
		"negative queue":    func(c *streamer.Config) { c.QueueBytes = -1 },
	} {
		here, there := net.Pipe()
		cfg := good
		change(&cfg)
		_, err := streamer.Over(t.Context(), here, cfg)
		assert.ErrorIs(t, err, &streamer.Error{Code: streamer.BadConfig}, name)
		_, err = there.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF, name)
	}
}

// A call that nobody waits for does not keep the stream open when the peer has said that it
// sends no more.
func TestCallsWithoutAWaiterEndWithTheOtherEnd(t *testing.T) {
	h := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
	pending, err := h.s.Lane(1).Begin(t.Context(), streamer.NewMessage(nil, []byte("x")))
	require.NoError(t, err)
	until[frame.Data](h)
	h.write(frame.Close{})
	require.NoError(t, h.conn.(interface{ CloseWrite() error }).CloseWrite())
	assert.Equal(t, frame.CloseDone, until[frame.Close](h).Code, "not given up after a while")
	_, err = pending.Reply(t.Context())
	assert.ErrorIs(t, err, &streamer.Error{Code: streamer.FateUnknown})
}

// failing is a connection whose writes can be made to wait for a word: how many bytes they take
// before they fail, -1: all, and they do not.
type failing struct {
	net.Conn
	mu    sync.Mutex
	take  chan int
	waits chan struct{} // a write waits
}

func (c *failing) Write(p []byte) (int, error) {
	c.mu.Lock()
	take := c.take
	c.mu.Unlock()
	most := -1
	if take != nil {
		c.waits <- struct{}{}
		most = <-take
	}
	if most < 0 {
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:min(most, len(p))])
	return n, errors.Join(err, io.ErrShortWrite)
}

// TestWhatNeverLeftIsUnsent: a write that fails tells how much the connection took. What begins
// behind that was not sent.
func TestWhatNeverLeftIsUnsent(t *testing.T) {
	for name, tc := range map[string]struct {
		taken int
		first streamer.Code
	}{"nothing": {0, streamer.Unsent}, "an octet": {1, streamer.FateUnknown}} {
		t.Run(name, func(t *testing.T) {
			here, there := inproc.Pipe(0)
			conn := &failing{Conn: here}
			s := connectOver(t, pairing{handlerb: echo}, conn, there).a
			conn.mu.Lock()
			conn.take, conn.waits = make(chan int), make(chan struct{})
			conn.mu.Unlock()
			written := post(t, s, "0")
			<-conn.waits
			first := post(t, s, "1")
			second, err := s.Lane(1).Begin(t.Context(), streamer.NewMessage(nil, []byte("2")))
			require.NoError(t, err)
			conn.take <- -1
			<-conn.waits
			conn.take <- tc.taken
			_, err = second.Reply(t.Context())
			assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Unsent})
			<-s.Done()
			assert.ErrorIs(t, first.Err(), &streamer.Error{Code: tc.first})
			assert.ErrorIs(t, written.Err(), &streamer.Error{Code: streamer.FateUnknown})
		})
	}
}

// wholly is a connection behind a proxy that ends it when one of its directions has ended.
type wholly struct{ net.Conn }

func (c wholly) CloseWrite() error { return c.Close() }

// A stream ends in order also where what is between ends both directions with one.
func TestCloseBehindAProxyThatKnowsNoHalfOfAConnection(t *testing.T) {
	for _, first := range []string{"initiator", "responder"} {
		here, there := inproc.Pipe(0)
		p := connectOver(t, pairing{handlerb: echo}, wholly{here}, wholly{there})
		for range 10 {
			_, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, nil))
			require.NoError(t, err)
		}
		closing, other := p.a, p.b
		if first == "responder" {
			closing, other = other, closing
		}
		require.NoError(t, closing.Close(), first)
		<-other.Done()
		require.NoError(t, other.Err(), first)
	}
}
