package real

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hhfr/hhfr/compare/internal/pcap"
)

// RoundTrip is that of the link.
const RoundTrip = 20 * time.Millisecond

// Traffic is what went over the link, both directions: bytes of payload, and packets that had any,
// or opened a connection.
type Traffic struct {
	Payload int64 `json:"payload"`
	Packets int64 `json:"packets"`
}

// To is the ratio of the payload to that of another; 0: there is none.
func (t Traffic) To(other Traffic) float64 {
	if other.Payload == 0 {
		return 0
	}
	return float64(t.Payload) / float64(other.Payload)
}

// opening is how many packets without payload open a connection: one each way.
const opening = 2

// tap is the link: it delays what goes through it by half a round trip, and the first bytes of a
// connection by what its handshake takes on top. It counts what its ends send.
type tap struct {
	listen net.Listener
	to     string
	record *pcap.Capture // of the end that connects; nil: none
	wait   sync.WaitGroup

	mu      sync.Mutex
	payload int64
	last    time.Time
	conns   []net.Conn
	before  int64 // packets of connections that ended
	closed  bool
}

func openTap(ctx context.Context, to string, record io.Writer) (*tap, error) {
	l, err := (&net.ListenConfig{Control: ethernetSegments}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &tap{listen: l, to: to, last: time.Now()}
	if record != nil {
		t.record = pcap.New(record)
	}
	t.wait.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			t.wait.Go(func() { t.forward(ctx, in) })
		}
	})
	return t, nil
}

func (t *tap) addr() string { return t.listen.Addr().String() }

func (t *tap) forward(ctx context.Context, in net.Conn) {
	out, err := (&net.Dialer{Control: ethernetSegments}).DialContext(ctx, "tcp", t.to)
	if err != nil {
		in.Close()
		return
	}
	t.mu.Lock()
	t.conns = append(t.conns, in, out)
	t.before += opening
	if t.closed {
		t.reset()
	}
	t.mu.Unlock()
	ready := time.Now().Add(RoundTrip)
	var seen *pcap.Conn
	if t.record != nil {
		seen = t.record.Open(time.Now(), endpointOf(in.RemoteAddr()), endpointOf(in.LocalAddr()))
	}
	var both sync.WaitGroup
	both.Go(func() { t.copy(out, in, 0, seen, ready) })
	both.Go(func() { t.copy(in, out, 1, seen, ready) })
	both.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range []net.Conn{in, out} {
		t.before += dataSegments(c)
	}
	t.conns = without(t.conns, in, out)
	in.Close()
	out.Close()
}

func without(list []net.Conn, gone ...net.Conn) (rest []net.Conn) {
	for _, c := range list {
		if c != gone[0] && c != gone[1] {
			rest = append(rest, c)
		}
	}
	return rest
}

// chunk is what was read at once, and when it arrives.
type chunk struct {
	octets []byte
	at     time.Time
}

func endpointOf(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		at := tcp.AddrPort()
		return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
	}
	return netip.AddrPort{}
}

// copy ends the direction, which is that of end, when from has ended. seen, if it is not nil, has
// what the end that connects sends and receives.
func (t *tap) copy(to, from net.Conn, end int, seen *pcap.Conn, ready time.Time) {
	way := make(chan chunk, 1<<12)
	var wait sync.WaitGroup
	wait.Go(func() {
		for c := range way {
			time.Sleep(time.Until(c.at))
			if seen != nil && end == 1 {
				seen.Said(time.Now(), end, c.octets)
			}
			_, _ = to.Write(c.octets) // a reader that is gone ends the other direction
		}
	})
	for {
		b := make([]byte, 64<<10)
		n, err := from.Read(b)
		at := time.Now()
		if at.Before(ready) {
			at = ready
		}
		if n > 0 {
			t.mu.Lock()
			t.payload += int64(n)
			t.last = time.Now()
			t.mu.Unlock()
			if seen != nil && end == 0 {
				seen.Said(time.Now(), end, b[:n])
			}
			way <- chunk{b[:n], at.Add(RoundTrip / 2)}
		}
		if err != nil {
			break
		}
	}
	close(way)
	wait.Wait()
	if seen != nil {
		seen.End(time.Now(), end)
	}
	if c, ok := to.(*net.TCPConn); ok {
		_ = c.CloseWrite() // or it is closed
	}
}

// quiet waits until nothing has gone over the link for a while, and returns what went until then.
func (t *tap) quiet(ctx context.Context) (Traffic, error) {
	const silence = 50 * RoundTrip
	for {
		t.mu.Lock()
		since := time.Since(t.last)
		traffic := Traffic{t.payload, t.before}
		for _, c := range t.conns {
			traffic.Packets += dataSegments(c)
		}
		t.mu.Unlock()
		if since >= silence {
			return traffic, nil
		}
		select {
		case <-ctx.Done():
			return traffic, context.Cause(ctx)
		case <-time.After(silence - since):
		}
	}
}

// reset closes all connections. The tap is locked.
func (t *tap) reset() {
	for _, c := range t.conns {
		c.Close()
	}
}

func (t *tap) close() error {
	err := t.listen.Close()
	t.mu.Lock()
	t.closed = true
	t.reset()
	t.mu.Unlock()
	t.wait.Wait()
	if t.record != nil {
		err = errors.Join(err, t.record.Err())
	}
	return err
}
