package proxy

import (
	"cmp"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// StreamConfig returns the configuration of a pair's stream, from that of any stream.
func StreamConfig(c streamer.Config) streamer.Config {
	c.Limits.MaxExchanges = cmp.Or(c.Limits.MaxExchanges, maxFlight)
	c.Limits.MaxMessage = endless
	c.Proxy, c.Abilities = true, codesAgain
	return c
}

// Parts returns what a pair carries of an HTTP message whose bytes are all there: head part and
// body. method is that of the request, for a reply; coded is of its direction of the connection.
// false: it is no such message.
func Parts(octets []byte, method string, coded *deflate.Finder) (head, body []byte, ok bool) {
	h, n, err := http1.ParseHead(octets, maxHeadOctets)
	if err != nil {
		return nil, nil, false
	}
	f, err := http1.RequestFraming(&h)
	if h.IsReply() {
		f, err = http1.ReplyFraming(&h, method)
	}
	if err != nil || f.Kind == http1.Tunnel {
		return nil, nil, false
	}
	if f.Kind != http1.Chunked {
		head, entity := partsOf(coded, &h, "\n", [][]byte{octets[n:]})
		return head, joined(entity), true
	}
	g := gathered{body: http1.NewBody(f), chunks: true}
	g.body.Record()
	if g.feed(octets[n:]) != nil || !g.body.Done() {
		return nil, nil, false
	}
	parts, all := g.body.Framing()
	if g.raw, g.parts = octets[n:n+g.octets], parts; !all {
		return withHead(h.Octets, restLine), g.raw, true
	}
	head, entity := partsOf(coded, &h, g.line(), g.entity())
	return head, joined(entity), true
}

// IsLast reports whether an HTTP message whose bytes are all there says that its connection is
// closed after it.
func IsLast(octets []byte) bool {
	h, _, err := http1.ParseHead(octets, maxHeadOctets)
	return err == nil && isLast(&h)
}

// UpstreamEnded and LaneEnd are the head parts of the one-way messages without a body by which the
// connection of a lane ends: the upstream closed after so many of its calls; the client's is gone,
// which may come again if it is known by its address.
func UpstreamEnded(calls, client uint64) []byte { return endLine(ended, calls, client) }
func LaneEnd(perAddress bool) []byte {
	if perAddress {
		return line(hangUp)
	}
	return line(leave)
}
