package streamer

import (
	"context"
)

// Exchange is one exchange that the peer began. It is for its handler's goroutine.
type Exchange struct {
	s       *Stream
	in      *inbound
	oneway  bool
	place   Place
	first   ExchangeHandler // of the request that upgraded the connection
	message Message
	ctx     context.Context
	cancel  context.CancelFunc

	// Below: under exchanges.mu.
	out     *outbound // the reply, once it was begun
	interim *outbound // the last reply before it
	ended   bool      // the handler returned
	replied bool      // the reply is whole
	gone    *Error    // nobody waits for a reply
	counted bool      // it is one of exchanges.flight
}

// Lane is the lane of the exchange.
func (x *Exchange) Lane() uint64 { return x.in.key.Lane }

// Number is the number of the exchange on its lane.
func (x *Exchange) Number() uint64 { return x.in.key.Exchange }

// OneWay reports whether no reply is wanted.
func (x *Exchange) OneWay() bool { return x.oneway }

// Context is that of the handler.
func (x *Exchange) Context() context.Context { return x.ctx }

// Message is the request, or the one-way message. Its Body can be the Body of the reply.
func (x *Exchange) Message() *Message { return &x.message }
