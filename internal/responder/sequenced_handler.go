package responder

import (
	"context"

	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// sequencedHandler handles the messages of a sequence.
type sequencedHandler struct {
	services Sequenced
	*servedSession
}

// Transactional implements [sequence.MessageHandler].
func (h sequencedHandler) Transactional(m sequence.Stored) bool {
	return h.services.Transactional(h.pathFor(m.Head))
}

// Transact implements [sequence.MessageHandler].
func (h sequencedHandler) Transact(ctx context.Context, tx *wsrm.Tx, m sequence.Stored) (sequence.Stored, error) {
	reply, err := h.services.Transact(h.in(ctx), h.pathFor(m.Head), tx, m.Message(ctx))
	if err != nil {
		return sequence.Stored{}, err
	}
	return whole(reply), nil
}

// Handle implements [sequence.MessageHandler].
func (h sequencedHandler) Handle(ctx context.Context, m sequence.Stored) sequence.Stored {
	return whole(h.services.Handle(h.in(ctx), h.pathFor(m.Head), m.Message(ctx)))
}

// whole is a reply as a sequence takes it, which reads it to its end.
func whole(reply *streamer.Message) sequence.Stored {
	if reply == nil {
		return sequence.Stored{}
	}
	return sequence.Stored{Head: reply.Head, Rest: reply.Body}
}
