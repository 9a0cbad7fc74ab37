package peer

import (
	"context"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Transacting is a [Service] that puts the effects of a message into a transaction, if the message came in a sequence.
type Transacting interface {
	Service
	// Transact handles one message; number, reply and what it puts into tx are one commit. The context has the session's facts (negotiate.FactsOf). An error means that nothing happened, and it will be asked again.
	Transact(ctx context.Context, tx *wsrm.Tx, request *streamer.Message) (reply *streamer.Message, err error)
}

var _ responder.Sequenced = (*Services)(nil)

// Transactional implements [negotiate.Sequenced].
func (s *Services) Transactional(path string) bool {
	_, ok := s.byPath[path].(Transacting)
	return ok
}

// Transact implements [negotiate.Sequenced].
func (s *Services) Transact(ctx context.Context, path string, tx *wsrm.Tx, request *streamer.Message) (*streamer.Message, error) {
	if targetOf(path, request.Head).method != http.MethodPost {
		return s.Handle(ctx, path, request), nil
	}
	return s.byPath[path].(Transacting).Transact(ctx, tx, request)
}

// Handle implements [negotiate.Sequenced].
func (s *Services) Handle(ctx context.Context, path string, request *streamer.Message) (reply *streamer.Message) {
	// Whatever fails is told by a fault; without that, by an empty reply.
	_ = s.serve(ctx, targetOf(path, request.Head), request, func(m *streamer.Message) error {
		// The request is not to be used when this returns, and the reply may read from it.
		body, err := m.ReadAll(maxRequest)
		if err != nil {
			return err
		}
		reply = streamer.NewMessage(m.Head, body)
		return nil
	})
	return reply
}

// targetOf is what a request of a stream is for.
func targetOf(path string, head []byte) target {
	t := target{method: http.MethodPost, path: path}
	if head == nil {
		return t
	}
	if h, _, err := http1.ParseHead(head, 0); err == nil && !h.IsReply() {
		t.method = string(h.Method())
		_, t.query, _ = strings.Cut(string(h.Target()), "?")
	}
	return t
}
