package streamer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer"
)

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\n\r\n"

// upgraded is both ends of a connection that was upgraded; p is nil without first.
func upgraded(t *testing.T, here, there net.Conn, cfg streamer.Config, first streamer.ExchangeHandler) (a,
	b *streamer.Stream, p *streamer.Pending) {
	t.Helper()
	type accepted struct {
		s   *streamer.Stream
		err error
	}
	theirs := make(chan accepted, 1)
	go func() {
		c := cfg
		c.Session = session
		s, err := streamer.AcceptUpgraded(context.Background(), there, c, []byte(switching),
			streamer.Admission{Coder: newRawCoder(), Handler: echo, Token: []byte("the next token 1"),
				Lifetime: time.Hour}, 0, &streamer.Message{}, first)
		theirs <- accepted{s, err}
	}()
	head := make([]byte, len(switching))
	_, err := io.ReadFull(here, head)
	require.NoError(t, err)
	require.Equal(t, switching, string(head))
	cfg.Coder = newRawCoder()
	a, p, err = streamer.DialUpgraded(context.Background(), here, cfg, first != nil)
	require.NoError(t, err)
	of := <-theirs
	require.NoError(t, of.err)
	return a, of.s, p
}

func text(t *testing.T, m *streamer.Message, err error) string {
	t.Helper()
	require.NoError(t, err)
	data, err := m.ReadAll(1 << 30)
	require.NoError(t, err)
	return string(m.Head) + "|" + string(data)
}

func TestUpgradedRequestIsExchangeOne(t *testing.T) {
	here, there := inproc.Pipe(0)
	may := make(chan struct{})
	a, b, p := upgraded(t, here, there, streamer.Config{}, func(ctx context.Context, x *streamer.Exchange) {
		<-may
		assert.Equal(t, uint64(1), x.Number())
		assert.Zero(t, x.Lane())
		assert.NoError(t, x.Reply(ctx, streamer.NewMessage([]byte("head"), []byte("the first reply"))))
	})
	assert.Equal(t, session, a.Session(), "the responder's")
	assert.Equal(t, "the next token 1", string(a.Hello().Token))
	assert.Equal(t, uint64(3600), a.Hello().Lifetime)
	// Others go on meanwhile, as exchange 2 and so on, in both directions.
	for i := range 3 {
		m, err := a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte(fmt.Sprint(i))))
		assert.Contains(t, text(t, m, err), fmt.Sprint(i))
	}
	close(may)
	m, err := p.Reply(t.Context())
	assert.Equal(t, "head|the first reply", text(t, m, err))
	<-b.Met()
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

func TestUpgradeWithoutAnExchange(t *testing.T) {
	here, there := inproc.Pipe(0)
	a, b, p := upgraded(t, here, there, streamer.Config{}, nil)
	require.Nil(t, p)
	m, err := a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("x")))
	assert.Contains(t, text(t, m, err), "x")
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

// A reply that is longer than the credit before hello waits for that, and then comes whole; so does
// a failing one.
func TestLongReplyToTheUpgradedRequest(t *testing.T) {
	for name, limits := range map[string]streamer.Limits{"usual": {}, "narrow": {MaxFragment: 512, Window: 32 << 10,
		MaxExchanges: 1}} {
		here, there := inproc.Pipe(0)
		long := strings.Repeat("long ", 1<<18)
		a, b, p := upgraded(t, here, there, streamer.Config{Limits: limits}, func(ctx context.Context,
			x *streamer.Exchange) {
			assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, []byte(long))), name)
		})
		m, err := p.Reply(t.Context())
		require.Equal(t, "|"+long, text(t, m, err), name)
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
	here, there := inproc.Pipe(0)
	a, b, p := upgraded(t, here, there, streamer.Config{}, func(context.Context, *streamer.Exchange) {})
	_, err := p.Reply(t.Context())
	assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Failed})
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

func TestUpgradedStreamThatBreaksLeavesTheFateUnknown(t *testing.T) {
	here, there := inproc.Pipe(0)
	a, b, p := upgraded(t, here, there, streamer.Config{}, func(ctx context.Context,
		_ *streamer.Exchange) {
		<-ctx.Done()
	})
	_ = there.Close()
	_, err := p.Reply(t.Context())
	assert.ErrorIs(t, err, &streamer.Error{Code: streamer.FateUnknown})
	<-a.Done()
	<-b.Done()
}

func TestHelloThatDoesNotComeEndsAnUpgradedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := inproc.Pipe(0)
		go func() { _, _ = io.Copy(io.Discard, here) }()
		b, err := streamer.AcceptUpgraded(t.Context(), there, streamer.Config{Session: session,
			HelloTimeout: time.Minute}, []byte(switching),
			streamer.Admission{Coder: newRawCoder(), Handler: echo}, 0, nil, nil)
		require.NoError(t, err)
		began := time.Now()
		<-b.Done()
		assert.GreaterOrEqual(t, time.Since(began), time.Minute)
		assert.ErrorContains(t, b.Err(), "no hello of the peer within 1m0s")
		_ = here.Close()
	})
}

func TestHelloOfAnotherSessionEndsAnUpgradedStream(t *testing.T) {
	for name, change := range map[string]func(*frame.Hello){
		"session":        func(h *frame.Hello) { h.Session[0]++ },
		"stages":         func(h *frame.Hello) { h.Stages = 4 },
		"representation": func(h *frame.Hello) { h.Representation = 2 },
		"role":           func(h *frame.Hello) { h.Responder = true },
	} {
		here, there := inproc.Pipe(0)
		b, err := streamer.AcceptUpgraded(t.Context(), there, streamer.Config{Session: session}, nil,
			streamer.Admission{Coder: newRawCoder(), Handler: func(context.Context,
				*streamer.Exchange) {
				t.Error("served")
			}}, 0, nil, nil)
		require.NoError(t, err)
		hello := handHello
		hello.Token = nil
		change(&hello)
		_, err = here.Write(hello.AppendTo(nil))
		require.NoError(t, err)
		require.NoError(t, here.(interface{ CloseWrite() error }).CloseWrite())
		<-b.Done()
		var e *streamer.Error
		require.ErrorAs(t, b.Err(), &e, name)
		_ = here.Close()
	}
}

// What is sent before the responder's hello leaves with ours, in the first flight: a stream that
// was met before costs one round trip, with as many calls as the peer took then.
func TestEarlyMessagesLeaveWithHello(t *testing.T) {
	for name, tc := range map[string]struct {
		early frame.Limits
		trips int64
	}{
		"met before": {frame.Limits{MaxFragment: 16384, MaxMessage: 1 << 30, MaxShapes: 1024, MaxShapeBytes: 4 << 20,
			MaxExchanges: 256, Window: 256 << 10, MaxHeld: 1 << 20}, 1},
		"first contact": {frame.EarlyLimits, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, err := link.Relay(nil, link.Profile{Bandwidth: 1e9, RTT: time.Second})
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			here, there, err := l.Pipe()
			require.NoError(t, err)
			met := make(chan *streamer.Stream, 1)
			go func() {
				s, err := streamer.Over(context.Background(), there, streamer.Config{Accept: func(context.Context,
					frame.Hello) (streamer.Admission, error) {
					return streamer.Admission{Coder: newRawCoder(), Handler: echo, Promised: tc.early}, nil
				}, Limits: streamer.Limits{Window: 32 << 10}})
				assert.NoError(t, err)
				met <- s
			}()
			began := time.Now()
			a, err := streamer.Over(context.Background(), here, streamer.Config{Initiator: true, Session: session,
				Token:          make([]byte, 16),
				Representation: 1, Coder: newRawCoder(), Early: &tc.early})
			require.NoError(t, err)
			assert.Zero(t, time.Since(began))
			errs := make(chan error, 100)
			for i := range 100 {
				go func() {
					m, err := a.Lane(0).Call(context.Background(), streamer.NewMessage(nil, []byte(fmt.Sprint("call ",
						i))))
					if err == nil {
						_, err = m.ReadAll(100)
					}
					errs <- err
				}()
			}
			for range 100 {
				require.NoError(t, <-errs)
			}
			assert.Equal(t, tc.trips, int64(time.Since(began)/time.Second), name)
			require.NoError(t, errors.Join(a.Close(), (<-met).Close()))
		})
	}
}

// Who states a max fragment below that of early messages takes these all the same: the peer has not
// read its hello yet, on a link that takes time.
func TestEarlyMessagesAreLongerThanIsStated(t *testing.T) {
	narrow := streamer.Config{Limits: streamer.Limits{MaxFragment: 512}}
	long := strings.Repeat("long ", 1000)
	pipe := func(t *testing.T) (here, there net.Conn, done func()) {
		l, err := link.Relay(nil, link.Profile{Bandwidth: 1e9, RTT: time.Second})
		require.NoError(t, err)
		here, there, err = l.Pipe()
		require.NoError(t, err)
		return here, there, func() { _ = l.Close() }
	}
	t.Run("a request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			here, there, done := pipe(t)
			defer done()
			met := make(chan *streamer.Stream, 1)
			go func() {
				cfg := narrow
				cfg.Accept = func(context.Context, frame.Hello) (streamer.Admission, error) {
					return streamer.Admission{Coder: newRawCoder(), Handler: echo, Promised: frame.EarlyLimits}, nil
				}
				s, err := streamer.Over(context.Background(), there, cfg)
				assert.NoError(t, err)
				met <- s
			}()
			a, err := streamer.Over(context.Background(), here, streamer.Config{Initiator: true, Session: session,
				Token: make([]byte, 16), Representation: 1, Coder: newRawCoder(), Early: &frame.EarlyLimits})
			require.NoError(t, err)
			m, err := a.Lane(0).Call(context.Background(), streamer.NewMessage(nil, []byte(long)))
			assert.Contains(t, text(t, m, err), long)
			require.NoError(t, errors.Join(a.Close(), (<-met).Close()))
		})
	})
	t.Run("the reply to an upgraded one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			here, there, done := pipe(t)
			defer done()
			a, b, p := upgraded(t, here, there, narrow, func(ctx context.Context, x *streamer.Exchange) {
				assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, []byte(long))))
			})
			m, err := p.Reply(context.Background())
			assert.Equal(t, "|"+long, text(t, m, err))
			require.NoError(t, errors.Join(a.Close(), b.Close()))
		})
	})
}

// A peer that answers the first flight with anything but a hello speaks no hhfr: what was sent was
// not processed.
func TestEarlyMessagesToAStrangerAreUnsent(t *testing.T) {
	early := frame.EarlyLimits
	for _, says := range []string{"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "<html>\r\n",
		"\x15\x03\x01\x00\x02\x02\x0a", "\x01HTTP"} {
		here, there := inproc.Pipe(0)
		go func() {
			_, _ = there.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(there, says)
			_, _ = io.Copy(io.Discard, there)
			_ = there.Close()
		}()
		a, err := streamer.Over(t.Context(), here, streamer.Config{Initiator: true, Session: session,
			Token:          make([]byte, 16),
			Representation: 1, Coder: newRawCoder(), Early: &early})
		require.NoError(t, err)
		_, err = a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("call")))
		require.ErrorIs(t, err, &streamer.Error{Code: streamer.Unsent}, says)
		<-a.Done()
		require.ErrorContains(t, a.Err(), "does not begin with the peer's hello")
	}
}

// A peer cannot say what only this end knows: whatever number it gives as a reason, its word never
// means that a message was not sent.
func TestReasonsThatNobodyKnows(t *testing.T) {
	for _, code := range []frame.CancelCode{8, 16, 17, 18, 33, 255} {
		h := meetInitiator(t, 10000, streamer.Config{}, newRawCoder(), handHello.Limits)
		errs := make(chan error, 1)
		go func() {
			_, err := h.s.Lane(0).Call(context.Background(), streamer.NewMessage(nil, nil))
			errs <- err
		}()
		d := until[frame.Data](h)
		h.write(frame.Cancel{Message: frame.Key{Exchange: max(d.Exchange, 1)}, Refused: true, Code: code})
		err := <-errs
		var e *streamer.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, streamer.Failed, e.Code, "%d: %v", code, err)
		assert.True(t, e.Remote)
	}
	for _, code := range []frame.CloseCode{8, 240, 241, 255} {
		h := meetInitiator(t, 10000, streamer.Config{}, newRawCoder(), handHello.Limits)
		errs := make(chan error, 1)
		go func() {
			_, err := h.s.Lane(0).Call(context.Background(), streamer.NewMessage(nil, nil))
			errs <- err
		}()
		until[frame.Data](h)
		h.write(frame.Close{Code: code})
		err := <-errs
		assert.ErrorIs(t, err, &streamer.Error{Code: streamer.FateUnknown}, "%d", code)
		assert.ErrorIs(t, err, &streamer.Error{Code: streamer.Internal}, "%d", code)
		assert.NotErrorIs(t, err, &streamer.Error{Code: streamer.Unsent}, "%d", code)
	}
}
