package session_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// offerFrom makes an offer in the name of a peer.
func offerFrom(t testing.TB, h http.Handler, peer string) *httptest.ResponseRecorder {
	offer := bytes.NewReader(offerMessage(t, soap.V11))
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/svc", offer)
	req.RemoteAddr = peer
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func answerFrom(t testing.TB, h http.Handler, peer string) *negotiate.Answer {
	a, err := negotiate.ParseAnswer(offerFrom(t, h, peer).Body.Bytes())
	require.NoError(t, err)
	return a
}

// joins reports whether a session that was negotiated can still be joined.
func (s *services) joins(t testing.TB, a *negotiate.Answer) error {
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.stream.Addr().String())
	require.NoError(t, err)
	stream, err := streamer.Over(t.Context(), conn, streamer.Config{
		Initiator: true, Session: a.Session, Token: a.Token[:], Representation: 1, Coder: textCoder(),
	})
	if err == nil {
		t.Cleanup(func() { _ = stream.Close() })
	}
	return err
}

// The sessions of a peer that makes offers and joins none are dropped for its own, and keep nobody
// from a stream: neither peers that were answered before, nor those that come later; and the store
// has no more contexts than the limit of sessions.
func TestOffersThatNobodyJoins(t *testing.T) {
	const sessions = 64
	s := startServices(t, func(c *responder.Config) { c.MaxSessions = sessions })
	h := s.Handler(http.NotFoundHandler())
	require.NoError(t, s.joins(t, answerFrom(t, h, "192.0.2.1:5000")), "one that is joined already")
	slow := answerFrom(t, h, "192.0.2.2:5000")
	flood := func() (last *negotiate.Answer) {
		for i := range 4 * sessions {
			for _, peer := range []string{"203.0.113.7:%d", "[2001:db8::%x]:80", "[::ffff:203.0.113.8]:%d"} {
				last = answerFrom(t, h, fmt.Sprintf(peer, i+1))
			}
		}
		return last
	}
	newest := flood()
	assert.LessOrEqual(t, strings.Count(stored(t, s.store), "<n:Session>"), sessions)
	require.NoError(t, s.joins(t, slow), "a peer that was answered before the flood")
	require.NoError(t, s.joins(t, newest), "the newest are there still")
	flood()
	cfg := config(t)
	assert.True(t, dial(t, s.http.URL, cfg).Agreed().HHFR, "a peer that comes after it")

	// One address alone has no more than its share.
	alone := startServices(t, func(c *responder.Config) { c.MaxSessions, c.MaxPerPeer = sessions, 2 })
	h = alone.Handler(http.NotFoundHandler())
	first := answerFrom(t, h, "192.0.2.1:1")
	require.NoError(t, alone.joins(t, answerFrom(t, h, "192.0.2.1:2")))
	require.NoError(t, alone.joins(t, answerFrom(t, h, "192.0.2.1:3")), "in the place of the first")
	assert.NotContains(t, stored(t, alone.store), first.Session.String())
	refused := offerFrom(t, h, "192.0.2.1:4").Code
	assert.Equal(t, http.StatusInternalServerError, refused, "all that the peer may have are joined")
	assert.Equal(t, http.StatusOK, offerFrom(t, h, "192.0.2.9:5").Code)
}

// A responder at its limit may have a slot in a moment: no store, and no RoundTripper, remembers
// that it refused.
func TestNoRoomIsRememberedByNobody(t *testing.T) {
	s := startServices(t, func(c *responder.Config) { c.MaxSessions = 1 })
	clock := newLater()
	cfg := config(t)
	store := memory.New(memory.Config{Clock: clock})
	t.Cleanup(func() { _ = store.Close() })
	cfg.Store, cfg.Clock = store, clock

	holder := dial(t, s.http.URL, config(t))
	require.True(t, holder.Agreed().HHFR)
	refused := dial(t, s.http.URL, cfg).Agreed()
	assert.False(t, refused.HHFR)
	assert.True(t, refused.NoRoom())
	client, rt := swapped(t, func(c *session.Config) { c.Clock, c.Coders = clock, textCoders })
	post(t, client, s.http.URL, "text/xml", strings.NewReader(envelope("<a/>")))
	sess, ok := rt.Session(s.http.URL)
	require.True(t, ok)
	assert.False(t, sess.Agreed().HHFR)

	require.NoError(t, holder.Close())
	require.Eventually(t, func() bool { // the responder has to see the end
		now := dial(t, s.http.URL, cfg)
		defer func() { _ = now.Close() }()
		assert.False(t, now.Agreed().Remembered)
		return now.Agreed().HHFR
	}, time.Minute, 10*time.Millisecond)
	_, err := store.Get(t.Context(), "urn:hhfr:negotiation:1:plain:"+s.http.URL)
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.NotFound})
	require.Eventually(t, func() bool {
		clock.forward(10 * time.Second)
		post(t, client, s.http.URL, "text/xml", strings.NewReader(envelope("<a/>")))
		sess, ok := rt.Session(s.http.URL)
		return ok && sess.Agreed().HHFR
	}, time.Minute, 10*time.Millisecond)
}

// crowd is a listener whose first connections are those of one peer that sends nothing, also not
// when the connection is closed: they close as connections over datagrams do, which wait for the
// peer.
type crowd struct {
	net.Listener
	left int
	gone chan struct{} // closed: those that wait for the peer continue
}

func (l *crowd) Accept() (net.Conn, error) {
	if l.left--; l.left >= 0 {
		here, _ := net.Pipe()
		return &silent{here, l.gone}, nil
	}
	return l.Listener.Accept()
}

type silent struct {
	net.Conn
	gone chan struct{}
}

func (c *silent) RemoteAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 5000} }
func (c *silent) Abort() error         { return c.Conn.Close() }

func (c *silent) Close() error {
	<-c.gone
	return c.Conn.Close()
}

// A peer that is turned away, and does not answer that, keeps nobody waiting.
func TestTurningAwayWaitsForNobody(t *testing.T) {
	gone := make(chan struct{})
	s := startServicesOn(t, func(l net.Listener) net.Listener { return &crowd{l, 5, gone} }, func(c *responder.Config) {
		c.MaxSessions, c.MaxPerPeer = 8, 2
	})
	t.Cleanup(func() { close(gone) }) // before the services end
	cfg := config(t)
	cfg.Timeout = 5 * time.Second
	sess := dial(t, s.http.URL, cfg)
	require.True(t, sess.Agreed().HHFR, sess.Agreed().Why)
	_, body := call(t, sess, "", envelope("<a/>"))
	assert.Equal(t, envelope("<a/>"), body)
}

// reluctant is a listener that has no file descriptor at first.
type reluctant struct {
	net.Listener
	left int
}

func (l *reluctant) Accept() (net.Conn, error) {
	if l.left--; l.left >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// A responder whose listener can accept nothing for a while continues afterwards.
func TestResponderWithoutDescriptors(t *testing.T) {
	s := startServicesOn(t, func(l net.Listener) net.Listener { return &reluctant{l, 3} }, nil)
	sess := dial(t, s.http.URL, config(t))
	require.True(t, sess.Agreed().HHFR, sess.Agreed().Why)
	_, body := call(t, sess, "", envelope("<a/>"))
	assert.Equal(t, envelope("<a/>"), body)
	require.NoError(t, sess.Close())
	require.NoError(t, s.Close())
	require.NoError(t, <-s.served)
}
