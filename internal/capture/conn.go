package capture

import (
	"bytes"
	"strings"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/frame"
)

// capturedConn is a connection, or a session over datagrams, or raw bytes of a stream. It finds out
// what its bytes are from what comes first: a hello or a sync makes it a stream, the head of an
// HTTP message makes it HTTP, whatever follows later.
type capturedConn struct {
	r      *Reader
	flow   *flow.Flow
	ways   [2]way
	stream *Stream     // once a hello or a sync was found
	http   *httpReader // nil: it is not HTTP, or no longer
	facts  string

	upgraded bool     // HTTP ended with an upgrade to hhfr
	service  Endpoint // service of the request that was upgraded

	sequences map[sequenceKey]*sequence
}

// sequenceKey tells the sequences of a connection apart: by the direction of their requests.
type sequenceKey struct {
	origin int
	lane   uint64
}

// way is one direction of a connection.
type way struct {
	conn *capturedConn
	side
	tape  tape
	looks frames
	total int64  // bytes
	since int64  // bytes since the last gap
	tail  []byte // the last bytes, in which the mark of a sync may begin
	first []byte // the first bytes
	gap   bool   // bytes were missing
}

// conn begins a connection.
func (r *Reader) conn(f *flow.Flow) *capturedConn {
	c := &capturedConn{r: r, flow: f}
	for i := range c.ways {
		c.ways[i].conn = c
		c.ways[i].looks.all = &r.looks
		c.ways[i].side = side{conn: c, dir: i}
	}
	return c
}

// Octets implements [flow.Receiver].
func (c *capturedConn) Octets(dir int, gap int64, b []byte, m flow.Mark) error {
	if c.facts == "" {
		c.facts = facts(m)
	}
	w := &c.ways[dir]
	if err := w.taped(gap, b); err != nil {
		return err
	}
	if len(w.first) == 0 {
		w.first = bytes.Clone(b[:min(len(b), 16)])
	}
	if c.http != nil {
		_ = c.http.Octets(dir, gap, b, m)
		switch {
		case c.http.Tunnel:
			return c.tunnel()
		case c.http.passed(dir, b):
			return c.unseen(dir, b, m)
		case c.http.Heads > 0:
			c.settle()
			return c.r.failed()
		}
	}
	w.octets(gap, b, m)
	return c.r.failed()
}

// settle makes the connection HTTP: nothing else is searched for in it.
func (c *capturedConn) settle() {
	for i := range c.ways {
		w := &c.ways[i]
		w.looks.end()
		w.looks.yes = false
		w.tail, w.in = nil, nil
		w.tape.drop()
	}
}

// taped passes bytes to the tape if they are needed.
func (w *way) taped(gap int64, b []byte) error {
	if gap != 0 {
		w.since = 0
		if gap > 0 || w.conn.flow.ID < 0 || w.conn.flow.TLS != nil && w.total > 0 {
			w.tape.gap(gap)
		}
	}
	w.total += int64(len(b))
	w.since += int64(len(b))
	c := w.conn
	return w.tape.write(b, c.r.keeps(c) && (c.http == nil || c.http.Heads == 0), c.r.bodies)
}

// bytes searches for a stream in new bytes, or continues with it.
func (w *way) octets(gap int64, b []byte, m flow.Mark) {
	first := w.total == int64(len(b))
	if gap != 0 && !first {
		w.missing(gap)
	}
	switch {
	case w.in != nil:
	case first && frame.MayOpen(b):
		w.follow()
	case frame.HasSync(append(w.tail, b...)):
		w.follow()
		w.in.gap(-1) // it is not the beginning
		tail := w.tail
		w.tail = nil
		w.in.write(tail, m)
	default:
		const mark = 8 // bytes
		w.tail = append(w.tail, b...)
		w.tail = append([]byte(nil), w.tail[max(0, len(w.tail)-mark+1):]...)
	}
	if w.conn.stream == nil {
		w.looks.write(b)
	}
	if w.in != nil {
		w.in.write(b, m)
	}
}

func (w *way) missing(gap int64) {
	w.gap, w.tail = true, nil
	w.looks.end()
	if w.in != nil {
		w.in.gap(gap)
	}
}

// follow lets a decoder read the direction from here on.
func (w *way) follow() {
	w.in = newDirection(w.conn.r, &w.side)
}

// Closed implements [flow.Receiver].
func (c *capturedConn) Closed() error {
	if c.http != nil {
		c.http.Close(c.flow.Ends)
		if c.http.Tunnel { // no more of the request will come
			if err := c.tunnel(); err != nil {
				return err
			}
		}
	}
	for i := range c.ways {
		w := &c.ways[i]
		w.looks.end()
		if w.in != nil {
			w.in.end()
		}
		w.tape.place(0)
		if err := w.tape.flush(); err != nil {
			return err
		}
		w.tape.drop()
	}
	c.summarize()
	return c.r.failed()
}

// summarize counts what the connection was.
func (c *capturedConn) summarize() {
	others := c.r.summary.Others
	if tls := c.flow.TLS; tls != nil && tls.Decrypted {
		c.r.summary.Decrypted++
		if tls.Why != 0 {
			others[OtherPartlyDecrypted]++
		}
	}
	switch {
	case c.stream != nil:
		c.streamEnds()
	case c.flow.ID < 0: // over datagrams, which are counted together
	case c.upgraded:
		others[OtherUpgraded]++
	case c.flow.TLS != nil && !c.flow.TLS.Decrypted:
		others[opaque(c.flow.TLS)]++
	case c.http != nil && c.http.soap > 0:
		if c.http.others > 0 {
			others[OtherRequests] += c.http.others
		}
	case c.http != nil && c.http.Exchanges() > 0:
		others["HTTP connections without SOAP"]++
	case c.looksLike():
		others[unsynced(c.octets())]++
	default:
		others[c.kind()]++
	}
}

// found reports whether it is a stream.
func (c *capturedConn) found() bool { return c.stream != nil }

func (c *capturedConn) looksLike() bool { return c.ways[0].looks.yes || c.ways[1].looks.yes }

func (c *capturedConn) octets() int64 { return c.ways[0].total + c.ways[1].total }

// kind names a connection that is neither HTTP nor hhfr.
func (c *capturedConn) kind() string {
	for i := range c.ways {
		b := c.ways[i].first
		switch {
		case len(b) == 0:
			continue
		case strings.HasPrefix(string(b), "PRI * HTTP/2.0"):
			return "HTTP/2 connections"
		}
		return "other TCP connections"
	}
	return "TCP connections without data"
}

// facts returns the first packet comment that is JSON.
func facts(m flow.Mark) string {
	for _, c := range m.Comments {
		if strings.HasPrefix(c, "{") {
			return c
		}
	}
	return ""
}

// begin makes a stream of the connection.
func (c *capturedConn) begin(session [16]byte) {
	if c.stream == nil {
		c.http = nil
		for i := range c.ways {
			c.ways[i].looks.end()
		}
		c.stream = &Stream{Session: session, Src: c.flow.Src, Dst: c.flow.Dst, Facts: c.facts}
		c.r.summary.Streams = append(c.r.summary.Streams, c.stream)
		c.stream.number = len(c.r.summary.Streams)
		c.r.streams[c.flow.ID] = true
		c.r.met(c.flow)
		if c.r.cfg.Octets != nil && !c.r.surveying {
			for i := range c.ways {
				c.ways[i].tape.out = func(offset int64, b []byte) error {
					return c.r.cfg.Octets(c.stream.number, i, offset, b)
				}
			}
		}
	}
	c.stream.Session = session
	c.stream.Service = c.serves() // which learns the headers that a recording has
}

// streamEnds sets the final properties of a stream.
func (c *capturedConn) streamEnds() {
	if c.r.once {
		c.r.need() // whether it was declined
	}
	s := c.stream
	s.Facts, s.Service = c.facts, c.serves()
	for i := range c.ways {
		w := &c.ways[i]
		s.Cut = s.Cut || w.gap || c.flow.Ends[i].GapAfter > 0
		d := w.in
		if d == nil {
			continue
		}
		s.Octets[i] = d.octets
		for _, p := range d.problems {
			s.Problems = append(s.Problems, [2]string{"first", "second"}[i]+" direction, "+p)
		}
		s.Cut = s.Cut || d.cut(c.ways[1-i].what().declined)
	}
}

// sequence returns that of an exchange which a direction began on a lane.
func (c *capturedConn) sequence(origin int, lane uint64) *sequence {
	key := sequenceKey{origin, lane}
	s := c.sequences[key]
	if s == nil {
		if c.sequences == nil {
			c.sequences = map[sequenceKey]*sequence{}
		}
		s = &sequence{}
		c.sequences[key] = s
	}
	return s
}

// keeps reports whether the bytes of a connection that is no stream yet may be needed.
func (r *Reader) keeps(c *capturedConn) bool {
	return r.cfg.Octets != nil && !r.surveying && (!r.twice || r.streams[c.flow.ID])
}
