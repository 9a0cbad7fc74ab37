package responder

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
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

// sequences are the sequences of a responder that a stream uses.
type sequences struct {
	mu      sync.Mutex
	open    map[string]*opened
	kept    map[string]*keptSequence // by URI; nil: the store was not looked at yet
	listing sync.Mutex               // locked while it is
}

// opened is a sequence with its users.
type opened struct {
	mu    sync.Mutex // locked while it is opened or closed
	users int        // guarded by sequences.mu
	seq   *sequence.Sequence

	entered, attached uint64 // streams, in the order in which their sessions were joined
}

// sequenceEntry is a stream's place in a sequence.
type sequenceEntry struct {
	o     *opened
	seq   *sequence.Sequence
	order uint64
}

// attach moves the sequence to a stream, unless a stream that was joined later has it already.
func (e *sequenceEntry) attach(s *streamer.Stream) {
	e.o.mu.Lock()
	late := e.order < e.o.attached
	if !late {
		e.o.attached = e.order
		e.seq.Attach(s)
	}
	e.o.mu.Unlock()
	if late {
		s.Abort(streamer.CloseGoingAway, "the sequence goes on over another stream")
	}
}

// sequenceLife is how long a responder keeps the state of a sequence without progress, from its
// last change.
const sequenceLife = 30 * 24 * time.Hour

// assure returns the reason why the responder cannot give an assurance; nil if it can.
func (r *Responder) assure(uri string, o *negotiate.Offer) error {
	if uri == negotiate.AtMostOnce {
		return nil
	}
	a, _, ok := negotiate.ParseAssurance(uri)
	switch {
	case !ok || r.cfg.Sequenced == nil:
		return errors.New("nothing in common")
	case o.Sequence == "":
		return negotiate.ErrNoSequence
	case a == wsrm.ExactlyOnce && !ctxstore.Persists(r.cfg.Store):
		return errors.New("exactly-once needs a context store that persists, and there is none here")
	}
	return nil
}

// knows reports whether the store has the state of a sequence.
func (r *Responder) knows(ctx context.Context, uri string) (bool, error) {
	return ctxstore.Has(ctx, r.cfg.Store, uri)
}

// enter opens the sequence of a session, or joins those that have it open; leave must be called.
func (r *Responder) enter(
	ctx context.Context, facts *negotiate.Facts, peer string,
) (e *sequenceEntry, leave func(), err error) {
	s := &r.sequences
	s.mu.Lock()
	if s.open == nil {
		s.open = map[string]*opened{}
	}
	o := s.open[facts.Sequence]
	if o == nil {
		o = &opened{}
		s.open[facts.Sequence] = o
	}
	o.users++
	s.mu.Unlock()
	leave = func() { r.leave(facts.Sequence, o) }
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seq != nil && o.seq.Err() != nil && !o.seq.Status().Over {
		o.seq.Close() // its store failed: only the committed state is left
		o.seq = nil
	}
	if o.seq == nil {
		if err := r.reserveSequence(ctx, facts.Sequence, peer); err != nil {
			return nil, leave, err
		}
		a, ordered, _ := negotiate.ParseAssurance(facts.Assurance)
		o.seq, err = sequence.Open(context.WithoutCancel(r.ctx), sequence.Config{ // not bound to one stream
			Assurance: a,
			Ordered:   ordered,
			Store:     r.cfg.Store,
			URI:       facts.Sequence,
			Life:      sequenceLife,
			Collect:   true,
			Broken:    unsentReply(),
			Handler:   sequencedHandler{r, newServed(facts)},
			Clock:     r.cfg.Clock,
			Log:       r.cfg.Log,
		})
		if err != nil {
			s.mu.Lock()
			delete(s.kept, facts.Sequence)
			s.mu.Unlock()
			return nil, leave, err
		}
	}
	o.entered++
	return &sequenceEntry{o, o.seq, o.entered}, leave, nil
}

// leave closes a sequence without users. A message that is being handled at that moment is not
// interrupted: its outcome would be unknown, and the initiator may be back before it.
func (r *Responder) leave(uri string, o *opened) {
	o.mu.Lock()
	q := o.seq
	o.mu.Unlock()
	if q != nil {
		q.Drain(r.ctx)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &r.sequences
	s.mu.Lock()
	o.users--
	last := o.users == 0
	s.mu.Unlock()
	if !last {
		return
	}
	q, o.seq = o.seq, nil
	if q != nil {
		q.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q != nil {
		r.leftLocked(uri, q.Lasts())
	}
	if o.users == 0 { // else someone waits to open it
		delete(s.open, uri)
	}
}

// sequencedHandler handles the messages of a sequence.
type sequencedHandler struct {
	r *Responder
	*servedSession
}

// Transactional implements [sequence.MessageHandler].
func (h sequencedHandler) Transactional(m sequence.Stored) bool {
	return h.r.cfg.Sequenced.Transactional(h.pathFor(m.Head))
}

// Transact implements [sequence.MessageHandler].
func (h sequencedHandler) Transact(ctx context.Context, tx *wsrm.Tx, m sequence.Stored) (sequence.Stored, error) {
	reply, err := h.r.cfg.Sequenced.Transact(h.in(ctx), h.pathFor(m.Head), tx, m.Message(ctx))
	if err != nil {
		return sequence.Stored{}, err
	}
	return whole(reply), nil
}

// Handle implements [sequence.MessageHandler].
func (h sequencedHandler) Handle(ctx context.Context, m sequence.Stored) sequence.Stored {
	return whole(h.r.cfg.Sequenced.Handle(h.in(ctx), h.pathFor(m.Head), m.Message(ctx)))
}

// whole is a reply as a sequence takes it, which reads it to its end.
func whole(reply *streamer.Message) sequence.Stored {
	if reply == nil {
		return sequence.Stored{}
	}
	return sequence.Stored{Head: reply.Head, Rest: reply.Body}
}

// pathFor returns the path that a message of a session goes to: that of the request target in its
// head, or the negotiated one.
func (s *servedSession) pathFor(head []byte) string {
	if head != nil {
		// A malformed head goes where the session was negotiated; the service there sees it as it
		// is.
		if h, _, err := http1.ParseHead(head, 0); err == nil && !h.IsReply() {
			if u, err := url.ParseRequestURI(string(h.Target())); err == nil {
				return u.Path
			}
		}
	}
	return s.use().path
}
