package streamer

import (
	"context"
	"errors"

	"github.com/hhfr/hhfr/internal/frame"
)

// Reply sends the one reply. It returns when the last of it is queued; m.Body is read until then.
// ctx ends the waiting for room, usually the handler's. Errors are *[Error]: NoReply for a second
// reply or that to a one-way message, what the peer said if it waits no longer, Unsent or
// FateUnknown for a stream that is over, Aborted if m.Body failed.
func (x *Exchange) Reply(ctx context.Context, m *Message) error {
	out, err := x.begin(false, false)
	if err != nil {
		closeBody(m.Body)
		return err
	}
	return x.s.sendAll(ctx, out, m, true)
}

// Respond begins the one reply: its head is sent with the first of the body, at a Flush, or after a
// pause. length is that of the body in bytes, -1 if it is not known. The Writer must be closed or
// aborted. Errors are those of [Exchange.Reply].
func (x *Exchange) Respond(ctx context.Context, head []byte, length int64) (*Writer, error) {
	out, err := x.begin(false, true)
	if err != nil {
		return nil, err
	}
	w, err := x.s.send(ctx, out, head, length)
	if err == nil {
		w.expect()
	}
	return w, err
}

// Refuse tells the peer that the message was not processed and is safe to send again, elsewhere if
// it will be refused here again; text says why, in at most 256 bytes. It is for a handler that did
// nothing for the exchange, and replies to nothing after it. The peer gets [Unprocessed].
func (x *Exchange) Refuse(text string) {
	x.s.exchanges.refuse(x.in, frame.Unprocessed, &Error{Code: Unprocessed, Err: errors.New(text)})
}

// Interim sends a reply before the one that counts, as HTTP has them with the statuses 1xx, and
// returns when it is written. It is given up when it is not by the end of ctx; one of more content
// than the peer's window is too long. Errors are those of [Exchange.Reply]; others may follow.
func (x *Exchange) Interim(ctx context.Context, m *Message) error {
	out, err := x.begin(true, true)
	if err != nil {
		closeBody(m.Body)
		return err
	}
	if err := x.s.sendAll(ctx, out, m, false); err != nil {
		return err
	}
	err = x.s.queue.await(ctx, out, out.written)
	own := (*Error)(nil)
	if err == nil || errors.As(err, &own) {
		return err
	}
	own = &Error{Code: Aborted, Err: err}
	if !x.s.queue.drop(out, own, frame.Aborted) { // it is over meanwhile
		return nil
	}
	return own
}

// begin lets a reply in, if one is still wanted. kept: it is for others than the queue and its
// writer, too.
func (x *Exchange) begin(interim, kept bool) (*outbound, error) {
	out := newOutbound(1, kept)
	out.owner = x
	out.message.Key, out.message.Interim = replyTo(x.in.key), interim
	e := &x.s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case x.oneway:
		return nil, &Error{Code: NoReply, Err: errors.New("message is one-way")}
	case x.out != nil:
		return nil, &Error{Code: NoReply, Err: errors.New("second reply")}
	case x.gone != nil:
		return nil, x.gone
	}
	if err := x.s.queue.admit(out); err != nil {
		return nil, err
	}
	if interim {
		out.written = make(chan struct{})
		x.interim = out
	} else {
		x.out = out
	}
	return out, nil
}
