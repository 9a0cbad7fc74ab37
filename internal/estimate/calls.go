package estimate

import (
	"bytes"
	"io"
	"net/netip"
	"time"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

const (
	// mostMessage is the longest message that is estimated, in bytes, head included: as long as a
	// body that a pair carries as one message.
	mostMessage = 16 << 20
	// mostKept bounds the bytes of messages that are not whole yet, of all connections.
	mostKept = 64 << 20
	// undecided is how many bytes may be the beginning of a message that is not recognized yet, and
	// mostRead how much of a body is looked at.
	undecided = 64 << 10
	mostRead  = 1 << 20
	// longCall is how long a call may take until others no longer wait for it.
	longCall = 2 * time.Minute
	// mostArrivals bounds what is known of how the bytes of a direction came; beyond it some count
	// as come with those behind them.
	mostArrivals = 4096
	// soon is how soon after its beginning a connection that was opened for a call has it.
	soon = time.Second
)

// connection is a connection of a client with a server.
type connection struct {
	client, server netip.AddrPort
	calls          int
	last           int    // the serial number of its last call
	over           bool   // its end was passed on
	channel        uint16 // of tunnels; 0: none yet
}

// message is one of a call; it is valid while the call is passed on.
type message struct {
	octets      []byte // as sent
	came        []proxy.Arrival
	method      string // of the request
	target      string // likewise
	first, last time.Time
	soap        bool
	operation   soap.Name
}

// capturedCall is a request and its reply.
type capturedCall struct {
	conn           *connection
	request, reply message
	interim        []*message // before the reply
	// server is the time that the server took.
	server time.Duration
	// connects: the connection was opened for this call.
	connects bool
}

// callReader finds the calls of plain SOAP in captures.
type callReader struct {
	call   func(*capturedCall) error
	ended  func(c *connection, at time.Time, byClient bool) error
	waits  map[*flow.HTTPExchange]time.Time // requests without a reply so far
	begun  time.Time                        // of the first packet with bytes
	now    time.Time                        // of the latest one
	kept   int                              // bytes of messages that are not whole
	others int                              // calls that are not SOAP
	cut    int                              // messages that are not whole, or longer than mostMessage
	hhfr   int                              // connections that are hhfr streams
	open   map[*flow.Flow]*captured
}

// read reads captures once.
func (r *callReader) read(files []*flow.File) (flow.Stats, error) {
	r.waits, r.open = map[*flow.HTTPExchange]time.Time{}, map[*flow.Flow]*captured{}
	return flow.Read(flow.Config{Flow: r.flow, Ending: r.ending}, files...)
}

// earliest is the time from which on calls begin that are not passed on yet.
func (r *callReader) earliest() time.Time {
	at := r.now
	for x, began := range r.waits {
		if r.now.Sub(began) > longCall {
			delete(r.waits, x)
		} else if began.Before(at) {
			at = began
		}
	}
	return at
}

// captured is a connection of the capture.
type captured struct {
	r    *callReader
	flow *flow.Flow
	http *flow.HTTP
	conn connection
	kept [2]keptBytes
	hhfr bool
	err  error
}

func (r *callReader) flow(f *flow.Flow) flow.Receiver {
	c := &captured{r: r, flow: f}
	c.http = flow.NewHTTP(flow.HTTPConfig{Body: mostMessage, Bodies: func() flow.BodyStore { return new(start) },
		Request: c.request, Reply: c.reply, NoReply: c.noReply})
	r.open[f] = c
	return c
}

// Octets implements [flow.Receiver].
func (c *captured) Octets(dir int, gap int64, b []byte, m flow.Mark) error {
	r := c.r
	if r.begun.IsZero() {
		r.begun = m.Time
	}
	if m.Time.After(r.now) {
		r.now = m.Time
	}
	k := &c.kept[dir]
	if !c.hhfr && frame.BeginsStream(b) {
		c.hhfr = true
		r.hhfr++
	}
	k.skip(max(gap, 0))
	k.add(b, m.Time)
	r.kept += len(b)
	if err := c.http.Octets(dir, gap, b, m); err != nil {
		return err
	}
	switch {
	case c.http.Tunnel, len(k.b) > mostMessage, r.kept > mostKept:
		k.drop(r, k.end())
	case c.http.Lost(dir):
		k.drop(r, k.end()-undecided)
	}
	return c.err
}

// Closed implements [flow.Receiver].
func (c *captured) Closed() error {
	c.http.Close(c.flow.Ends)
	for dir := range c.kept {
		c.kept[dir].drop(c.r, c.kept[dir].end())
	}
	delete(c.r.open, c.flow)
	if c.flow.Evicted && c.err == nil {
		c.err = c.end()
	}
	return c.err
}

// ending passes on that a connection ends, unless a reply is still to come: then that does.
func (r *callReader) ending(f *flow.Flow) error {
	if c := r.open[f]; c != nil && c.http.Waiting() == nil {
		return c.end()
	}
	return nil
}

// end passes on the end of a connection. One that is given up before it ended counts as ended by
// its client: pairs would keep a lane for it for good.
func (c *captured) end() error {
	at, byClient := c.flow.Ended, c.flow.EndedBy == c.http.Requests
	if at.IsZero() {
		at, byClient = c.r.now, true
	}
	if c.conn.over || c.conn.calls == 0 || c.flow.Ended.IsZero() && !c.flow.Evicted {
		return nil
	}
	c.conn.over = true
	return c.r.ended(&c.conn, at, byClient)
}

func (c *captured) request(x *flow.HTTPExchange) {
	c.r.waits[x] = x.Request.First
	x.User = c.message(x.Request, c.http.Requests)
}

func (c *captured) noReply(x *flow.HTTPExchange) {
	delete(c.r.waits, x)
	if m, _ := x.User.(*message); m == nil || m.soap {
		c.r.cut++
	}
}

func (c *captured) reply(x *flow.HTTPExchange) {
	delete(c.r.waits, x)
	request, _ := x.User.(*message)
	if c.err != nil {
		return
	}
	var interim []*message
	for _, one := range x.Interim {
		if m := c.message(one, 1-c.http.Requests); m != nil {
			interim = append(interim, m)
		}
	}
	reply := c.message(x.Reply, 1-c.http.Requests)
	switch {
	case request == nil || reply == nil:
		c.r.cut++
		return
	case request.operation.Space == xmlns.HHFRNegotiation:
		return
	case !request.soap && !reply.soap:
		c.r.others++
		return
	}
	src, dst := c.flow.Src, c.flow.Dst
	if c.http.Requests == 1 {
		src, dst = dst, src
	}
	c.conn.client, c.conn.server = src, dst
	reply.method, reply.target = x.Request.Method(), x.Request.Target()
	c.conn.calls++
	c.err = c.r.call(&capturedCall{conn: &c.conn, request: *request, reply: *reply, interim: interim,
		server:   c.took(request, reply),
		connects: c.flow.Opened && c.conn.calls == 1 && request.first.Sub(c.flow.First) < soon})
	if c.err == nil && c.http.Waiting() == nil {
		c.err = c.end()
	}
}

// took is the time that the server took: from the end of a request to the beginning of its reply,
// without the way from where the packets were captured to the server and back, as far as the
// beginning of the connection shows how long that is.
func (c *captured) took(request, reply *message) time.Duration {
	took := reply.first.Sub(request.last)
	if c.flow.Opened && !c.flow.Answered.IsZero() {
		took -= c.flow.Answered.Sub(c.flow.First)
	}
	return max(took, 0)
}

// message returns a message that is whole; nil: it is not.
func (c *captured) message(m *flow.HTTPMessage, dir int) *message {
	k := &c.kept[dir]
	defer k.drop(c.r, m.End())
	b := k.at(m.Offset, m.Wire)
	if !m.Complete() || b == nil {
		return nil
	}
	beginning, _ := m.Body.(*start)
	found := soap.Recognize(beginning.b)
	is := found.Version != soap.None
	if media, ok := m.Field("Content-Type"); ok && !is {
		is = soap.ParseContentType(media).BinaryVersion() != soap.None
	}
	return &message{octets: bytes.Clone(b), came: k.arrivals(m.Offset, m.Wire, m.First), first: m.First, last: m.Last,
		soap: is, operation: found.Operation}
}

// keptBytes are bytes of a direction that may be needed, from an offset on.
type keptBytes struct {
	b      []byte
	offset int64
	came   []arrival
}

// arrival is a packet: where its bytes end in the direction, and when they came.
type arrival struct {
	end int64
	at  time.Time
}

func (s *keptBytes) end() int64 { return s.offset + int64(len(s.b)) }

func (s *keptBytes) add(b []byte, at time.Time) {
	s.b = append(s.b, b...)
	if len(s.came) == mostArrivals {
		s.came = s.came[:mostArrivals-1]
	}
	s.came = append(s.came, arrival{s.end(), at})
}

// arrivals returns how n bytes from an offset on came, the first of them at a time.
func (s *keptBytes) arrivals(offset, n int64, first time.Time) (all []proxy.Arrival) {
	at := time.Duration(0)
	for _, a := range s.came {
		if a.end > offset {
			at = max(at, a.at.Sub(first))
			all = append(all, proxy.Arrival{Octets: int(min(a.end-offset, n)), At: at})
		}
		if a.end >= offset+n {
			break
		}
	}
	return all
}

// skip notes that bytes are missing: nothing before them is of a message that is whole.
func (s *keptBytes) skip(n int64) {
	if n > 0 {
		s.offset, s.b, s.came = s.end()+n, nil, nil
	}
}

// at returns n bytes from an offset on; nil: they are not there.
func (s *keptBytes) at(offset, n int64) []byte {
	from := offset - s.offset
	if from < 0 || from+n > int64(len(s.b)) {
		return nil
	}
	return s.b[from : from+n]
}

// drop drops what is before an offset.
func (s *keptBytes) drop(r *callReader, offset int64) {
	n := min(max(offset-s.offset, 0), int64(len(s.b)))
	r.kept -= int(n)
	s.offset, s.b = s.offset+n, s.b[n:]
	if len(s.b) == 0 {
		s.b, s.came = nil, nil
	}
	for len(s.came) > 0 && s.came[0].end <= s.offset {
		s.came = s.came[1:]
	}
}

// start keeps the beginning of a body, which says what it is.
type start struct {
	b []byte
	n int64
}

// Write implements [io.Writer].
func (s *start) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	s.b = append(s.b, p[:min(len(p), mostRead-len(s.b))]...)
	return len(p), nil
}

// Len implements [flow.BodyStore].
func (s *start) Len() int64 { return s.n }

// Reader implements [flow.BodyStore]; it has only the beginning.
func (s *start) Reader() io.Reader { return bytes.NewReader(s.b) }

// Free implements [flow.BodyStore].
func (s *start) Free() {}
