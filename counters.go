package hhfr

import (
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// Counters are what a [Client], [Transport], [Handler] or [Server] has counted since it began, at
// one moment.
type Counters struct {
	// Requests is how many requests and one-way messages began, over streams or not, without those
	// that the peer of a client begins. Where it begins none, the difference to Sent.Messages went
	// without a stream; at a server, that to Received.Messages came so.
	Requests int64
	// InFlight is how many of them are not over: at a client, until the body of the reply is read
	// to its end or closed; at a server, until the service returns.
	InFlight int64
	// Sent and Received are what streams carried from this end, and to it.
	Sent, Received Carried
	// Accepted is how many messages the store has taken for the peer under a guarantee or in order,
	// from all clients that sent them, and Acknowledged how many of those the peer is done with:
	// the others are pending. A Transport counts those of its present sessions, a server none.
	Accepted, Acknowledged int64
}

// Carried is one direction of all streams. What is sent again counts again.
type Carried struct {
	// Messages is how many there were: requests, one-way messages and replies.
	Messages int64
	// Bytes is how long they are in plain SOAP, heads and bodies, without the fields about one
	// connection: Host, Content-Length. Received ones count as they are read, and without the
	// header blocks of Config.Unchanging.
	Bytes int64
	// Wire is what the streams took for them, all else that they carry included: the bytes of a
	// connection without those of TLS, UDP and TCP, and of the HTTP that was upgraded.
	Wire int64
}

// Saved is how many bytes were not sent; below 0, if streams cost more than they save.
func (c Carried) Saved() int64 { return c.Bytes - c.Wire }

// Counters returns what was counted.
func (c *Client) Counters() Counters {
	if !c.isDialed() {
		return Counters{}
	}
	return c.tally.counters(c.session.Sequenced())
}

// Counters returns what was counted over all sessions.
func (t *Transport) Counters() Counters {
	if t.open() != nil {
		return Counters{}
	}
	return t.tally.counters(t.below.Sequenced())
}

// Counters returns what was counted.
func (h *Handler) Counters() Counters { return h.tally.counters(0, 0) }

// Counters returns what was counted; nothing before it serves.
func (s *Server) Counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handler == nil {
		return Counters{}
	}
	return s.handler.Counters()
}

// tally counts.
type tally struct {
	streams            streamer.Carried
	requests, inFlight atomic.Int64
}

// begin counts a request that begins; end must be called.
func (t *tally) begin() {
	t.requests.Add(1)
	t.inFlight.Add(1)
}

func (t *tally) end() { t.inFlight.Add(-1) }

func (t *tally) counters(accepted, done uint64) Counters {
	return Counters{
		Requests: t.requests.Load(), InFlight: t.inFlight.Load(),
		Sent: carried(&t.streams.Sent), Received: carried(&t.streams.Received),
		Accepted: int64(accepted), Acknowledged: int64(done),
	}
}

func carried(c *streamer.CarriedMessages) Carried {
	return Carried{Messages: c.Messages.Load(), Bytes: c.Bytes.Load(), Wire: c.Wire.Load()}
}
