package proxy

import (
	"context"
	"net"

	"github.com/hhfr/hhfr/internal/http1"
)

// Reframe takes a raw chunked body apart as one end does, and puts it together as the other does,
// from nothing but the entity and the line that travels.
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
	return append(c.framing.AppendTo(nil, g.entity), raw[g.octets:]...), line, true
}

// ReadHeadPart parses a hostile head part and puts a body together by it.
func ReadHeadPart(part, entity []byte) (octets int, err error) {
	c, err := parse(part)
	if err != nil {
		return 0, err
	}
	return len(c.framing.AppendTo(nil, entity)), nil
}

// OpensNoMore tells that no further session is opened.
func (p *Proxy) OpensNoMore() bool {
	return p.links.IsClosed()
}

// LanesInUse is how many lanes of the live stream, as its near end, belong to a client.
func (p *Proxy) LanesInUse() int {
	l, _ := p.links.Get()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.highest) - len(l.free)
}

// Dial has a proxy open connections to its upstream by this.
func (c *Config) Dial(dial func(ctx context.Context, network, addr string) (net.Conn, error)) {
	c.dial = dial
}
