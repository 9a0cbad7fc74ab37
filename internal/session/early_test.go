package session_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// bySky is a session over UDP by a satellite, which was met before, and the service behind it.
type bySky struct {
	t       *testing.T
	by      *linked
	cfg     session.Config
	handler *responder.Handler
	down    atomic.Bool // HTTP does not get there
	mu      sync.Mutex
	heard   map[string]int
}

// skyURL is that of the service.
const skyURL = "http://127.0.0.1/soap"

func (b *bySky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := new(strings.Builder)
	r.Body = io.NopCloser(io.TeeReader(r.Body, text))
	repeat(w, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard[strings.TrimSuffix(strings.TrimPrefix(text.String(), "<e>"), "</e>")]++
}

// RoundTrip is the way of HTTP.
func (b *bySky) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	return inProcess{b.handler}.RoundTrip(req)
}

func (b *bySky) times(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard[text]
}

// overSky has play begin where a first session has ended, whose sequence goes on. It runs in a
// bubble.
func overSky(t *testing.T, change func(*session.Config), play func(t *testing.T, b *bySky)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bySky{t: t, heard: map[string]int{}}
		h, err := responder.NewHandler(b, responder.Config{Store: newLasting(t),
			Addresses: map[string]string{"udp": ":1", "tcp": ":1"}})
		require.NoError(t, err)
		b.handler, b.by = h, &linked{t: t, to: h, profile: "geo"}
		b.cfg = session.Config{
			Mode: negotiate.Auto, HTTPClient: &http.Client{Transport: b}, Store: newStore(t),
			Transports: map[string]streamer.Transport{"udp": b.by}, Assurance: wsrm.AtLeastOnce,
		}
		change(&b.cfg)
		s := dial(t, skyURL, b.cfg)
		say(t, s, "first")
		require.NoError(t, s.Close())
		synctest.Wait()
		assert.Zero(t, b.by.early)
		play(t, b)
		require.NoError(t, h.Close())
		b.by.wait.Wait()
	})
}

func asItIs(*session.Config) {}

// Only messages that can get lost or arrive twice without harm leave before there is an answer:
// those of sequences that outlive streams.
func TestOnlyKeptSequencesAreDialedEarly(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*session.Config)
		early  int
	}{
		"at most once":           {func(c *session.Config) { c.Assurance, c.Mode = 0, negotiate.Auto }, 0},
		"at most once, in order": {func(c *session.Config) { c.Assurance, c.Ordered = wsrm.AtMostOnce, true }, 0},
		"at least once":          {asItIs, 1},
		"exactly once": {func(c *session.Config) { c.Assurance, c.Store = wsrm.ExactlyOnce, newLasting(t) },
			1},
	} {
		t.Run(name, func(t *testing.T) {
			overSky(t, tc.change, func(t *testing.T, b *bySky) {
				s := dial(t, skyURL, b.cfg)
				say(t, s, "again")
				require.NoError(t, s.Close())
				assert.Equal(t, tc.early, b.by.early)
				assert.Equal(t, 1, b.times("again"))
			})
		})
	}
}

// A session that nobody answers at the remembered address goes on by an offer, though it reconnects
// for nothing else; what had left is processed once.
func TestEarlyDialWithoutAnswer(t *testing.T) {
	overSky(t, asItIs, func(t *testing.T, b *bySky) {
		b.by.next = "geo,loss=100%"
		began := time.Now()
		s := dial(t, skyURL, b.cfg)
		assert.Zero(t, time.Since(began))
		say(t, s, "into the dark")
		assert.Less(t, time.Since(began), 12*time.Second)
		assert.Equal(t, negotiate.Explicit, s.Agreed().Mode)
		require.NoError(t, s.Close())
		assert.Equal(t, 1, b.times("into the dark"))
		assert.Equal(t, 1, b.by.early)
	})
}

// vacant is a transport to where nobody listens.
type vacant struct{ *linked }

func (v vacant) DialEarly(context.Context, string) (net.Conn, error) {
	v.early++
	conn, end := net.Pipe()
	_ = end.Close()
	return refusing{conn}, nil
}

func (v vacant) Dial(context.Context, string) (net.Conn, error) { return nil, errRefused }

var errRefused = &net.OpError{Op: "dial", Net: "udp", Err: os.NewSyscallError("read", syscall.ECONNREFUSED)}

type refusing struct{ net.Conn }

func (refusing) Write(p []byte) (int, error) { return len(p), nil }

// Read says so a round trip later.
func (refusing) Read([]byte) (int, error) {
	time.Sleep(time.Millisecond)
	return 0, errRefused
}

// Where nobody listens at the remembered address, and no offer gets through, messages stay in the
// store, the error says why, and the session is still one that was met: it goes on in one round
// trip when somebody is there again.
func TestEarlyDialToNobodyLosesNothing(t *testing.T) {
	overSky(t, asItIs, func(t *testing.T, b *bySky) {
		cfg := b.cfg
		cfg.Transports = map[string]streamer.Transport{"udp": vacant{b.by}}
		b.down.Store(true)
		s := dial(t, skyURL, cfg)
		_, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("<e>kept</e>")))
		assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Kept})
		assert.ErrorContains(t, err, "connection refused")
		_ = s.Close() // its stream is gone
		synctest.Wait()
		require.Contains(t, stored(t, cfg.Store), session.MetPrefix)
		assert.Zero(t, b.times("kept"))

		s = dial(t, skyURL, b.cfg)
		say(t, s, "somebody is there")
		assert.Equal(t, negotiate.Met, s.Agreed().Mode)
		require.NoError(t, s.Close())
		assert.Equal(t, 1, b.times("kept"))
		assert.Equal(t, 2, b.by.early)
	})
}

// Somebody plays the recorded first flight of a session again, when the listener has forgotten it:
// the token in it is spent, nothing is processed, and the address that it seems to come from is
// sent at most three times as much.
func TestEarlyFlightPlayedAgain(t *testing.T) {
	overSky(t, asItIs, func(t *testing.T, b *bySky) {
		s := dial(t, skyURL, b.cfg)
		say(t, s, "once")
		require.NoError(t, s.Close())
		flight := b.by.near.sent.got()
		require.Equal(t, datagram.Early, flight[0].Kind)

		p, err := link.ParseProfile("geo")
		require.NoError(t, err)
		near, far, err := link.Packets(nil, p)
		require.NoError(t, err)
		watch := &watched{PacketConn: far}
		l, err := udp.Listen(watch, udp.Config{})
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- b.handler.ServeStreams(t.Context(), l) }()
		came := 0
		for range 3 {
			for _, d := range flight {
				if d.Kind == datagram.Early {
					raw := append([]byte{byte(datagram.Early), 0, 0, 0, 0, 0, 0, 0, 9}, d.Packet...)
					came += len(raw)
					_, err := near.WriteTo(raw, nil)
					require.NoError(t, err)
				}
			}
			time.Sleep(20 * time.Second)
			sent := 0
			for _, d := range watch.sent.got() {
				require.Equal(t, datagram.Answer, d.Kind)
				sent += 17 + len(d.Packet)
			}
			assert.Positive(t, sent)
			assert.LessOrEqual(t, sent, 3*came)
		}
		assert.Equal(t, 1, b.times("once"))
		require.NoError(t, l.Close())
		require.NoError(t, <-served)
		require.NoError(t, near.Close())

		s = dial(t, skyURL, b.cfg)
		say(t, s, "goes on")
		assert.Equal(t, negotiate.Met, s.Agreed().Mode, "who was met is none the worse for it")
		require.NoError(t, s.Close())
	})
}

// A first contact has no token that speaks for an address, so nobody makes it by datagrams.
func TestNoFirstContactByDatagrams(t *testing.T) {
	h, err := responder.NewHandler(http.HandlerFunc(repeat), responder.Config{
		Store: newStore(t), Addresses: map[string]string{"udp": ":1", "tcp": ":1"},
	})
	require.NoError(t, err)
	l, err := udp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- h.ServeStreams(context.Background(), l) }()
	for name, open := range map[string]func(context.Context, string) (net.Conn, error){
		"early": udp.Transport{}.DialEarly, "dialed": udp.Transport{}.Dial,
	} {
		conn, err := open(t.Context(), l.Addr().String())
		require.NoError(t, err)
		hello := frame.Hello{Session: [16]byte{9}, Target: skyURL, Representation: 1, Stages: streamer.AllStages,
			Limits: streamer.EarlyLimits}
		_, err = conn.Write(hello.AppendTo(nil))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(eventually)))
		var got []byte
		var f any
		for n := 0; n == 0; {
			some := make([]byte, 1000)
			read, err := conn.Read(some)
			require.NoError(t, err, name)
			got = append(got, some[:read]...)
			f, n, err = frame.Parse(got, 0, 0)
			require.NoError(t, err, name)
		}
		assert.Zero(t, f.(frame.Hello).Representation, name)
		require.NoError(t, conn.Close())
	}
	require.NoError(t, h.Close())
	require.NoError(t, <-served)
}
