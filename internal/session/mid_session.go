package session

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// laterHeaders are the unchanging headers of a stream, to which those are added that turn out to
// recur while it runs: they go to the common store, the peer is told of them, and neither its
// messages nor ours have them any more.
type laterHeaders struct {
	unchanging.Lifter
	looked atomic.Uint64

	mu      sync.Mutex
	session headersKeeper // nil: the stream is not in use yet
	on      *streamer.Stream
	telling bool
	told    map[string]bool // blocks that the peer was told of
}

// headersKeeper is a session whose streams have such headers.
type headersKeeper interface {
	Referrer() *unchanging.Referrer
	// start runs something beside the session, until its context is done; false: it is closed.
	start(func(context.Context)) bool
}

const (
	// alwaysLooked is how many messages of a stream are looked at for blocks that recur; after that
	// it is one in lookedAt, since looking costs more than sending.
	alwaysLooked, lookedAt = 64, 16
	// tellingTimeout bounds the wait for a peer that is told of blocks. It may have to wait for the
	// store.
	tellingTimeout = 20 * time.Second
)

// newHeaders returns the headers of a stream; nil: bodies travel as they are.
func newHeaders(cfg *Config, facts *negotiate.Facts, taken *atomic.Int64) *laterHeaders {
	later := facts.Common != nil && cfg.Common != nil && len(cfg.Common.Headers) > 0
	if len(facts.Headers) == 0 && !later {
		return nil
	}
	h := &laterHeaders{Lifter: unchanging.Lifter{Texts: facts.Headers, Taken: taken}, told: map[string]bool{}}
	if later {
		h.Look = h.look
	}
	return h
}

// begin has messages of a stream looked at.
func (h *laterHeaders) begin(s headersKeeper, on *streamer.Stream) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.session, h.on = s, on
}

// look looks at the beginning of a message. What it finds is told beside the messages: none waits.
func (h *laterHeaders) look(beginning []byte) {
	if n := h.looked.Add(1); n > alwaysLooked && n%lookedAt != 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session == nil || h.telling {
		return
	}
	r := h.session.Referrer()
	if r == nil {
		return
	}
	var blocks []string
	for _, b := range r.Recurring(beginning) {
		if !h.told[b] && len(blocks) < negotiate.MaxFragments {
			blocks = append(blocks, b)
		}
	}
	if len(blocks) == 0 {
		return
	}
	h.telling = h.session.start(func(ctx context.Context) { h.tell(ctx, r, blocks) })
}

// tell tells the peer of blocks. It may leave them out of replies before its reply is here.
func (h *laterHeaders) tell(ctx context.Context, r *unchanging.Referrer, blocks []string) {
	var references []string
	for _, b := range blocks {
		references = append(references, r.Reference(b))
	}
	err := h.agree(ctx, references, blocks)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.telling = false
	switch {
	case err == nil:
		for _, b := range blocks {
			h.told[b] = true
		}
	case ctx.Err() == nil && !h.on.Over():
		r.Refused(references, false, err)
	}
}

// agree asks the peer to keep blocks, and takes them out of messages from then on.
func (h *laterHeaders) agree(ctx context.Context, references, blocks []string) error {
	if !h.Know(blocks) {
		return errors.New("more blocks than a stream may have")
	}
	message, err := negotiate.FragmentsMessage(references)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tellingTimeout)
	defer cancel()
	reply, err := h.on.Lane(negotiate.FragmentsLane).Call(ctx, streamer.NewMessage(nil, message))
	if err != nil {
		return err
	}
	defer func() { _ = httpmsg.CloseReader(reply.Body) }()
	data, err := io.ReadAll(io.LimitReader(reply.Body, unchanging.MaxFault))
	if err == nil {
		err = negotiate.ParseFragmentsKept(data)
	}
	if err == nil {
		h.Take(blocks)
	}
	return err
}
