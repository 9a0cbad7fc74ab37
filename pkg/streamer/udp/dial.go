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
	"github.com/hhfr/hhfr/internal/datagram"
)

// Dial connects to remote through a socket, which is the connection's from then on. Errors: the
// cause of ctx; those of the socket.
func Dial(ctx context.Context, socket net.PacketConn, remote net.Addr, cfg Config) (net.Conn, error) {
	d := newDialled(socket, remote, cfg)
	d.wait.Go(d.read)
	c, err := d.open(ctx)
	if err != nil {
		_ = socket.Close()
		d.wait.Wait()
		return nil, d.fault(err)
	}
	return c, nil
}

// dialled is a socket with one connection.
type dialled struct {
	socket  net.PacketConn
	remote  net.Addr
	cfg     Config
	nonce   uint64
	answers chan uint64
	refused chan error    // nobody listens there
	over    chan struct{} // closed when the connection is
	wait    sync.WaitGroup

	mu   sync.Mutex
	conn *conn
}

func newDialled(socket net.PacketConn, remote net.Addr, cfg Config) *dialled {
	d := &dialled{
		socket: socket, remote: remote, cfg: cfg.withDefaults(),
		answers: make(chan uint64, 1), refused: make(chan error, 1), over: make(chan struct{}),
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	d.nonce = binary.BigEndian.Uint64(random[:]) | 1
	return d
}

// open opens the session whose id is the answer to an ask.
func (d *dialled) open(ctx context.Context) (net.Conn, error) {
	id, rtt, err := d.ask(ctx, false)
	if err != nil {
		return nil, err
	}
	c, err := d.connect(datagram.Open, id, rtt)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The listener shall know of the connection, also if its end is the first to speak.
	return dialledConn{c, d}, c.step(arq.Event{Kind: arq.Ask})
}

// ask asks for a session id until there is an answer, which took rtt, or 0 if it is not known which
// ask was answered. early: the first ask is left to what the connection sends.
func (d *dialled) ask(ctx context.Context, early bool) (id uint64, rtt time.Duration, err error) {
	for again := askAgain; again <= maxAskAgain; again *= 2 {
		asked := d.cfg.Clock.Now()
		if !early || again > askAgain {
			if _, err := d.socket.WriteTo(datagram.AppendAsk(nil, d.nonce), d.remote); err != nil {
				return 0, 0, err
			}
		}
		timer := d.cfg.Clock.NewTimer(again)
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case err = <-d.refused:
		case <-d.over:
			err = net.ErrClosed
		case <-timer.C():
			continue
		case id = <-d.answers:
			if again == askAgain {
				rtt = d.cfg.Clock.Since(asked)
			}
		}
		timer.Stop()
		return id, rtt, err
	}
	return 0, 0, os.ErrDeadlineExceeded
}

// connect makes the connection.
func (d *dialled) connect(form datagram.Kind, id uint64, rtt time.Duration) (*conn, error) {
	c, err := newConn(d.cfg, d.remote, form, id, d.nonce, rtt)
	if err != nil {
		return nil, err
	}
	c.local = d.socket.LocalAddr()
	c.write = func(b []byte, to net.Addr) {
		if _, err := d.socket.WriteTo(b, to); err != nil { // once there was an answer, it is as good as lost
			d.refuse(err)
		}
	}
	c.gone = func() {
		close(d.over)
		_ = d.socket.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn = c
	return c, nil
}

// refuse notes why nobody may listen there.
func (d *dialled) refuse(why error) {
	select {
	case d.refused <- why:
	default:
	}
}

func (d *dialled) fault(err error) error {
	var of *net.OpError // of the socket
	if errors.As(err, &of) {
		err = of.Err
	}
	return &net.OpError{Op: "dial", Net: "udp", Source: d.socket.LocalAddr(), Addr: d.remote, Err: err}
}

// read takes datagrams to where they belong, until the socket is closed.
func (d *dialled) read() {
	readFrom(d.socket, d.refuse, func(g datagram.Datagram, from net.Addr) {
		if same(from, d.remote) {
			d.take(g, from)
		}
	})
}

func (d *dialled) take(g datagram.Datagram, from net.Addr) {
	d.mu.Lock()
	c := d.conn
	d.mu.Unlock()
	switch {
	case g.Kind == datagram.Answer && g.Nonce == d.nonce:
		select {
		case d.answers <- g.Session:
		default: // there is one already
		}
		if c != nil {
			c.answered(g, from)
		}
	case g.Kind == datagram.Data && c != nil && c.isOf(g.Session):
		c.receive(g, from)
	case g.Kind == datagram.Challenge && c != nil && c.isOf(g.Session):
		c.meet(g.Nonce)
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
