package accept_test

import (
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/pkg/clock"
)

func TestPeersAreAddressesOrNetworks(t *testing.T) {
	for addr, peer := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::/64",
		"[2001:db8::ff]:81": "2001:db8::/64", "[fe80::1%eth0]:80": "fe80::/64", "inproc": "", "": "", "@": "",
	} {
		assert.Equal(t, peer, accept.Peer(addr), addr)
	}
}

// reluctant is a listener of the test that cannot accept at first.
type reluctant struct {
	net.Listener
	errs []error
}

func (l *reluctant) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	return l.Listener.Accept()
}

// endless is a listener that never has a descriptor, until it is closed.
type endless struct{ closed chan struct{} }

func (l *endless) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
		return nil, syscall.EMFILE
	}
}

func (l *endless) Close() error   { close(l.closed); return nil }
func (l *endless) Addr() net.Addr { return &net.TCPAddr{} }

func listen(t *testing.T) net.Listener {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func connect(t *testing.T, l net.Listener) net.Conn {
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Temporary errors are waited out, with one warning for each period of shortage; other errors are
// those of the listener.
func TestSteadyWaitsOutWhatPasses(t *testing.T) {
	var log strings.Builder
	clock := &jumping{Clock: clock.Real()}
	l := &reluctant{Listener: listen(t)}
	steady := accept.Steady(l, clock, slog.New(slog.NewTextHandler(&log, nil)))
	accepts := func() {
		c := connect(t, l.Listener)
		got, err := steady.Accept()
		require.NoError(t, err)
		assert.Equal(t, c.LocalAddr().String(), got.RemoteAddr().String())
		require.NoError(t, got.Close())
	}
	l.errs = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	accepts()
	l.errs = []error{syscall.EMFILE}
	accepts()
	assert.Equal(t, 1, strings.Count(log.String(), "cannot accept connections"))
	assert.Contains(t, log.String(), "too many open files")
	clock.by += time.Hour
	l.errs = []error{syscall.EMFILE, syscall.EMFILE}
	accepts()
	assert.Equal(t, 2, strings.Count(log.String(), "cannot accept connections"))
	l.errs = []error{syscall.EINVAL}
	_, err := steady.Accept()
	require.ErrorIs(t, err, syscall.EINVAL)
	require.NoError(t, steady.Close())
	_, err = steady.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// jumping is a clock that the test sets forward; it does not wait.
type jumping struct {
	clock.Clock
	by time.Duration
}

func (j *jumping) Now() time.Time { return j.Clock.Now().Add(j.by) }

func (j *jumping) NewTimer(time.Duration) clock.Timer { return j.Clock.NewTimer(0) }

// A listener that is closed while it has no descriptor ends at once, and is not retried for ever.
func TestSteadyIsClosedInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := accept.Steady(&endless{make(chan struct{})}, clock.Real(), slog.New(slog.DiscardHandler))
		done := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			done <- err
		}()
		time.Sleep(time.Hour)
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-done, net.ErrClosed)
	})
}

// Peers get no more than their share, all together no more than the maximum, and slots that are
// released are free again.
func TestRoom(t *testing.T) {
	var log strings.Builder
	room := &accept.Room{Max: 6, PerPeer: 4, Log: slog.New(slog.NewTextHandler(&log, nil))}
	addr := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	var leave []func()
	enter := func(ip string) bool {
		l, ok := room.Enter(addr(ip))
		if ok {
			leave = append(leave, l)
		}
		return ok
	}
	for range 4 {
		require.True(t, enter("192.0.2.1"))
	}
	for range 9 {
		require.False(t, enter("192.0.2.1"), "its share")
	}
	require.True(t, enter("192.0.2.2"))
	require.True(t, enter("2001:db8::1"))
	for range 9 {
		require.False(t, enter("192.0.2.3"), "all")
	}
	assert.Equal(t, 2, strings.Count(log.String(), "too many connections"), "one warning for each state")
	leave[0]()
	leave[0]()
	require.True(t, enter("192.0.2.1"))
	require.False(t, enter("192.0.2.1"), "a place is given back once")
	assert.Equal(t, 2, strings.Count(log.String(), "too many connections"), "it was hardly better")
	for _, l := range leave {
		l()
	}
	leave = nil
	for range 4 {
		require.True(t, enter("192.0.2.1"))
	}
	require.False(t, enter("192.0.2.1"))
	assert.Equal(t, 3, strings.Count(log.String(), "too many connections"))
}

// Connections beyond the bound are refused, of HTTP by a reply; one that is closed frees a slot,
// and half-closing is passed on.
func TestLimit(t *testing.T) {
	l := listen(t)
	limited := accept.Limit(l, &accept.Room{Max: 1}, nil)
	first := connect(t, l)
	got, err := limited.Accept()
	require.NoError(t, err)
	refused := connect(t, l)
	next := make(chan net.Conn, 1)
	go func() {
		c, _ := limited.Accept()
		next <- c
	}()
	_, err = io.WriteString(refused, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	reply, err := io.ReadAll(refused)
	require.NoError(t, err)
	assert.Regexp(t, "^HTTP/1.1 503 (.|\n)*Retry-After: 5\r\n", string(reply))
	stranger := connect(t, l)
	_, err = io.WriteString(stranger, "no HTTP\r\n")
	require.NoError(t, err)
	reply, err = io.ReadAll(stranger)
	require.NoError(t, err)
	assert.Empty(t, reply)
	require.NoError(t, got.(interface{ CloseWrite() error }).CloseWrite())
	_, err = first.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, got.Close())
	last := connect(t, l)
	got = <-next
	assert.Equal(t, last.LocalAddr().String(), got.RemoteAddr().String())
	require.NoError(t, got.Close())
}
