package streamer

import (
	"context"
	"sync/atomic"
)

// Exchange is one exchange that the peer began. It is for its handler's goroutine.
type Exchange struct {
	s        *Stream
	in       *inbound
	first    ExchangeHandler // of the request that upgraded the connection
	message  Message
	context  handlerContext
	wire     wireCount
	oneway   bool
	bound    bool         // it wants its handler
	opened   bool         // the head of the message was read
	detached atomic.Int32 // how many hold it beside the handler; below 0: it has ended

	// Below: under exchanges.mu.
	out     *outbound // the reply, once it was begun
	interim *outbound // the last reply before it
	gone    *Error    // nobody waits for a reply
	ended   bool      // the handler returned
	replied bool      // the reply is whole
	counted bool      // it is one of exchanges.flight
}

// servedExchange is what an exchange needs, in one piece of memory.
type servedExchange struct {
	x    Exchange
	in   inbound
	body body
}

// newExchange gives one without what came of its message.
func newExchange(s *Stream) *servedExchange {
	all := new(servedExchange)
	all.x.s, all.x.in, all.x.context.stream = s, &all.in, &s.ctx
	all.in.x, all.body.in = &all.x, &all.in
	return all
}

// Lane is the lane of the exchange.
func (x *Exchange) Lane() uint64 { return x.in.key.Lane }

// Number is the number of the exchange on its lane.
func (x *Exchange) Number() uint64 { return x.in.key.Exchange }

// OneWay reports whether no reply is wanted.
func (x *Exchange) OneWay() bool { return x.oneway }

// Context is that of the handler. It ends with the exchange.
func (x *Exchange) Context() context.Context { return &x.context }

// Message is the request, or the one-way message. Its Body can be the Body of the reply.
func (x *Exchange) Message() *Message { return &x.message }

// Count adds what the data frames of the message and of its replies take on the wire to a counter:
// those so far, and all that follow, also when the handler has returned.
func (x *Exchange) Count(to *WireBytes) { x.wire.countFor(to) }
