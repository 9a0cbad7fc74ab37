package soaprm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// servedPair is one pair of sequences at an [SequenceDestination]: of requests, and of replies.
type servedPair struct {
	endpoint *SequenceDestination
	uri      string       // of the record
	forget   atomic.Int64 // when nothing needs to be remembered of it, in nanoseconds of Unix
	ended    atomic.Bool  // it was terminated
	begun    atomic.Bool  // begin was called

	mu      sync.Mutex
	record  pairRecord                  // Last, Closed, Terminated, Decoupled change; Offered see begin
	engine  *wsrm.Engine                // nil: not read from the store yet, or given up after an error
	inbox   []uint64                    // delivered by the engine, and not handled
	waiting map[uint64]*admittedRequest // arrived, and not handled
	held    int                         // bytes of those
	unknown map[uint64]bool             // begun before a crash
	changed chan struct{}               // closed when something was handled

	decoupled decoupledReplies
	bodies    pieces.Bodies    // of long replies
	longs     map[string]int64 // their names and lengths, of those that are not acknowledged

	// Guarded by the endpoint.
	places   map[string]bool // that may poll
	used     bool            // something came of the client that has the identifier
	replaced bool            // its CreateSequence came often before it was used: it left the store
}

const (
	// keptReplies is how many replies are kept for a client that cannot acknowledge them.
	keptReplies = 32
	// maxReply is the longest reply in the state, in bytes: one always has room, as requests are
	// only taken while no more than as much is unacknowledged.
	maxReply = maxShort
)

// response is what goes back for a message: the stored reply, nil for none, and what is to be said
// of sequences.
type response struct {
	reply *storedReply
	b     *header.Blocks
}

func (s *servedPair) now() time.Time { return s.endpoint.cfg.Clock.Now() }

// openLocked reads the state, if that is not done yet.
func (s *servedPair) openLocked(ctx context.Context) error {
	if s.engine != nil {
		return nil
	}
	store := states{s.endpoint.cfg.Store, s.record.Expires.Sub(s.now()) + tombstone}
	e, err := store.engine(ctx, engineConfig(true), s.record.State)
	if err != nil {
		return err
	}
	s.inbox, s.waiting, s.held, s.unknown = nil, map[uint64]*admittedRequest{}, 0, map[uint64]bool{}
	s.changed = make(chan struct{})
	s.engine = e
	s.bodies = pieces.Of(s.endpoint.cfg.Store, s.record.State, "replies", store.life)
	s.decoupled.at = map[uint64]*posting{}
	if s.decoupled.wake == nil {
		s.decoupled.wake = make(chan struct{}, 1)
	}
	if s.record.Decoupled {
		e.Undone(func(_ uint64, stored []byte, _ bool) bool {
			s.endpoint.serves(s, decodeReply(stored, s.bodies).place)
			return true
		})
	}
	return s.stepLocked(ctx, wsrm.Event{Kind: wsrm.Connected})
}

// stepLocked lets an event happen.
func (s *servedPair) stepLocked(ctx context.Context, ev wsrm.Event) error {
	actions, err := s.engine.Step(ctx, s.now(), ev)
	s.takeLocked(actions)
	if errors.Is(err, wsrm.Unstored) {
		s.engine = nil // what the store has goes on
		return unstored(err)
	}
	if err == nil && ev.Kind == wsrm.Wake {
		s.dropLongLocked()
	}
	return err
}

func (s *servedPair) takeLocked(actions []wsrm.Action) {
	for _, a := range actions {
		switch a.Kind {
		case wsrm.Deliver:
			s.inbox = append(s.inbox, a.Number)
		case wsrm.Unknown:
			for n := a.Number; a.Remote && n < a.Number+a.Count; n++ {
				s.unknown[n] = true
			}
		default: // what is sent goes with the responses
		}
	}
}

// saveLocked stores what changed.
func (s *servedPair) saveLocked(ctx context.Context) error {
	return s.stepLocked(ctx, wsrm.Event{Kind: wsrm.Wake})
}

func (s *servedPair) doneLocked(number uint64) bool {
	for _, r := range s.engine.Committed() {
		if r[0] <= number && number <= r[1] {
			return true
		}
	}
	return false
}

// ackLocked is what is acknowledged now. 1.0 has no word for nothing (section 3.2).
func (s *servedPair) ackLocked() []header.Acknowledgement {
	a := header.Acknowledgement{Sequence: s.record.Identifier, Ranges: s.engine.Committed()}
	a.None = len(a.Ranges) == 0
	if a.None && s.record.Version == V10 {
		return nil
	}
	a.Final = s.record.Closed || s.record.Terminated
	return []header.Acknowledgement{a}
}

// acknowledgement is what is acknowledged of the sequence.
func (s *servedPair) acknowledgement(a *admittedRequest) ([]header.Acknowledgement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.aliveLocked(a); err != nil {
		return nil, err
	}
	if err := s.openLocked(context.WithoutCancel(a.ctx)); err != nil {
		return nil, err
	}
	if !hasConnection(s.record.AcksTo) {
		s.dueLocked(nil, true)
		return nil, nil
	}
	return s.ackLocked(), nil
}

func (s *servedPair) isExpired() bool { return s.now().After(s.record.Expires) }

// aliveLocked refuses what is about a sequence that ended.
func (s *servedPair) aliveLocked(a *admittedRequest) error {
	if s.record.Terminated || s.isExpired() {
		return refusal(a.in.Version, s.record.Version, sequenceTerminated, "the sequence has ended",
			identifier(s.record.Version, s.record.Identifier))
	}
	return nil
}

// acknowledged takes in an acknowledgement of replies (1.1, section 3.9).
func (s *servedPair) acknowledged(a *admittedRequest, ack *header.Acknowledgement) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx := context.WithoutCancel(a.ctx)
	if err := s.openLocked(ctx); err != nil {
		return err
	}
	err := s.stepLocked(ctx, wsrm.Acknowledgement(ack.Ranges, ack.Nacks, false))
	if errors.Is(err, wsrm.Refused) {
		return invalidAcknowledgement(a.in.Version, s.record.Version, neverSent,
			acknowledgementBlock(s.record.Version, *ack))
	}
	return err
}

// end closes or terminates the sequence. What came behind a gap and was not handled is left: it was
// never acknowledged.
func (s *servedPair) end(a *admittedRequest) ([]header.Acknowledgement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx := context.WithoutCancel(a.ctx)
	if err := s.openLocked(ctx); err != nil {
		return nil, err
	}
	terminates := a.b.Control == terminateSequence
	if s.record.Terminated || s.isExpired() { // it has ended: the answer to the first one may have got lost
		if terminates {
			return s.ackLocked(), nil
		}
		return nil, s.aliveLocked(a)
	}
	after := s.record
	after.Closed = true
	after.Last = max(after.Last, a.b.LastNumber)
	life := max(s.record.Expires.Sub(s.now()), 0) + tombstone
	if terminates {
		after.Terminated = true
		life = tombstone
	}
	if err := after.put(ctx, s.endpoint.cfg.Store, s.uri, life); err != nil {
		return nil, err
	}
	s.record.Closed, s.record.Last, s.record.Terminated = after.Closed, after.Last, after.Terminated
	if terminates {
		s.dropLongLocked()
		s.forget.Store(s.now().Add(tombstone).UnixNano())
		s.ended.Store(true)
	}
	return s.ackLocked(), nil
}

// deliver has a message handled in its turn, once, and returns what goes back for it.
func (s *servedPair) deliver(a *admittedRequest) (*response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx := context.WithoutCancel(a.ctx)
	if err := s.admitLocked(ctx, a); err != nil {
		return nil, err
	}
	if a.replies != "" || a.faults != "" {
		if err := s.decoupleLocked(ctx); err != nil {
			return nil, err
		}
		s.endpoint.serves(s, a.replies, a.faults)
	}
	var again *admittedRequest
	if s.doneLocked(a.b.Number) {
		again = a
	}
	if err := s.workLocked(ctx); err != nil {
		return nil, err
	}
	if hasConnection(a.replies) {
		if err := s.waitLocked(a); err != nil {
			return nil, err
		}
	}
	if s.record.Decoupled {
		s.dueLocked(again, len(a.b.AckRequested) > 0)
	}
	return s.responseLocked(a), nil
}

// admitLocked takes a message in, if it is new. Errors: a refusal; others, if it may come again.
func (s *servedPair) admitLocked(ctx context.Context, a *admittedRequest) error {
	if err := s.aliveLocked(a); err != nil {
		return err
	}
	if err := s.openLocked(ctx); err != nil {
		return err
	}
	v, n := s.record.Version, a.b.Number
	about := identifier(v, s.record.Identifier)
	switch {
	case a.b.Rollover:
		most := soap.Element{Name: soap.Name{Space: v.Namespace(), Local: "MaxMessageNumber"}, Text: maxNumber}
		return refusal(a.in.Version, v, rollover, "the number is beyond the greatest one", about, most)
	case s.doneLocked(n) || s.waiting[n] != nil:
		return nil
	case s.record.Closed:
		return s.closedLocked(a)
	case s.record.Last > 0 && n > s.record.Last:
		return refusal(a.in.Version, v, lastExceeded, fmt.Sprintf("number %d was the last one", s.record.Last), about)
	case len(a.in.Message) > maxShort && !s.isNextLocked(n): // it comes again when it has its turn
		return errors.New("a long message is not held behind a gap")
	case s.held+len(a.in.Message) > hold && s.held > 0, s.fullLocked():
		return errors.New("too much is held of the sequence")
	}
	if a.b.Last {
		if err := s.lastLocked(ctx, n); err != nil {
			return err
		}
	}
	s.waiting[n] = a
	s.held += len(a.in.Message)
	err := s.stepLocked(ctx, wsrm.Event{Kind: wsrm.Arrived, Number: n})
	if err != nil {
		s.dropLocked(n)
	}
	return err
}

// closedLocked refuses a message behind the end, and says which ones were taken (1.1, section 3.5).
func (s *servedPair) closedLocked(a *admittedRequest) error {
	v := s.record.Version
	r := refusal(a.in.Version, v, sequenceClosed, "the sequence is closed", identifier(v, s.record.Identifier))
	if s.record.AcksTo != a.faults {
		s.dueLocked(nil, true)
		return r
	}
	for _, ack := range s.ackLocked() {
		r.Blocks = append(r.Blocks, acknowledgementBlock(v, ack))
	}
	return r
}

// maxNumber is the greatest message number (1.1, section 3.7).
const maxNumber = "9223372036854775807"

// lastLocked notes the number of the last message (1.0, section 3.1).
func (s *servedPair) lastLocked(ctx context.Context, n uint64) error {
	return s.noteLocked(ctx, func(r *pairRecord) { r.Last = n })
}

// noteLocked changes the record, once it is stored.
func (s *servedPair) noteLocked(ctx context.Context, change func(*pairRecord)) error {
	after := s.record
	change(&after)
	err := after.put(ctx, s.endpoint.cfg.Store, s.uri, s.record.Expires.Sub(s.now())+tombstone)
	if err == nil {
		change(&s.record)
	}
	return err
}

func (s *servedPair) dropLocked(n uint64) {
	if a := s.waiting[n]; a != nil {
		s.held -= len(a.in.Message)
		delete(s.waiting, n)
	}
}

// workLocked handles what has its turn.
func (s *servedPair) workLocked(ctx context.Context) error {
	worked := false
	for len(s.inbox) > 0 {
		n := s.inbox[0]
		a := s.waiting[n]
		if a == nil {
			return fmt.Errorf("message %d is not at hand", n)
		}
		if err := s.handleLocked(ctx, n, a); err != nil {
			return err
		}
		if s.record.Offered == "" && !s.record.Decoupled {
			s.thinLocked(ctx)
		}
		s.inbox = s.inbox[1:]
		s.dropLocked(n)
		worked = true
	}
	if err := s.saveLocked(ctx); err != nil {
		return err
	}
	if worked {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return nil
}

// thinLocked keeps the last replies of a client that acknowledges none.
func (s *servedPair) thinLocked(ctx context.Context) {
	for {
		count, octets, beside := s.keepsLocked()
		if count <= keptReplies && octets <= hold-maxReply-1024 && beside <= MaxMessage || count <= 1 {
			return
		}
		_, done, _ := s.engine.Positions()
		oldest := done + 1
		if s.saveLocked(ctx) != nil || // what was never handed out cannot be acknowledged
			s.stepLocked(ctx, wsrm.Acknowledgement([][2]uint64{{1, oldest}}, nil, false)) != nil {
			return
		}
	}
}

// handleLocked has the service handle a message. An error means that nothing happened.
func (s *servedPair) handleLocked(ctx context.Context, n uint64, a *admittedRequest) error {
	h := handling{s: s, a: a}
	if s.endpoint.cfg.Transactional(a.r.URL.Path) {
		actions, err := s.engine.Deliver(ctx, s.now(), wsrm.Action{Kind: wsrm.Deliver, Number: n}, h)
		s.takeLocked(actions)
		return err
	}
	actions, err := s.engine.Begin(ctx, s.now(), n)
	s.takeLocked(actions)
	if err != nil {
		s.engine = nil
		return unstored(err)
	}
	reply, err := h.run(context.WithoutCancel(a.ctx))
	if err != nil {
		reply = h.failed("the service failed")
	}
	return s.stepLocked(ctx, wsrm.Event{Kind: wsrm.Committed, Number: n, Message: reply})
}
