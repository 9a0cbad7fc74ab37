package udp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/arq"
)

// Dial connects to remote through a socket, which is the connection's from then on. Errors: the
// cause of ctx; those of the socket.
func Dial(ctx context.Context, socket net.PacketConn, remote net.Addr, cfg Config) (net.Conn, error) {
	cfg = cfg.withDefaults()
	d := &dialled{socket: socket, remote: remote, answers: make(chan uint64, 1), refused: make(chan error, 1)}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	d.nonce = binary.BigEndian.Uint64(random[:]) | 1
	d.wait.Go(d.read)
	c, err := d.open(ctx, cfg)
	if err != nil {
		_ = socket.Close()
		d.wait.Wait()
		return nil, &net.OpError{Op: "dial", Net: "udp", Source: socket.LocalAddr(), Addr: remote, Err: err}
	}
	return c, nil
}

// dialled is a socket with one connection.
type dialled struct {
	socket  net.PacketConn
	remote  net.Addr
	nonce   uint64
	answers chan uint64
	refused chan error // nobody listens there
	wait    sync.WaitGroup

	mu   sync.Mutex
	conn *conn
}

// open asks for a session id until there is an answer.
func (d *dialled) open(ctx context.Context, cfg Config) (net.Conn, error) {
	var rtt time.Duration
	for again := askAgain; again <= maxAskAgain; again *= 2 {
		asked := cfg.Clock.Now()
		if _, err := d.socket.WriteTo(appendAsk(nil, d.nonce), d.remote); err != nil {
			return nil, err
		}
		timer := cfg.Clock.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		case err := <-d.refused:
			timer.Stop()
			return nil, err
		case <-timer.C():
			continue
		case id := <-d.answers:
			timer.Stop()
			if again == askAgain { // otherwise it is not known which was answered
				rtt = cfg.Clock.Since(asked)
			}
			c, err := newConn(cfg, d.remote, id, d.nonce, rtt)
			if err != nil {
				return nil, err
			}
			c.local = d.socket.LocalAddr()
			c.write = func(b []byte, to net.Addr) {
				_, _ = d.socket.WriteTo(b,
					to)
			} // what is not sent is as good as lost
			c.gone = func() { _ = d.socket.Close() }
			d.mu.Lock()
			d.conn = c
			d.mu.Unlock()
			c.mu.Lock()
			defer c.mu.Unlock()
			// The listener shall know of the connection, also if its end is the first to speak.
			return dialledConn{c, d}, c.step(arq.Event{Kind: arq.Ask})
		}
	}
	return nil, os.ErrDeadlineExceeded
}

// read takes datagrams to where they belong, until the socket is closed.
func (d *dialled) read() {
	buf := make([]byte, 65536)
	for broken := 0; broken < maxBroken; {
		n, from, err := d.socket.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			broken++
			select {
			case d.refused <- err:
			default:
			}
			continue
		}
		broken = 0
		g, ok := Parse(buf[:n])
		if !ok || !same(from, d.remote) {
			continue
		}
		d.mu.Lock()
		c := d.conn
		d.mu.Unlock()
		switch {
		case g.Kind == Answer && g.Nonce == d.nonce && c == nil:
			select {
			case d.answers <- g.Session:
			default: // there is one already
			}
		case g.Kind == Data && c != nil && g.Session == c.id:
			c.receive(g.Packet, from)
		case g.Kind == Challenge && c != nil && g.Session == c.id:
			c.prove(g.Nonce)
		}
	}
}

// dialledConn ends with its socket.
type dialledConn struct {
	*conn
	socket *dialled
}

// Close implements [net.Conn], as conn does, and waits for what the socket runs.
func (c dialledConn) Close() error {
	err := c.conn.Close()
	c.socket.wait.Wait()
	return err
}
