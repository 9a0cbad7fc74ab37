// Package oneport lets one listener serve HTTP and streams: it distinguishes connections by their
// first bytes, makes these bytes readable again, and hands the connections out by two listeners of
// its own.
//
// Without a certificate a connection that begins with hello's mark (docs/wire-format.md, section 3)
// is a stream, any other one is HTTP's. With one ([Config].TLS) the port takes TLS only: a client
// that selects [Protocol] by ALPN has a stream, one that selects something else speaks HTTP. For a
// client without ALPN the first bytes inside TLS decide, as in cleartext. A client that speaks HTTP
// without TLS is told to use https; other cleartext is closed.
//
// A silent connection is HTTP's after [Config].Silence, since net/http bounds silent clients by
// itself, and since a server behind a proxy may be the one to speak first. Connections of a kind
// not yet known are bounded in number, in all and for each peer, and in time.
package oneport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/pkg/clock"
)

// Protocol is the ALPN name of streams in TLS.
const Protocol = "hhfr/1"

// Config configures a [Port]. The zero value takes cleartext.
type Config struct {
	// TLS, if given, makes the port take TLS only; it is copied. Its NextProtos are what HTTP
	// clients may select, without [Protocol]; empty means http/1.1 alone. A caller that adds h2 is
	// responsible for HTTP/2: net/http speaks it only over a bare *tls.Conn. A server whose
	// connections are wrapped above this package, for example by a recorder, would select it and
	// then not understand it. Streams have TLS 1.3 regardless of MinVersion.
	TLS *tls.Config
	// NoStreams: every connection is HTTP's, in TLS or not, and clients cannot select [Protocol].
	NoStreams bool
	// Own, if given, decides about connections that begin with hello's mark: by the bytes so far it
	// reports whether the stream is this server's, or that more bytes are needed. A stream that is
	// not its own is HTTP's, which may forward it. ctx ends with the available time. nil: all are.
	Own func(ctx context.Context, start []byte) (own, more bool)
	// Silence is how long a connection may be silent before it is HTTP's; 0 means [DefaultSilence].
	Silence time.Duration
	// Timeout is how long a connection may take to show its kind, TLS handshake included; 0 means
	// [DefaultTimeout]. After that a connection in a handshake is closed; any other one is HTTP's.
	Timeout time.Duration
	// MaxSniffed is how many connections are inspected at once; 0 means [DefaultMaxSniffed]. Few
	// further ones are, for a second, so that whoever accepts them can tell them that there are too
	// many; others are closed.
	MaxSniffed int
	// MaxPerPeer is how many of them one IP address may have, or one IPv6 network of 64 bits; 0
	// means half of MaxSniffed.
	MaxPerPeer int
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log receives failed handshakes and connections beyond the limits; nil: nothing is logged.
	Log *slog.Logger
}

// Port is a listener for everything. All methods are safe for concurrent use.
type Port struct {
	cfg      Config
	secure   *tls.Config // nil: cleartext
	listener net.Listener
	http     *half
	streams  *half
	room     accept.Room
	beyond   accept.Refusals

	ctx   context.Context
	stop  context.CancelFunc
	wait  sync.WaitGroup
	close sync.Once

	failed chan struct{} // closed when the listener has failed with err
	err    error
}

// New makes a port accept the connections of l, which it closes in the end. Both [Port.HTTP] and
// [Port.Streams] must be accepted from, or closed. The caller closes the port, or both.
func New(l net.Listener, cfg Config) *Port {
	cfg.Silence, cfg.Timeout = cmp.Or(cfg.Silence, DefaultSilence), cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.MaxSniffed = cmp.Or(cfg.MaxSniffed, DefaultMaxSniffed)
	cfg.MaxPerPeer = cmp.Or(cfg.MaxPerPeer, max(cfg.MaxSniffed/2, 1))
	cfg.Clock = cmp.Or(cfg.Clock, clock.Real())
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	p := &Port{cfg: cfg, listener: accept.Steady(l, cfg.Clock, cfg.Log), failed: make(chan struct{})}
	p.room.Max, p.room.PerPeer, p.room.Log = cfg.MaxSniffed, cfg.MaxPerPeer, cfg.Log
	protocols := []string{Protocol}
	if cfg.NoStreams {
		protocols = nil
		p.cfg.Own = func(context.Context, []byte) (own, more bool) { return false, false }
	}
	if cfg.TLS != nil {
		p.secure = serverConfig(cfg.TLS, protocols)
	}
	p.http, p.streams = newHalf(p), newHalf(p)
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.wait.Go(p.run)
	return p
}

// HTTP returns the listener of connections that are no streams: each is a [*PeekedConn], or a
// *tls.Conn whose client selected a protocol of HTTP. net/http sees the TLS of both.
func (p *Port) HTTP() net.Listener { return p.http }

// Streams returns the listener of connections that begin with hello's mark, or selected [Protocol].
func (p *Port) Streams() net.Listener { return p.streams }

// Addr is the address of the listener.
func (p *Port) Addr() net.Addr { return p.listener.Addr() }

// Close accepts nothing more, and waits for all that the port started. It closes the connections
// that were not handed out yet, but for those of which something was read and that are accepted at
// once. It is idempotent.
func (p *Port) Close() error {
	var err error
	p.close.Do(func() {
		p.stop()
		err = p.listener.Close()
		p.wait.Wait()
		p.http.shut()
		p.streams.shut()
	})
	if errors.Is(err, net.ErrClosed) {
		return nil // by its creator
	}
	return err
}

// run accepts connections, each of which is inspected on its own: none waits for another.
func (p *Port) run() {
	for {
		conn, err := p.listener.Accept()
		if err != nil && p.ctx.Err() == nil {
			p.err = err
			close(p.failed)
		}
		if err != nil {
			return
		}
		within := p.cfg.Timeout
		leave, ok := p.room.Enter(conn.RemoteAddr())
		if !ok {
			within = min(within, accept.RefusalTime)
			leave, ok = p.beyond.Enter(conn.RemoteAddr())
		}
		if !ok {
			_ = conn.Close()
			continue
		}
		p.wait.Go(func() {
			defer leave()
			p.sniff(conn, within)
		})
	}
}

// half is one of the two listeners of a port.
type half struct {
	port   *Port
	conns  chan net.Conn // unbuffered: every connection in it has an owner
	once   sync.Once
	closed chan struct{}
}

func newHalf(p *Port) *half {
	return &half{port: p, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements [net.Listener].
func (h *half) Accept() (net.Conn, error) {
	if h.isClosed() {
		return nil, h.error(net.ErrClosed)
	}
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.closed:
		return nil, h.error(net.ErrClosed)
	case <-h.port.failed:
		if h.isClosed() {
			return nil, h.error(net.ErrClosed)
		}
		return nil, h.port.err
	}
}

func (h *half) error(err error) error {
	return &net.OpError{Op: "accept", Net: h.Addr().Network(), Addr: h.Addr(), Err: err}
}

// Addr is the port's address.
func (h *half) Addr() net.Addr { return h.port.Addr() }

// Close makes connections of this kind be closed from now on. When the other half is closed too,
// the port is.
func (h *half) Close() error {
	h.shut()
	if h.port.http.isClosed() && h.port.streams.isClosed() {
		return h.port.Close()
	}
	return nil
}

func (h *half) shut() { h.once.Do(func() { close(h.closed) }) }

func (h *half) isClosed() bool {
	select {
	case <-h.closed:
		return true
	default:
		return false
	}
}

// give hands a connection to an Accept; it is closed if nothing accepts any more.
func (h *half) give(conn net.Conn) {
	select {
	case h.conns <- conn:
		return
	case <-h.closed:
	case <-h.port.ctx.Done():
		select {
		case h.conns <- conn:
			return
		case <-h.closed:
		case <-time.After(lastHandOut):
		}
	}
	_ = conn.Close()
}
