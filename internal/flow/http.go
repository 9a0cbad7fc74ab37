package flow

import (
	"io"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/spool"
)

// HTTPConfig configures what [HTTP] keeps, and who receives it. The zero value works.
type HTTPConfig struct {
	// Head is the longest head in bytes; 0 means 64 KiB.
	Head int
	// Body is the longest entity, before and after content decoding, in bytes; 0 means 64 MiB. A
	// longer one is cut, with [WhyLimit].
	Body int64
	// Unanswered is how many requests may wait for replies; 0 means 1,024. Beyond it the first one
	// counts as unanswered.
	Unanswered int
	// Bodies makes a new body; nil: in a spool of their own.
	Bodies func() BodyStore
	// Coded makes the body of a message that has a content coding, of which all is needed to undo
	// that; nil: Bodies does.
	Coded func() BodyStore
	// Request is called with a request when it is whole, or as far as it was captured; Reply with a
	// reply; NoReply with a request that gets none. They may free the bodies.
	Request, Reply, NoReply func(*HTTPExchange)
}

func (c HTTPConfig) withDefaults() HTTPConfig {
	if c.Head <= 0 {
		c.Head = http1.DefaultHeadLimit
	}
	if c.Body <= 0 {
		c.Body = 64 << 20
	}
	if c.Unanswered <= 0 {
		c.Unanswered = 1024
	}
	if c.Bodies == nil {
		own := new(spool.Spool)
		c.Bodies = func() BodyStore { return own.Body() }
	}
	if c.Coded == nil {
		c.Coded = c.Bodies
	}
	for _, call := range []*func(*HTTPExchange){&c.Request, &c.Reply, &c.NoReply} {
		if *call == nil {
			*call = func(*HTTPExchange) {}
		}
	}
	return c
}

// Why is the reason why a message is not complete.
type Why uint8

const (
	// WhyGap: bytes of it are not in the capture.
	WhyGap Why = iota + 1
	// WhyCut: the connection or the capture ended inside it.
	WhyCut
	// WhyMalformed: it is no HTTP/1.x, or contradicts itself.
	WhyMalformed
	// WhyLimit: it is longer than the limit.
	WhyLimit
)

var whyNames = map[Why]string{0: "", WhyGap: "gap", WhyCut: "cut", WhyMalformed: "malformed", WhyLimit: "limit"}

func (w Why) String() string { return whyNames[w] }

// HTTPMessage is one HTTP/1.x message of a flow. If it is not complete, it has everything up to the
// first missing byte.
type HTTPMessage struct {
	head http1.Head // empty if it is not complete or malformed
	// Bytes are the head as received, as far as it was captured.
	Octets []byte
	// Body is the body without transfer coding and content coding; with the content coding where
	// that cannot be undone (see CodingErr).
	Body BodyStore
	// Coding is the content coding in lower case, "" for none. CodingErr is why it could not be
	// undone.
	Coding    string
	CodingErr error
	// Doubts are ambiguities of the head.
	Doubts []string
	// First is the time of the packet with the first byte, Last that of the message's last packet;
	// FirstPacket and LastPacket are their numbers.
	First, Last             time.Time
	FirstPacket, LastPacket int
	// Offset is where the message begins in its direction. Wire is its length there without missing
	// bytes; Missing is the number of bytes known to be missing.
	Offset, Wire, Missing int64
	acked                 int64 // of the other direction, by the first packet
	// Why is 0 for a complete message. Err is the cause for [WhyMalformed], or the error why the
	// body could not be stored.
	Why Why
	Err error
}

// BodyStore is where the body of a message is kept.
type BodyStore interface {
	io.Writer
	// Len returns the number of bytes.
	Len() int64
	// Reader returns a reader from the start.
	Reader() io.Reader
	// Free releases the space of the body.
	Free()
}

// Field returns the value of a field of the head, the first one of that name; false: there is none.
func (m *HTTPMessage) Field(name string) (value string, ok bool) {
	v, ok := m.head.Get(name)
	return string(v), ok
}

// Tokens returns the members of the lists that all fields of a name make together, in lower case.
func (m *HTTPMessage) Tokens(name string) []string { return m.head.Tokens(name) }

// Method returns that of a request.
func (m *HTTPMessage) Method() string { return string(m.head.Method()) }

// Target returns the request target.
func (m *HTTPMessage) Target() string { return string(m.head.Target()) }

// Complete reports whether the whole message was captured.
func (m *HTTPMessage) Complete() bool { return m.Why == 0 }

// End returns the offset after the message in its direction.
func (m *HTTPMessage) End() int64 { return m.Offset + m.Wire + m.Missing }

// HTTPExchange is a request and its reply; either is nil if the capture does not have it. Interim
// are 1xx replies before the reply.
type HTTPExchange struct {
	// ID counts the exchanges of a connection from 1, in the order in which they began.
	ID             int
	Request, Reply *HTTPMessage
	Interim        []*HTTPMessage

	// User is for the receiver's own use.
	User any

	told bool // the request was passed on
}

// HTTP finds the HTTP/1.x messages of a connection as its bytes come: from the start, and after a
// gap or malformed bytes from the next packet that begins with a start line. It is a [Receiver].
type HTTP struct {
	cfg      HTTPConfig
	dirs     [2]httpParser
	begun    bool // which direction has the requests is known from the first start line
	Requests int
	// Heads counts whole heads.
	Heads int
	// Tunnel: what follows is not HTTP, after Upgrade or CONNECT. In the direction of replies that
	// begins with the byte after the head of Switch.Reply. In that of requests it begins with the
	// byte after the body of Switch.Request.
	Tunnel bool
	// Switch is the exchange that HTTP ends with, once there is one. Tunnel is set only when its
	// request is whole.
	Switch *HTTPExchange
	// Skipped counts bytes of each direction that belong to no message.
	Skipped [2]int64

	pairing
}

// NewHTTP returns a reader of the messages of one connection.
func NewHTTP(c HTTPConfig) *HTTP {
	h := &HTTP{cfg: c.withDefaults()}
	for i := range h.dirs {
		h.dirs[i] = httpParser{http: h, dir: i, lost: true, resumed: true}
	}
	return h
}

// Octets implements [Receiver].
func (h *HTTP) Octets(dir int, gap int64, b []byte, m Mark) error {
	p := &h.dirs[dir]
	if h.Tunnel {
		p.buf, p.mark = append(p.buf, b...), m // for Rest
		return nil
	}
	if h.Switch != nil && p.replies && len(p.buf) > maxAhead {
		h.dirs[h.Requests].endOfRun(-1, false)
	}
	if gap != 0 && !p.fresh() {
		p.endOfRun(gap, false)
	}
	p.offset += max(gap, 0)
	p.take(b, m)
	return nil
}

// maxAhead bounds the bytes after a switch before its request is whole: captures have packets out
// of order, above all those of different directions.
const maxAhead = 1 << 20

// Close reports that nothing more comes; ends describe how the directions ended.
func (h *HTTP) Close(ends [2]End) {
	for _, i := range []int{h.Requests, 1 - h.Requests} {
		if !h.Tunnel {
			h.dirs[i].fin = ends[i].FIN
			h.dirs[i].endOfRun(ends[i].GapAfter, true)
		}
	}
	h.finish()
}

// Lost reports whether the last bytes of a direction belong to no message, and the next one is
// searched for.
func (h *HTTP) Lost(dir int) bool { return h.dirs[dir].lost }

// Waiting returns the last request without a reply so far; nil: there is none.
func (h *HTTP) Waiting() *HTTPExchange {
	if len(h.open) == 0 {
		return nil
	}
	return h.open[len(h.open)-1].HTTPExchange
}

// Rest returns the bytes of a tunnel in a direction so far, and forgets them.
func (h *HTTP) Rest(dir int) (b []byte, m Mark) {
	p := &h.dirs[dir]
	b, m = p.buf[p.at:], p.mark
	p.buf, p.at, p.marks = nil, 0, nil
	return b, m
}

// Exchanges returns how many there were so far.
func (h *HTTP) Exchanges() int { return h.ids }

// roles sets which direction has the requests, from the first start line on, in either direction.
func (h *HTTP) roles(dir int, reply bool) {
	if h.begun {
		return
	}
	h.begun = true
	if h.Requests = dir; reply {
		h.Requests = 1 - dir
	}
	h.dirs[1-h.Requests].replies = true
}
