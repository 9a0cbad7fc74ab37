package pcapng

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/hhfr/hhfr/internal/netconn"
)

const (
	// maxSegment is the longest payload of one packet, in bytes: that of a frame of a stream, and
	// far below that of an IP packet.
	maxSegment = 16 << 10
	// ackEvery is the number of bytes after which the other side's bare acknowledgement is written,
	// so that readers can distinguish lost packets from late ones.
	ackEvery = 64 << 10
)

// RecordedConn is a connection that is recorded. It is as safe for concurrent use as the connection
// below.
type RecordedConn struct {
	net.Conn
	rec    *Recorder
	writes sync.Mutex // locked during one Write

	// Guarded by rec.mu.
	out, in  *packetSide // what this end writes, what it reads
	comments []string
	noted    string      // the last comment
	opener   *packetSide // that of the end that opened the connection
	last     *packetSide // that sent last
	stream   bool        // see EntryFinder
	v6       bool
	pending  []byte // of the Write in progress
	writing  bool   // a Write is in progress
	shown    bool   // and recorded already
	ends     []func()
}

// packetSide is one direction of a connection.
type packetSide struct {
	from  netip.AddrPort
	seq   uint32 // of the next byte
	acked uint32 // last number that the other side has acknowledged
	ended bool
	history
}

// Conn records c, which this end opened.
func (r *Recorder) Conn(c net.Conn) *RecordedConn { return r.record(c, true) }

// Accepted records c, which the peer opened.
func (r *Recorder) Accepted(c net.Conn) *RecordedConn { return r.record(c, false) }

func (r *Recorder) record(c net.Conn, opened bool) *RecordedConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.conns
	local, lok := addrPort(c.LocalAddr())
	remote, rok := addrPort(c.RemoteAddr())
	if !lok || !rok || local == remote {
		local, remote = madeUp(n, opened)
	}
	isn := r.nextISN()
	rc := &RecordedConn{Conn: c, rec: r, out: &packetSide{from: local, seq: isn, acked: isn},
		in: &packetSide{from: remote, seq: ^isn, acked: ^isn}}
	rc.v6 = !local.Addr().Is4() || !remote.Addr().Is4()
	first, second := rc.out, rc.in
	if !opened {
		first, second = second, first
	}
	rc.opener = first
	if r.rotation != nil {
		r.live[rc] = struct{}{}
	}
	rc.open(first, second)
	return rc
}

// nextISN counts a connection and returns its first sequence number.
func (r *Recorder) nextISN() uint32 {
	r.conns++
	// An odd factor: no two connections begin alike, so that a reused port is not taken for the
	// earlier connection. Not 0: decoders take an acknowledgement number of 0 for one repeated.
	return r.conns * 0x9E3779B1
}

// open records how a connection is opened. The lock is held.
func (c *RecordedConn) open(first, second *packetSide) {
	c.send(first, second, flagSYN, nil)
	c.send(second, first, flagSYN|flagACK, nil)
	c.send(first, second, flagACK, nil)
}

// addrPort is the IP address of a, if a packet can have it.
func addrPort(a net.Addr) (netip.AddrPort, bool) {
	var ap netip.AddrPort
	switch t := a.(type) {
	case nil:
		return ap, false
	case interface{ AddrPort() netip.AddrPort }:
		ap = t.AddrPort()
	default:
		var err error
		if ap, err = netip.ParseAddrPort(a.String()); err != nil {
			return ap, false
		}
	}
	ap = netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	return ap, ap.Addr().IsValid() && !ap.Addr().IsUnspecified() && ap.Port() != 0
}

// madeUp assigns connection n, which has no IP addresses, loopback addresses of its own.
func madeUp(n uint32, opened bool) (local, remote netip.AddrPort) {
	n = n%(1<<23) + 1
	addr := netip.AddrFrom4([4]byte{127, 1 + byte(n>>16), byte(n >> 8), byte(n)})
	client, server := netip.AddrPortFrom(addr, 40000), netip.AddrPortFrom(addr, 8080)
	if opened {
		return client, server
	}
	return server, client
}

// send writes one packet from one side to the other and advances its sequence number. The lock is
// held.
func (c *RecordedConn) send(from, to *packetSide, f tcpFlags, payload []byte) {
	segment := &tcpSegment{src: from.from, dst: to.from, v6: c.v6, flags: f, seq: from.seq, payload: payload}
	if f&flagACK != 0 {
		segment.ack, to.acked = to.seq, to.seq
	}
	if !c.v6 {
		c.rec.ipID++
		segment.id = c.rec.ipID
	}
	var comments []string
	if len(payload) > 0 || f&(flagFIN|flagRST) != 0 {
		comments, c.comments = c.comments, nil
	}
	if len(comments) > 0 {
		c.noted = comments[len(comments)-1]
	}
	if c.opener == nil { // a definition, while the recording goes on in another file
		c.rec.write(c.rec.now(), segment, nil)
	} else {
		at := c.rec.packet(segment, comments)
		if c.rec.rotation != nil && c.rec.err == nil && len(payload) > 0 {
			c.remember(from, at, payload)
		}
	}
	from.seq += uint32(len(payload))
	if f&(flagSYN|flagFIN) != 0 {
		from.seq++
	}
}

// data records p as sent by from. The lock is held.
func (c *RecordedConn) data(from, to *packetSide, p []byte) {
	if from.ended {
		return
	}
	for len(p) > 0 {
		n := min(len(p), maxSegment)
		c.send(from, to, flagACK, p[:n])
		p = p[n:]
		if from.seq-from.acked >= ackEvery && !to.ended {
			c.send(to, from, flagACK, nil)
		}
	}
}

// end records that from sends no more, after what is being written; a reset ends both directions.
func (c *RecordedConn) end(from, to *packetSide, reset bool) {
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	if c.writing {
		c.ends = append(c.ends, func() { c.endNow(from, to, reset) })
		return
	}
	c.endNow(from, to, reset)
}

// endNow is end with the lock held.
func (c *RecordedConn) endNow(from, to *packetSide, reset bool) {
	switch {
	case from.ended:
		return
	case reset:
		c.send(from, to, flagRST|flagACK, nil)
		to.ended = true
	default:
		c.send(from, to, flagFIN|flagACK, nil)
		c.send(to, from, flagACK, nil)
	}
	from.ended = true
}

// Comment makes the next packet of this connection that has a payload, in either direction, carry
// json as its comment; if none comes, the packet that ends the connection does. A comment above
// 65,535 bytes is [CommentTooLong] and is not recorded.
func (c *RecordedConn) Comment(json string) error {
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	if len(json) > maxComment {
		return &Error{Code: CommentTooLong, At: c.rec.at}
	}
	c.comments = append(c.comments, json)
	return nil
}

// Read reads from the connection and records the bytes; the end of input as FIN, an error other
// than a timeout as RST.
func (c *RecordedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.came(p[:n])
	}
	switch {
	case errors.Is(err, io.EOF):
		c.end(c.in, c.out, false)
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) &&
		!errors.Is(err, io.ErrClosedPipe):
		c.end(c.in, c.out, true)
	}
	return n, err
}

// came records what was read, after what is being written: it may be the answer to that.
func (c *RecordedConn) came(p []byte) {
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	if c.writing && !c.shown {
		c.shown = true
		c.data(c.out, c.in, c.pending)
	}
	c.data(c.in, c.out, p)
}

// Write writes p to the connection and records what was written, before anything that answers it.
// If p is not written whole, this direction of the recording ends there with RST.
func (c *RecordedConn) Write(p []byte) (int, error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	c.rec.mu.Lock()
	c.pending, c.writing, c.shown = p, true, false
	c.rec.mu.Unlock()
	n, err := c.Conn.Write(p)
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	switch {
	case !c.shown:
		c.data(c.out, c.in, p[:n])
	case !c.out.ended:
		c.out.seq -= uint32(len(p) - n)
	}
	if n < len(p) {
		c.endNow(c.out, c.in, true)
	}
	c.pending, c.writing = nil, false
	for _, end := range c.ends {
		end()
	}
	c.ends = nil
	return n, err
}

// CloseWrite ends this end's direction, if the connection can do that alone, else it is
// errors.ErrUnsupported.
func (c *RecordedConn) CloseWrite() error {
	w, ok := netconn.As[interface{ CloseWrite() error }](c.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	c.end(c.out, c.in, false)
	return w.CloseWrite()
}

// Close closes the connection and records FIN.
func (c *RecordedConn) Close() error {
	c.end(c.out, c.in, false)
	c.leave()
	return c.Conn.Close()
}

// Abort closes the connection without waiting for what is unsent, over TCP with RST, and records
// RST.
func (c *RecordedConn) Abort() error {
	c.end(c.out, c.in, true)
	c.leave()
	return netconn.Abort(c.Conn)
}

// leave has nothing of the connection repeated any more.
func (c *RecordedConn) leave() {
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	delete(c.rec.live, c)
}

// NetConn is the connection below.
func (c *RecordedConn) NetConn() net.Conn { return c.Conn }
