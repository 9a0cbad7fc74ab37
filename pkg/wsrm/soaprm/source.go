package soaprm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// SequenceSource sends messages to a service in a sequence. All methods are safe for concurrent
// use.
type SequenceSource struct {
	cfg   SourceConfig
	chain headers.Chain
	uri   string // of the record
	free  func() // lets others have the sequence

	ctx     context.Context // of requests
	cancel  context.CancelCauseFunc
	wait    sync.WaitGroup
	replyTo string // where replies come, known once the sequence is asked for; empty: on connections

	mu      sync.Mutex
	record  pairRecord
	asked   map[string]chan *heardAnswer // by the MessageID of what the protocol asks
	engine  *wsrm.Engine
	sent    map[uint64]*SentMessage // not settled
	bodies  pieces.Bodies           // of long messages
	longs   map[uint64]string       // their names, of those that are not done
	slots   longSlots
	inbox   []delivered
	eased   chan struct{} // closed when something was settled or acknowledged
	ackDue  bool          // replies came that were not acknowledged in a request yet
	ackFrom time.Time     // when that is done in a message of its own
	acking  bool          // a goroutine waits for that
	heard   time.Time     // when the service said anything
	resent  int64
	broken  error
}

type delivered struct {
	number  uint64
	message []byte
}

// SourceStatus is how far a source is. The counts are of the sequence, over all processes that had
// it, but for Resent.
type SourceStatus struct {
	// Identifier is that of the sequence, Replies that of the sequence of replies; empty: there is
	// none.
	Identifier, Replies string
	// Accepted is how many messages were accepted for sending, Done up to which number all are
	// acknowledged, Received up to which number all replies came.
	Accepted, Done, Received uint64
	// Resent is how often messages were sent again, by this process.
	Resent int64
}

// OpenSource goes on with the sequence that the store has for the service, or creates one (1.1,
// section 3.4). What an earlier process did not get acknowledged is sent again. The caller calls
// Close in the end. Errors: BadConfig, Unstored, Refused, Misaddressed, Unanswered, the cause of
// ctx.
func OpenSource(ctx context.Context, cfg SourceConfig) (*SequenceSource, error) {
	either := cfg.Addressing == ""
	if err := cfg.withDefaults(); err != nil {
		return nil, err
	}
	if !either {
		return openSource(ctx, cfg)
	}
	here, err := cfg.isStored(ctx)
	other := cfg.otherAddressing()
	there := false
	if err == nil && !here {
		there, err = other.isStored(ctx)
	}
	if err != nil {
		return nil, err
	}
	if there {
		return openSource(ctx, other)
	}
	s, err := openSource(ctx, cfg)
	if errors.Is(err, Misaddressed) { // nothing has happened
		return openSource(ctx, other)
	}
	return s, err
}

func openSource(ctx context.Context, cfg SourceConfig) (*SequenceSource, error) {
	s := &SequenceSource{cfg: cfg, chain: chainOf(cfg.Handlers), uri: cfg.recordURI(), sent: map[uint64]*SentMessage{},
		longs: map[uint64]string{}, slots: make(longSlots, maxLong),
		asked: map[string]chan *heardAnswer{}, eased: make(chan struct{}), heard: cfg.Clock.Now()}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	var err error
	if s.free, err = ctxstore.Hold(cfg.Store, s.uri); err != nil {
		return nil, unstored(err)
	}
	if err = s.open(ctx); err != nil {
		s.stop(err)
		s.free()
		return nil, err
	}
	return s, nil
}

func (s *SequenceSource) open(ctx context.Context) error {
	entry, err := s.cfg.Store.Get(ctx, s.uri)
	switch {
	case errors.Is(err, ctxstore.NotFound):
		err = s.create(ctx)
	case err == nil:
		var r *pairRecord
		if r, err = readRecord(entry.Value); err == nil {
			s.record = *r
			if s.cfg.SOAP != soap.None && s.cfg.SOAP != r.SOAP {
				return &Error{Code: BadConfig,
					Err: fmt.Errorf("the store has a sequence of SOAP %s for the service", r.SOAP)}
			}
			if err = s.cfg.checkPlace(r.AcksTo); err != nil {
				return err
			}
			s.cfg.SOAP = r.SOAP
			s.listenAt(r.AcksTo)
			err = s.goOn(ctx)
		}
	default:
		err = unstored(err)
	}
	if err != nil {
		return err
	}
	engine, err := states{store: s.cfg.Store}.engine(ctx, engineConfig(false), s.record.State)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine = engine // now what comes by itself is taken
	s.bodies = s.bodiesOf()
	s.engine.Undone(func(number uint64, payload []byte, _ bool) bool {
		t := newTransfer(number, payload, s.bodies)
		t.late = true
		s.addLocked(t)
		return true
	})
	// Others are of a process that died before it sent them.
	if err := s.bodies.DropAll(ctx, slices.Collect(maps.Values(s.longs))...); err != nil {
		return unstored(err)
	}
	if err := s.stepLocked(wsrm.Event{Kind: wsrm.Connected}); err != nil {
		return err
	}
	if err := s.stepLocked(wsrm.Event{Kind: wsrm.Wake}); err != nil {
		return err
	}
	for _, t := range s.sent {
		s.goLocked(func() { s.carry(t) })
	}
	return nil
}

// goOn replaces the sequence of the store by another one if it takes no more messages.
func (s *SequenceSource) goOn(ctx context.Context) error {
	if !s.record.Expires.IsZero() && s.cfg.Clock.Now().After(s.record.Expires) {
		return s.renew(ctx)
	}
	over, err := s.isOver(ctx)
	if err != nil || !over {
		return err
	}
	if err := s.forget(ctx); err != nil { // at the service it ends with its life, if not before
		return err
	}
	return s.create(ctx)
}

// renew replaces a sequence whose time is over. What it left is of unknown fate.
func (s *SequenceSource) renew(ctx context.Context) error {
	e, err := states{store: s.cfg.Store}.engine(ctx, engineConfig(false), s.record.State)
	if err != nil {
		return err
	}
	e.Undone(func(number uint64, _ []byte, _ bool) bool {
		if s.cfg.Late != nil {
			s.cfg.Late(number, nil, &Error{Code: FateUnknown, Err: errors.New("its sequence expired")})
		}
		return true
	})
	if err := s.forget(ctx); err != nil {
		return err
	}
	return s.create(ctx)
}

// forget takes the sequence out of the store: its record first, without which the state means
// nothing.
func (s *SequenceSource) forget(ctx context.Context) error {
	if err := remove(ctx, s.cfg.Store, s.uri, s.record.State); err != nil {
		return err
	}
	return unstored(s.bodiesOf().DropAll(ctx))
}

// bodiesOf is where the bodies of long messages of the sequence lie.
func (s *SequenceSource) bodiesOf() pieces.Bodies {
	return pieces.Of(s.cfg.Store, s.record.State, "sent", 0)
}

// create asks the service for a sequence, and offers one for the replies. It asks again with the
// same message until there is an answer.
func (s *SequenceSource) create(ctx context.Context) error {
	if s.cfg.SOAP == soap.None {
		s.cfg.SOAP = soap.V11
	}
	if s.replyTo == "" {
		s.listenAt(s.cfg.place())
	}
	place := s.place()
	state := addressing.NewID()
	offer := &header.OfferedSequence{Sequence: addressing.NewID(), Endpoint: place}
	terms := &header.Terms{AcksTo: place, Offer: offer}
	if s.cfg.Expires > 0 {
		terms.Expires = formatDuration(s.cfg.Expires)
		offer.Expires = terms.Expires
	}
	p := s.properties(s.cfg.Version.action(createSequence))
	answer, err := s.ask(ctx, p, &header.Blocks{
		Version: string(s.cfg.Version), Control: createSequence, Terms: terms,
	})
	if err != nil {
		return err
	}
	if answer.b == nil || answer.b.Control != createSequenceResponse || answer.b.Sequence == "" {
		refused := refusedBy(answer.why())
		if answer.b != nil {
			refused.Fault = answer.b.Fault
		}
		return refused
	}
	s.record = pairRecord{
		Form: recordForm, Version: s.cfg.Version, Addressing: s.cfg.Addressing, SOAP: s.cfg.SOAP, URL: s.cfg.URL,
		Identifier: answer.b.Sequence, State: stateOf(state), CreatedBy: p.MessageID,
		AcksTo: s.replyTo,
	}
	if t := answer.b.Terms; t != nil {
		if t.AcksTo != "" {
			s.record.Offered = offer.Sequence
		}
		if d, ok := parseDuration(t.Expires); ok && d > 0 {
			s.record.Expires = s.cfg.Clock.Now().Add(d)
		}
	}
	return s.record.put(context.WithoutCancel(ctx), s.cfg.Store, s.uri, 0)
}

// properties are those of a request.
func (s *SequenceSource) properties(action string) *addressing.Properties {
	return &addressing.Properties{
		Space: s.cfg.Addressing, Action: action, MessageID: addressing.NewID(), To: s.cfg.URL,
		ReplyTo: &addressing.Reference{Address: s.place()},
	}
}

// place is where replies and acknowledgements come.
func (s *SequenceSource) place() string {
	if s.replyTo == "" {
		return addressing.Anonymous(s.cfg.Addressing)
	}
	return s.replyTo
}

// listenAt begins to take what comes to an address; empty: it comes on connections.
func (s *SequenceSource) listenAt(address string) {
	s.replyTo = address
	if s.cfg.Callback != nil {
		s.cfg.Callback.source.Store(s)
	}
	if isPolled(address) {
		s.wait.Go(s.poll)
	}
}

// Status is how far the source is.
func (s *SequenceSource) Status() SourceStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	accepted, done, received := s.engine.Positions()
	return SourceStatus{Identifier: s.record.Identifier, Replies: s.record.Offered,
		Accepted: accepted, Done: done, Received: received, Resent: s.resent}
}

// stepLocked lets an event happen.
func (s *SequenceSource) stepLocked(ev wsrm.Event) error {
	actions, err := s.engine.Step(context.WithoutCancel(s.ctx), s.cfg.Clock.Now(), ev)
	for _, a := range actions {
		switch a.Kind {
		case wsrm.Transmit:
			if t := s.sent[a.Number]; t != nil {
				t.poke()
			}
		case wsrm.Deliver:
			s.inbox = append(s.inbox, delivered{a.Number, append([]byte(nil), a.Message...)})
		case wsrm.Acknowledged:
			s.easeLocked()
		case wsrm.Unknown:
			s.failLocked(a, FateUnknown)
		case wsrm.Unsent:
			s.failLocked(a, Unsent)
		default:
		}
	}
	if errors.Is(err, wsrm.Unstored) && s.broken == nil {
		s.broken = unstored(err)
		s.cancel(s.broken)
	}
	if err == nil && ev.Kind == wsrm.Wake {
		s.dropLocked()
	}
	return err
}

func (s *SequenceSource) easeLocked() {
	close(s.eased)
	s.eased = make(chan struct{})
}

// failLocked is the end of messages of a sequence that the service lost.
func (s *SequenceSource) failLocked(a wsrm.Action, code Code) {
	err := &Error{Code: code, Err: errors.New("the service does not know the sequence any more")}
	for n := a.Number; !a.Remote && n < a.Number+a.Count; n++ {
		if t := s.sent[n]; t != nil {
			s.settleLocked(t, nil, err)
		}
	}
}

// settleLocked is the end of a message.
func (s *SequenceSource) settleLocked(t *SentMessage, reply *ReceivedReply, err error) {
	if s.sent[t.Number] != t {
		return
	}
	delete(s.sent, t.Number)
	t.reply, t.err = reply, err
	t.settle()
	s.easeLocked()
	if t.late && s.cfg.Late != nil {
		s.cfg.Late(t.Number, reply, err)
	}
}

// goLocked runs f beside, unless the source is being stopped; stop waits for it.
func (s *SequenceSource) goLocked(f func()) {
	if s.ctx.Err() == nil {
		s.wait.Go(f)
	}
}

// stop ends what the source does by itself.
func (s *SequenceSource) stop(why error) {
	s.mu.Lock()
	s.cancel(why) // what would begin now does not
	s.mu.Unlock()
	if s.cfg.Callback != nil {
		s.cfg.Callback.source.CompareAndSwap(s, nil)
	}
	s.wait.Wait()
}

// Close stops sending, and returns when nothing of the source runs any more. What is not
// acknowledged stays in the store, for the next source. It may be called once.
func (s *SequenceSource) Close() error {
	s.stop(&Error{Code: Closed})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil { // what comes to the callback now is taken by the next one
		s.broken = &Error{Code: Closed}
	}
	for _, t := range s.sent {
		s.settleLocked(t, nil, &Error{Code: Unanswered, Err: context.Cause(s.ctx)})
	}
	s.free()
	return nil
}
