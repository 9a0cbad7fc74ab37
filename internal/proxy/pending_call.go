package proxy

import (
	"context"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// pendingCall is a request that waits for its reply, or the begin of a tunnel.
type pendingCall struct {
	method  string // empty: a tunnel
	raw     []byte // all that was read from the client for it, where that is retained
	invalid bool   // its body is, and it was not sent whole; set before it is abandoned
	pending *streamer.Pending
	seen    measured
	out     replyMeter
	err     error // it was not begun: what was to be sent is in the source still

	// decide ends undecided: the final reply is there, so it is known whether the connection is a
	// tunnel.
	undecided context.Context
	decide    context.CancelFunc
	becomes   bool // whether it is; valid once undecided has ended
	interim   bool // an interim reply went to the client; used by the writer alone
	// By who completes the call:
	replied   bool              // the final reply went to the client
	reply     *streamer.Message // that was taken for the writer
	failure   error             // likewise
	delivered bool              // the reply was written, but for what the connection did not take at once
	end       fate              // then
}

// ended counts the end of a call. ok: its reply went to the client.
func (x *pendingCall) ended(ok bool) {
	if x.pending != nil {
		x.pending.Count(x.seen.Wire())
	}
	x.seen.Done(x.seen.clock.Now(), ok)
}

// next waits for the next reply.
func (x *pendingCall) next(ctx context.Context) (*streamer.Message, error) {
	m, err := x.reply, x.failure
	if x.reply, x.failure = nil, nil; m != nil || err != nil {
		return m, err
	}
	return x.pending.Next(ctx)
}

// giveUp abandons a call that nobody waits for any more: a stream that ends waits for calls that
// were not abandoned. The error is that of its outcome.
func (x *pendingCall) giveUp(ctx context.Context) error {
	if x.err != nil {
		return x.err
	}
	m, err := x.pending.Reply(ctx)
	if err == nil {
		closeBody(m.Body)
	}
	return err
}

// fate is the outcome for the connection after a call.
type fate uint8

const (
	goOn fate = iota
	endInOrder
	endBroken
)

// inOrder is the fate of a connection that ends.
func inOrder(is bool) fate {
	if is {
		return endInOrder
	}
	return endBroken
}
