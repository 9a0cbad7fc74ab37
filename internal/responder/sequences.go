package responder

import (
	"context"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// sequences are the sequences of a responder that a stream uses, and those whose state it keeps.
// All methods are safe for concurrent use.
type sequences struct {
	cfg *Config
	ctx context.Context // ends with the responder

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

// knows reports whether the store has the state of a sequence.
func (s *sequences) knows(ctx context.Context, uri string) (bool, error) {
	return ctxstore.Has(ctx, s.cfg.Store, uri)
}

// enter opens the sequence of a session, or joins those that have it open; leave must be called.
func (s *sequences) enter(
	ctx context.Context, facts *negotiate.Facts, peer string,
) (e *sequenceEntry, leave func(), err error) {
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
	leave = func() { s.leave(facts.Sequence, o) }
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seq != nil && o.seq.Err() != nil && !o.seq.Status().Over {
		o.seq.Close() // its store failed: only the committed state is left
		o.seq = nil
	}
	if o.seq == nil {
		if err := s.reserve(ctx, facts.Sequence, peer); err != nil {
			return nil, leave, err
		}
		a, ordered, _ := negotiate.ParseAssurance(facts.Assurance)
		o.seq, err = sequence.Open(context.WithoutCancel(s.ctx), sequence.Config{ // not bound to one stream
			Assurance: a,
			Ordered:   ordered,
			Store:     s.cfg.Store,
			URI:       facts.Sequence,
			Life:      sequenceLife,
			Collect:   true,
			Broken:    unsentReply(),
			Handler:   sequencedHandler{s.cfg.Sequenced, newServed(facts)},
			Clock:     s.cfg.Clock,
			Log:       s.cfg.Log,
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
func (s *sequences) leave(uri string, o *opened) {
	o.mu.Lock()
	q := o.seq
	o.mu.Unlock()
	if q != nil {
		q.Drain(s.ctx)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
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
		s.leftLocked(uri, q.Lasts())
	}
	if o.users == 0 { // else someone waits to open it
		delete(s.open, uri)
	}
}
