package estimate

import (
	"bytes"
	"net/netip"
	"time"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// pair is a pair of proxies in front of one server: the two directions of their stream, with the
// shapes that each end knows.
type pair struct {
	near, far  *halfSent
	perAddress bool
	lanes      map[*connection]uint64
	free       []uint64                // lanes
	left       []laneOf                // whose connection is gone, and the far end does not know
	kept       map[netip.Addr][]uint64 // lanes of clients that are known by their addresses
	leftAt     time.Time
	closed     map[*connection]bool // its last reply said that it is closed
	clients    map[uint64]uint64    // how many a lane had before
	highest    uint64
}

// laneOf is a lane of a client.
type laneOf struct {
	number uint64
	client netip.Addr
}

// halfSent is what one end sends.
type halfSent struct {
	book      *binary.Book
	coder     *binary.Coder
	enc       *wire.Encoder
	peer      *halfSent
	described binary.Describer     // both have it; nil: neither
	known     []binary.Fingerprint // shapes that the peer has since an earlier stream
	last      map[uint64]uint64    // the exchange begun last, by lane
	// restAt is when the memory of a lane may be idle; zero: none is in use.
	restAt time.Time

	pieces []sentFragment
}

// sentFragment is what one fragment has.
type sentFragment struct{ head, body wire.Part }

// newPair makes a pair that meets for the first time. Its shapes are in stores of its ends.
func newPair(near, far ctxstore.Store, cfg Config, now time.Time) (*pair, error) {
	book := func(s ctxstore.Store) *halfSent {
		return &halfSent{book: binary.NewBook(ctxstore.Shapes{Store: s}), described: cfg.Description}
	}
	return open(book(near), book(far), cfg.PerAddress, now)
}

// again makes a pair of the same ends that opens another stream.
func (p *pair) again(now time.Time) (*pair, error) {
	known := func(h *halfSent) *halfSent {
		n := &halfSent{book: h.book, described: h.described}
		for _, fp := range h.coder.PeerHas(negotiate.MaxShapes) {
			n.known = append(n.known, fp)
		}
		return n
	}
	return open(known(p.near), known(p.far), p.perAddress, now)
}

// open begins a stream of two ends.
func open(near, far *halfSent, perAddress bool, now time.Time) (*pair, error) {
	near.peer, far.peer = far, near
	cfg := proxy.StreamConfig(streamer.Config{})
	limits, err := cfg.Limits.Stated()
	if err != nil {
		return nil, err
	}
	for _, h := range []*halfSent{near, far} {
		h.coder = h.book.Coder(binary.Options{PeerKnows: h.known, Description: h.described,
			Shared: h.described != nil})
		hello := frame.Hello{Responder: h == far, Proxy: true, Representation: frame.Binary, Stages: h.coder.Stages(),
			Limits: limits, Abilities: cfg.Abilities}
		if !hello.Responder {
			hello.Token = make([]byte, frame.TokenLen)
		}
		h.enc = wire.NewEncoder(wire.EncoderConfig{Origin: hello.Origin(), Peer: h.coder,
			Compression: h.coder.Compression(), Limits: limits}, len(hello.AppendTo(nil)), now)
		h.last = map[uint64]uint64{}
	}
	return &pair{
		near: near, far: far, perAddress: perAddress, lanes: map[*connection]uint64{},
		kept: map[netip.Addr][]uint64{}, closed: map[*connection]bool{}, clients: map[uint64]uint64{},
	}, nil
}

// rejoin has clients come again to a stream that stays open: other ones, unless they are known.
func (p *pair) rejoin() {
	if p.perAddress {
		for c, lane := range p.lanes {
			p.keep(laneOf{lane, c.client.Addr()})
		}
		for _, l := range p.left {
			p.keep(l)
		}
	}
	clear(p.lanes)
	clear(p.closed)
	p.left = nil
	if p.perAddress {
		return
	}
	p.free = nil
	for lane := uint64(1); lane <= p.highest; lane++ {
		p.release(lane)
	}
}

// carry returns what a call takes on the stream.
func (p *pair) carry(c *capturedCall, now time.Time) (l legs, ok bool, err error) {
	ends, late, err := p.tellEnds(now)
	if err != nil {
		return l, false, err
	}
	lane := p.enter(c.conn)
	request, body, whole := proxy.Parts(c.request.octets, "", &c.conn.coded[0])
	if !whole {
		return l, false, nil
	}
	reply, replied, whole := proxy.Parts(c.reply.octets, c.request.method, &c.conn.coded[1])
	if !whole {
		return l, false, nil
	}
	if l, ok, err = p.exchange(p.near, lane, [2][]byte{request, body}, [2][]byte{reply, replied}, now); err != nil {
		return l, ok, err
	}
	p.closed[c.conn] = proxy.IsLast(c.reply.octets)
	if late {
		return legs{{octets: ends}, l[0], l[1]}, ok, nil
	}
	l[0].octets += ends
	return l, ok, nil
}

// tellEnds returns what the ends of the clients that left take, and whether they went before the
// call that is about to go.
func (p *pair) tellEnds(now time.Time) (octets int64, late bool, err error) {
	if len(p.left) == 0 {
		return 0, false, nil
	}
	if at := p.leftAt.Add(proxy.EndDelay); now.After(at) {
		late, now = true, at
	}
	for _, l := range p.left {
		n, err := p.near.send(l.number, [2][]byte{proxy.LaneEnd(p.perAddress)}, now)
		if err != nil {
			return 0, late, err
		}
		octets += n
		if p.perAddress {
			p.keep(l)
		} else {
			p.release(l.number)
		}
	}
	p.left = p.left[:0]
	return octets, late, nil
}

// exchange returns what an exchange takes that an end begins.
func (p *pair) exchange(
	by *halfSent,
	lane uint64,
	request, reply [2][]byte,
	now time.Time,
) (l legs, ok bool, err error) {
	by.last[lane]++
	key := frame.Key{Lane: lane, Exchange: by.last[lane]}
	l = legs{{down: by == p.far}, {down: by == p.near}}
	if l[0].octets, err = by.say(key, request, now); err == nil {
		key.Reply = true
		l[1].octets, err = by.peer.say(key, reply, now)
	}
	return l, true, err
}

// enter returns the lane of a connection.
func (p *pair) enter(c *connection) uint64 {
	lane, has := p.lanes[c]
	own := p.kept[c.client.Addr()]
	switch {
	case has:
		return lane
	case len(own) > 0:
		lane, p.kept[c.client.Addr()] = own[0], own[1:]
	case len(p.free) == 0:
		p.highest++
		lane = p.highest
	default:
		lane = p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
	}
	p.lanes[c] = lane
	return lane
}

// keep has a lane ready for its client.
func (p *pair) keep(l laneOf) { p.kept[l.client] = append(p.kept[l.client], l.number) }

// release makes a lane ready for another client.
func (p *pair) release(lane uint64) {
	p.near.enc.Restart(lane)
	p.far.enc.Restart(lane)
	p.free = append(p.free, lane)
}

// leave returns what the end of a connection takes at once: if the server ended it, and no reply
// announced that, the report of the far proxy. The near one tells the far one later.
func (p *pair) leave(c *connection, byClient bool, now time.Time) (l legs, err error) {
	lane, has := p.lanes[c]
	if !has {
		return l, nil
	}
	if !byClient && !p.closed[c] {
		l[0].down = true
		l[0].octets, err = p.far.send(lane, [2][]byte{proxy.UpstreamEnded(uint64(c.calls), p.clients[lane])}, now)
	}
	delete(p.lanes, c)
	delete(p.closed, c)
	p.clients[lane]++
	if len(p.left) == 0 {
		p.leftAt = now
	}
	p.left = append(p.left, laneOf{lane, c.client.Addr()})
	return l, err
}

// send returns the bytes that a one-way message takes.
func (h *halfSent) send(lane uint64, m [2][]byte, now time.Time) (octets int64, err error) {
	h.last[lane]++
	return h.write(wire.Outgoing{Key: frame.Key{Lane: lane, Exchange: h.last[lane]}, OneWay: true}, m, now)
}

// say returns the bytes that a message takes.
func (h *halfSent) say(key frame.Key, m [2][]byte, now time.Time) (octets int64, err error) {
	return h.write(wire.Outgoing{Key: key}, m, now)
}

func (h *halfSent) write(out wire.Outgoing, m [2][]byte, now time.Time) (octets int64, err error) {
	h.enc.Reset()
	h.rest(now)
	if err := h.split(out.Lane, m); err != nil {
		return 0, err
	}
	for i := range h.pieces {
		p, last := &h.pieces[i], i == len(h.pieces)-1
		for _, part := range [...]*wire.Part{&p.head, &p.body} {
			h.announce(part, now)
		}
		if err := h.enc.Data(&out, &p.head, &p.body, last, now); err != nil {
			return 0, err
		}
	}
	if h.restAt.IsZero() && len(h.pieces) == 1 {
		h.restAt = now.Add(memoryIdle)
	}
	return int64(len(h.enc.Bytes())), nil
}

// announce has a shape travel before its first use. The peer knows it from then on.
func (h *halfSent) announce(part *wire.Part, now time.Time) {
	if !part.There || !part.First || part.Program == nil {
		return
	}
	s := part.Program.Shape()
	_, sure := h.coder.Has(s.Fingerprint())
	for t := h.enc.Announce(part.Program, now); t != nil && !h.enc.Piece(t, now); {
	}
	if !sure {
		h.peer.coder.Keep(s)
	}
}

// split cuts a message into pieces, as the writer of a stream does: the first segment of the body
// goes with the last one of the head, if both fit into a fragment.
func (h *halfSent) split(lane uint64, m [2][]byte) error {
	h.pieces = h.pieces[:0]
	holds := false
	s := h.coder.Split(lane, h.enc.MaxSegment(), func(head bool, p wire.Part) error {
		p.Content = bytes.Clone(p.Content)
		last := len(h.pieces) - 1
		switch {
		case head:
			h.pieces = append(h.pieces, sentFragment{head: p})
		case holds && len(h.pieces[last].head.Content)+len(p.Content) <= h.enc.MaxSegment():
			h.pieces[last].body = p
		default:
			h.pieces = append(h.pieces, sentFragment{body: p})
		}
		holds = head
		return nil
	})
	defer s.Free()
	if len(m[0]) > 0 {
		if err := s.Head(m[0]); err != nil {
			return err
		}
	}
	return s.All(m[1])
}

const (
	// memoryIdle and memoryRest are those of streams: how long a lane is silent before its memory
	// is made small, and how much earlier that is done, so that lanes do it together.
	memoryIdle = 30 * time.Second
	memoryRest = time.Second
)

// rest makes the memories of idle lanes small, when streams do.
func (h *halfSent) rest(now time.Time) {
	for !h.restAt.IsZero() && !now.Before(h.restAt) {
		used := h.enc.Rest(h.restAt.Add(memoryRest - memoryIdle))
		h.restAt = time.Time{}
		if !used.IsZero() {
			h.restAt = used.Add(memoryIdle)
		}
	}
}
