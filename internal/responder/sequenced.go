package responder

import (
	"context"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Sequenced are services whose messages come in sequences. Paths are as in [Config].Serve; a nil
// reply is an empty one. See [sequence.MessageHandler].
type Sequenced interface {
	// Transactional reports whether the service at path puts its effects into a transaction.
	Transactional(path string) bool
	// Transact handles a message whose effects are those of tx.
	Transact(
		ctx context.Context, path string, tx *wsrm.Tx, request *streamer.Message,
	) (reply *streamer.Message, err error)
	// Handle handles a message with effects of its own.
	Handle(ctx context.Context, path string, request *streamer.Message) (reply *streamer.Message)
}
