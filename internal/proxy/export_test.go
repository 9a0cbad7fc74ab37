package proxy

import (
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Reframe takes a raw chunked body apart as one proxy does, and reassembles it as the other does,
// from the entity and the line that travels alone.
func Reframe(raw []byte) (back, line []byte, ok bool) {
	f := http1.Framing{Kind: http1.Chunked}
	g := gathered{body: http1.NewBody(f), chunks: true}
	g.body.Record()
	if g.feed(raw) != nil || !g.body.Done() {
		return nil, nil, false
	}
	all := false
	if g.parts, all = g.body.Framing(); !all {
		return nil, nil, false
	}
	g.raw = raw[:g.octets]
	line = []byte(g.line())
	c, err := parse(withHead([]byte("POST / HTTP/1.1\r\n\r\n"), g.line()))
	if err != nil {
		return nil, line, true
	}
	return append(c.framing.AppendTo(nil, joined(g.entity())), raw[g.octets:]...), line, true
}

// Holds reports whether more of a chunked body is held than of each.
func (p *Proxy) Holds() bool { return p.held.left.Load() < maxHeld }

// ReadHeadPart parses a hostile head part and reassembles a body by it.
func ReadHeadPart(part, entity []byte) (octets int, err error) {
	c, err := parse(part)
	if err != nil {
		return 0, err
	}
	return len(c.framing.AppendTo(nil, entity)), nil
}

// OpensNoMore reports whether no further session is opened.
func (p *Proxy) OpensNoMore() bool { return p.defaultUpstream().streams.links.IsClosed() }

func (p *Proxy) defaultUpstream() *upstream { return p.table.Load().routes[""].rest }

// LanesInUse is the number of lanes of the live stream, at its near end, that belong to a client.
func (p *Proxy) LanesInUse() int {
	l, _ := p.defaultUpstream().streams.links.Get()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.highest) - len(l.vacant.free) - len(l.vacant.left) - len(l.vacant.kept)
}

// Callers is the number of connections of clients that the live stream carries, also of those whose
// lane is another one's already.
func (p *Proxy) Callers() int {
	l, _ := p.defaultUpstream().streams.links.Get()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.callers)
}

// Live is the live stream, nil if there is none.
func (p *Proxy) Live() *streamer.Stream {
	if l, _ := p.defaultUpstream().streams.links.Get(); l != nil {
		return l.stream
	}
	return nil
}

// Connections is the number of slots that connections of clients have.
func (p *Proxy) Connections() int { return p.conns.Len() }

// CompleteNow does for each connection of clients what the stream's reader does when a reply came.
func (p *Proxy) CompleteNow() {
	l, _ := p.defaultUpstream().streams.links.Get()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.callers {
		c.completeNow()
	}
}

// LanesKept is the number of those that nobody uses, and that their clients may go on with.
func (p *Proxy) LanesKept() int {
	l, _ := p.defaultUpstream().streams.links.Get()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.vacant.kept)
}

// IsClosed reports whether Close was called.
func (k *Keeper[T]) IsClosed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed
}
