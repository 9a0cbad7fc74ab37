package estimate

import (
	"net/netip"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// pair is a pair of proxies in front of one server: the two directions of their stream, with the
// shapes that each end knows.
type pair struct {
	near, far *halfSent
	mode      principal.Mode
	replay    *proxy.Replay
	rule      *principal.Registry
	lanes     map[*connection]*laneOf
	free      []uint64                     // lanes
	left      []*laneOf                    // whose connection is gone, and the far end does not know
	kept      map[principal.Key][]keptLane // of clients that may come again, the latest one last
	leftAt    time.Time
	looked    time.Time         // for lanes that were kept for too long
	clients   map[uint64]uint64 // how many a lane had before
	highest   uint64
}

// keptLane is a lane whose client was there last at a time.
type keptLane struct {
	number uint64
	since  time.Time
}

// laneOf is a lane of a connection.
type laneOf struct {
	number uint64
	who    principal.Client
	closed bool              // its last reply said that it is closed
	coded  [2]deflate.Finder // of requests, of replies
}

// halfSent is what one end sends.
type halfSent struct {
	store     ctxstore.Store
	coder     *binary.Coder
	enc       *wire.Encoder
	peer      *halfSent
	described binary.Describer     // both have it; nil: neither
	known     []binary.Fingerprint // shapes that the peer has since an earlier stream
	last      map[uint64]uint64    // the exchange begun last, by lane
	// restAt is when the memory of a lane may be idle; zero: none is in use.
	restAt time.Time
}

// newPair makes a pair that meets for the first time. Its shapes are in stores of its ends.
func newPair(near, far ctxstore.Store, cfg *Config, mode principal.Mode, now time.Time) (*pair, error) {
	of := func(s ctxstore.Store) *halfSent { return &halfSent{store: s, described: cfg.Description} }
	return open(of(near), of(far), mode, now)
}

// again makes a pair that opens another stream with the stores of its ends.
func (p *pair) again(now time.Time) (*pair, error) {
	known := func(h *halfSent) *halfSent {
		n := &halfSent{store: h.store, described: h.described}
		for _, fp := range h.coder.PeerHas(negotiate.MaxShapes) {
			n.known = append(n.known, fp)
		}
		return n
	}
	return open(known(p.near), known(p.far), p.mode, now)
}

// open begins a stream of two ends.
func open(near, far *halfSent, mode principal.Mode, now time.Time) (*pair, error) {
	near.peer, far.peer = far, near
	cfg := proxy.StreamConfig(streamer.Config{})
	limits, err := cfg.Limits.Stated()
	if err != nil {
		return nil, err
	}
	for _, h := range []*halfSent{near, far} {
		book := binary.NewBook(ctxstore.Shapes{Store: h.store})
		h.coder = book.Coder(binary.Options{PeerKnows: h.known, Description: h.described, Shared: h.described != nil})
		hello := frame.Hello{Responder: h == far, Proxy: true, Representation: frame.Binary, Stages: h.coder.Stages(),
			Limits: limits, Abilities: cfg.Abilities}
		if !hello.Responder {
			hello.Token = make([]byte, frame.TokenLen)
		}
		h.enc = wire.NewEncoder(wire.EncoderConfig{Origin: frame.OriginOf(hello), Peer: h.coder,
			Compression: h.coder.Compression(), Limits: limits}, len(hello.AppendTo(nil)), now)
		h.last = map[uint64]uint64{}
	}
	return &pair{near: near, far: far, mode: mode, replay: proxy.NewReplay(),
		rule:  principal.NewRegistry(mode, [32]byte{}),
		lanes: map[*connection]*laneOf{}, kept: map[principal.Key][]keptLane{}, clients: map[uint64]uint64{}}, nil
}

// carry returns what a call takes on the stream.
func (p *pair) carry(c *capturedCall, now time.Time) (l legs, ok bool, err error) {
	ends, err := p.tellEnds(now, c.request.last)
	if err != nil {
		return l, false, err
	}
	lane, changed, err := p.enter(c, now)
	if err != nil {
		return nil, false, err
	}
	request, ok := p.replay.Message(c.request.octets, c.request.reads(), "", &lane.coded[0])
	if !ok {
		return l, false, nil
	}
	reply, ok := p.replay.Message(c.reply.octets, c.reply.reads(), c.reply.method, &lane.coded[1])
	if !ok {
		return l, false, nil
	}
	p.near.last[lane.number]++
	key := frame.Key{Lane: lane.number, Exchange: p.near.last[lane.number]}
	asked, err := p.near.write(wire.Outgoing{Key: key}, &request, now)
	if err != nil {
		return l, false, err
	}
	key.Reply = true
	interim := make([][]write, len(c.interim))
	for i, m := range c.interim {
		said, _ := p.replay.Message(m.octets, m.reads(), c.reply.method, nil)
		if interim[i], err = p.far.write(wire.Outgoing{Key: key, Interim: true}, &said, now); err != nil {
			return l, false, err
		}
	}
	answer, err := p.far.write(wire.Outgoing{Key: key}, &reply, now)
	if err != nil {
		return l, false, err
	}
	if lane.closed = proxy.IsLast(c.reply.octets); lane.closed {
		p.over(c.conn, lane, c.reply.last)
	}
	if ends.octets > 0 && ends.late {
		asked[0].octets += changed
		return append(legs{ends.leg()}, c.legs(asked, interim, answer)...), true, nil
	}
	asked[0].octets += ends.octets + changed
	return c.legs(asked, interim, answer), true, nil
}

// toldEnds is what it takes to tell that clients left; late: it went before the call that is about
// to go.
type toldEnds struct {
	octets int64
	late   bool
}

func (e toldEnds) leg() leg { return leg{between: true, writes: once(e.octets)} }

// tellEnds tells the far end of the clients that left, before a call that goes at a time.
func (p *pair) tellEnds(now, at time.Time) (e toldEnds, err error) {
	if len(p.left) == 0 || at.Before(p.leftAt) {
		return e, nil
	}
	if told := p.leftAt.Add(proxy.EndDelay); at.After(told) {
		e.late, now = true, told
	}
	for _, l := range p.left {
		n, err := p.near.send(l.number, proxy.LaneEnd(p.rule.Keeps(l.who.Key, now)), now)
		if err != nil {
			return e, err
		}
		e.octets += n
		p.keep(l, now)
	}
	p.left = p.left[:0]
	return e, nil
}

// enter returns the lane of a connection, for its next call, and what it takes to say that it is of
// another client than the one before.
func (p *pair) enter(c *capturedCall, now time.Time) (l *laneOf, changed int64, err error) {
	h, _, err := http1.ParseHead(c.request.octets, 0)
	if err != nil {
		return nil, 0, err
	}
	l = p.lanes[c.conn]
	v := p.rule.Judge(principal.Peer{Addr: c.conn.client.Addr()}, &h, l == nil, now)
	if v.Emptied || now.Sub(p.looked) >= time.Minute {
		p.looked = now
		p.disown(c.conn.client.Addr(), v.Emptied, now)
	}
	if l != nil {
		if l.who.Next(v) {
			changed, err = p.near.send(l.number, proxy.ClientChange(), now)
			p.near.enc.Restart(l.number)
			p.far.enc.Restart(l.number)
		}
		return l, changed, err
	}
	l = new(laneOf)
	l.who.Next(v)
	own := p.kept[l.who.Key]
	switch last := len(own) - 1; {
	case last >= 0:
		l.number, p.kept[l.who.Key] = own[last].number, own[:last]
	case len(p.free) == 0:
		p.highest++
		l.number = p.highest
	default:
		l.number = p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
	}
	p.lanes[c.conn] = l
	return l, 0, nil
}

// disown has nobody go on with lanes that were kept for too long, or for an address that shows that
// it is not one client's.
func (p *pair) disown(addr netip.Addr, emptied bool, now time.Time) {
	for key, lanes := range p.kept {
		p.kept[key] = slices.DeleteFunc(lanes, func(l keptLane) bool {
			over := emptied && key.Addr() == addr.Unmap() || now.Sub(l.since) >= principal.Lifetime
			if over {
				p.gone(&laneOf{number: l.number}, now)
			}
			return over
		})
		if len(p.kept[key]) == 0 {
			delete(p.kept, key)
		}
	}
}

// gone has the far end be told that the client of a lane is.
func (p *pair) gone(l *laneOf, now time.Time) {
	if len(p.left) == 0 {
		p.leftAt = now
	}
	p.left = append(p.left, l)
}

// keep has a lane ready: for its client, if that may come again, or for any other.
func (p *pair) keep(l *laneOf, now time.Time) {
	if !p.rule.Keeps(l.who.Key, now) {
		p.release(l.number)
		return
	}
	p.kept[l.who.Key] = append(p.kept[l.who.Key], keptLane{l.number, now})
}

// release makes a lane ready for another client.
func (p *pair) release(lane uint64) {
	p.near.enc.Restart(lane)
	p.far.enc.Restart(lane)
	p.free = append(p.free, lane)
}

// leave returns what the end of a connection takes at once: if the server ended it, and no reply
// announced that, the report of the far proxy. The near one tells the far one later.
func (p *pair) leave(c *connection, byClient bool, now time.Time) (l legs, err error) {
	lane := p.lanes[c]
	if lane == nil {
		return nil, nil
	}
	if !byClient && !lane.closed {
		n, err := p.far.send(lane.number, proxy.UpstreamEnded(uint64(c.calls), p.clients[lane.number]), now)
		if err != nil {
			return nil, err
		}
		l = legs{{down: true, between: true, writes: once(n)}}
	}
	p.over(c, lane, now)
	return l, nil
}

// over has a lane be left by its connection.
func (p *pair) over(c *connection, lane *laneOf, now time.Time) {
	delete(p.lanes, c)
	p.clients[lane.number]++
	p.gone(lane, now)
}

// send returns the bytes that a one-way message takes, which is a head part.
func (h *halfSent) send(lane uint64, head []byte, now time.Time) (octets int64, err error) {
	h.last[lane]++
	said := proxy.Said{Head: head, Whole: true, Steps: []proxy.SaidStep{{}}}
	w, err := h.write(wire.Outgoing{Key: frame.Key{Lane: lane, Exchange: h.last[lane]}, OneWay: true}, &said, now)
	if err != nil {
		return 0, err
	}
	return w[0].octets, nil
}

// write returns what leaves of a message, and when.
func (h *halfSent) write(out wire.Outgoing, m *proxy.Said, now time.Time) (all []write, err error) {
	h.enc.Reset()
	h.rest(now)
	w := &writing{h: h, out: out, now: now}
	if err := w.message(m); err != nil {
		return nil, err
	}
	if h.restAt.IsZero() && w.written == 1 {
		h.restAt = now.Add(memoryIdle)
	}
	return w.writes, nil
}

// announce has a shape travel before its first use. The peer knows it from then on.
func (h *halfSent) announce(lane uint64, part *wire.Part, head bool, now time.Time) {
	if !part.There || !part.First || part.Program == nil {
		return
	}
	s := part.Program.Shape()
	_, sure := h.coder.Has(s.Fingerprint())
	for t := h.enc.Announce(lane, part, head, now); t != nil && !h.enc.Piece(t, now); {
	}
	if _, kept := h.peer.coder.Has(s.Fingerprint()); !sure && !kept {
		h.peer.coder.Keep(s)
	}
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
