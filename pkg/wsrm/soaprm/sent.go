package soaprm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// OutgoingEnvelope is a message to send.
type OutgoingEnvelope struct {
	// Envelope is the message, in UTF-8 and the source's SOAP version.
	Envelope []byte
	// Action is the SOAP action, and that of WS-Addressing if the message has none.
	Action string
	// OneWay: no reply is wanted.
	OneWay bool
}

// ReceivedReply is a reply.
type ReceivedReply struct {
	// Status is that of the HTTP response, ContentType its field.
	Status      int
	ContentType string
	// Envelope is the reply, without the header blocks of WS-Addressing, WS-ReliableMessaging and
	// the source's other handlers.
	Envelope []byte
}

// SentMessage is a message that was accepted for sending.
type SentMessage struct {
	// Number is that in the sequence.
	Number uint64

	id, action string
	oneWay     bool
	last       bool // the end of a sequence of 1.0
	envelope   []byte
	long       *storedBody // nil, or what is in place of the envelope
	late       bool        // of an earlier process
	wake       chan struct{}
	ctx        context.Context // of its requests; ends when it is settled
	settle     context.CancelFunc
	settled    <-chan struct{}
	reply      *ReceivedReply // good once settled
	err        error
}

const (
	flagOneWay = 1 << iota
	flagLast
	flagLong
)

// encodeTransfer is a message as the engine keeps it. With flagLong a reference is in the place of
// the envelope.
func encodeTransfer(flags byte, id, action string, envelope []byte) []byte {
	b := bin.AppendBytes([]byte{flags}, []byte(id))
	b = bin.AppendBytes(b, []byte(action))
	return append(b, envelope...)
}

func newTransfer(number uint64, payload []byte, in pieces.Bodies) *SentMessage {
	c := bin.NewCursor(payload, 0)
	flags := c.U8()
	ctx, settle := context.WithCancel(context.Background())
	t := &SentMessage{
		Number: number, oneWay: flags&flagOneWay != 0, last: flags&flagLast != 0,
		id: string(c.Bytes(MaxMessage)), action: string(c.Bytes(MaxMessage)),
		wake: make(chan struct{}, 1), ctx: ctx, settle: settle, settled: ctx.Done(),
	}
	t.envelope = c.Rest()
	if flags&flagLong != 0 {
		t.long, t.envelope = readStoredBody(t.envelope, in), nil
	}
	return t
}

func (t *SentMessage) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Reply waits for the reply; nil for a message that wants none, when it is acknowledged. Errors:
// FateUnknown, Unsent, Unanswered, ReplyLost, Refused, Closed, the cause of ctx.
func (t *SentMessage) Reply(ctx context.Context) (*ReceivedReply, error) {
	select {
	case <-t.settled:
		return t.reply, t.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Send accepts a message: it is in the store when Send returns, and is sent until it is
// acknowledged. It waits while too much is under way. Errors: TooLarge, Unstored, Closed, Unsent,
// [*soap.Error], the cause of ctx.
func (s *SequenceSource) Send(ctx context.Context, m OutgoingEnvelope) (*SentMessage, error) {
	p := s.properties(m.Action)
	a, err := soap.Split(m.Envelope, soap.Limits{})
	if err != nil {
		return nil, err
	}
	if a.Version != s.cfg.SOAP {
		return nil, &soap.Error{Code: soap.BadVersion, At: -1,
			Err: fmt.Errorf("SOAP %s in a sequence of SOAP %s", a.Version, s.cfg.SOAP)}
	}
	own, err := addressing.Read(&a.Envelope)
	if err != nil {
		return nil, err
	}
	if own != nil { // what it says of itself stays
		if own.Action != "" {
			p.Action = own.Action
		}
		if own.MessageID != "" {
			p.MessageID = own.MessageID
		}
		p.From = own.From
	}
	if p.Action == "" { // required (1.0 Core, section 3.2): the default one of a message without a description
		p.Action = strings.TrimSuffix(actionOf(a), "/")
	}
	add, err := s.handlersOut(ctx, &a.Envelope)
	if err != nil {
		return nil, err
	}
	ours := func(e *soap.Element) bool {
		return addressing.HeaderHandler{}.Understands(e.Name) || blocks{}.Understands(e.Name)
	}
	envelope, err := a.Rewrite(ours, append(p.Blocks(), add...))
	if err != nil {
		return nil, err
	}
	flags := byte(0)
	if m.OneWay {
		flags = flagOneWay
	}
	if len(envelope) > MaxMessage {
		return nil, &Error{Code: TooLarge, Err: fmt.Errorf("%d bytes, %d are possible", len(envelope), MaxMessage)}
	}
	payload := encodeTransfer(flags, p.MessageID, p.Action, envelope)
	if len(payload) <= maxShort {
		return s.accept(ctx, payload)
	}
	body, err := putLong(ctx, s.bodies, envelope)
	if err != nil {
		return nil, &Error{Code: Unsent, Err: err}
	}
	t, err := s.accept(ctx, encodeTransfer(flags|flagLong, p.MessageID, p.Action, body.append(nil)))
	if err != nil && !errors.Is(err, Unstored) {
		err = errors.Join(err, s.bodies.Drop(context.WithoutCancel(ctx), body.name))
	}
	return t, err
}

// actionOf makes an action of the name of the Body's child.
func actionOf(a *soap.Apart) string {
	if len(a.Body) == 0 {
		return "urn:empty"
	}
	n := a.Body[0].Name
	if n.Space == "" {
		return "urn:" + n.Local
	}
	return strings.TrimSuffix(n.Space, "/") + "/" + n.Local
}

func (s *SequenceSource) handlersOut(ctx context.Context, e *soap.Envelope) (add []soap.Element, err error) {
	for _, h := range s.cfg.Handlers {
		list, err := h.Out(ctx, e)
		if err != nil {
			return nil, err
		}
		add = append(add, list...)
	}
	return add, nil
}

// accept has the engine take a message, stores it, and begins to send it.
func (s *SequenceSource) accept(ctx context.Context, payload []byte) (*SentMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.broken != nil {
			return nil, s.broken
		}
		if s.ctx.Err() != nil {
			return nil, context.Cause(s.ctx)
		}
		err := s.stepLocked(wsrm.Event{Kind: wsrm.Send, Message: payload})
		if err == nil {
			break
		}
		if !errors.Is(err, wsrm.Full) {
			return nil, &Error{Code: Unsent, Err: err}
		}
		eased := s.eased
		s.mu.Unlock()
		select {
		case <-eased:
			err = nil
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-s.ctx.Done():
			err = context.Cause(s.ctx)
		}
		s.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	t := newTransfer(s.engine.Last(), payload, s.bodies)
	s.addLocked(t)
	if err := s.stepLocked(wsrm.Event{Kind: wsrm.Wake}); err != nil {
		delete(s.sent, t.Number)
		return nil, unstored(err)
	}
	s.goLocked(func() { s.carry(t) })
	return t, nil
}

// carry sends a message until it is settled.
func (s *SequenceSource) carry(t *SentMessage) {
	pause := s.cfg.Resend
	acknowledged := 0 // answers that acknowledge it, and are not the reply
	for again := false; ; again = true {
		if s.isSettled(t) {
			return
		}
		if s.isDecoupled() && s.isDone(t) {
			s.awaitReply(t)
			return
		}
		err := s.attempt(t, again, 4*pause)
		if s.isSettled(t) || s.ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		done := s.isDoneLocked(t.Number)
		switch silent := s.cfg.Clock.Since(s.heard); {
		case done && (t.oneWay || t.last):
			s.settleLocked(t, nil, nil)
		case done && s.isDecoupled():
		case done && err == nil && acknowledged >= maxLost:
			s.settleLocked(t, nil, &Error{Code: ReplyLost})
		case done && err == nil:
			acknowledged++
		case silent > s.cfg.GiveUp:
			if err == nil {
				err = errors.New("it acknowledges nothing")
			}
			s.settleLocked(t, nil, &Error{Code: Unanswered, Err: err})
		}
		s.mu.Unlock()
		if s.isSettled(t) {
			return
		}
		if done && s.isDecoupled() {
			continue
		}
		if !errors.Is(err, errSlow) {
			s.pause(t, pause)
		}
		pause = min(2*pause, s.cfg.MaxResend)
	}
}

// maxLost is how many answers to a message that is acknowledged may be none of its replies.
const maxLost = 4

func (s *SequenceSource) isSettled(t *SentMessage) bool {
	select {
	case <-t.settled:
		return true
	default:
		return false
	}
}

func (s *SequenceSource) isDone(t *SentMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isDoneLocked(t.Number)
}

// isDoneLocked reports whether a message is acknowledged.
func (s *SequenceSource) isDoneLocked(number uint64) bool {
	_, done, _ := s.engine.Positions()
	return number <= done || s.engine.HasArrived(number)
}

func (s *SequenceSource) pause(t *SentMessage, d time.Duration) {
	timer := s.cfg.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.wake:
	case <-timer.C():
	case <-t.settled:
	case <-s.ctx.Done():
	}
}

// errSlow: an attempt goes on, and it is time for another one.
var errSlow = errors.New("there is no answer yet")

// attempt sends a message once, and takes in the answer. After patience it returns, and the request
// goes on beside for as long again, until the message is settled: what held the service up may be a
// message before it, and a service that cannot send a reply again sends it to this request.
func (s *SequenceSource) attempt(t *SentMessage, again bool, patience time.Duration) error {
	select { // what was to be sent is sent now
	case <-t.wake:
	default:
	}
	s.mu.Lock()
	b := &header.Blocks{Version: string(s.record.Version), Sequence: s.record.Identifier,
		Number: t.Number, Last: t.last}
	if again {
		s.resent++
		b.AckRequested = []string{s.record.Identifier}
	}
	if !t.last { // those beside a last message Apache CXF does not read (RMInInterceptor.handle)
		b.Acknowledgements = s.ackLocked()
	}
	s.mu.Unlock()
	if t.long != nil {
		patience += time.Duration(t.long.length/slowest) * time.Second
	}
	slow, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	came := make(chan error, 1)
	s.mu.Lock()
	s.goLocked(func() { came <- s.exchange(t, b, 2*patience) })
	s.mu.Unlock()
	select {
	case err := <-came:
		return err
	case <-t.settled:
		return nil
	case <-slow.Done():
		return errSlow
	}
}

// slowest is how many bytes of a long message a link that is waited for carries in a second.
const slowest = 32 << 10

// exchange makes the request of an attempt, which says b of sequences.
func (s *SequenceSource) exchange(t *SentMessage, b *header.Blocks, d time.Duration) error {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	a, err := s.request(ctx, t, b)
	if err != nil {
		return err
	}
	return s.take(a, t, len(b.Acknowledgements) > 0)
}

// request sends a message, and returns the answer. A long one is in memory meanwhile.
func (s *SequenceSource) request(ctx context.Context, t *SentMessage, b *header.Blocks) (*heardAnswer, error) {
	envelope := t.envelope
	if t.long != nil {
		err := s.slots.take(ctx)
		if err != nil {
			return nil, err
		}
		defer s.slots.free()
		if envelope, err = t.long.read(ctx); err != nil {
			return nil, err
		}
	}
	octets, err := with(envelope, s.cfg.Addressing, b)
	if err != nil {
		return nil, err
	}
	return s.post(ctx, t.action, octets)
}

// addLocked notes a message that is under way.
func (s *SequenceSource) addLocked(t *SentMessage) {
	s.sent[t.Number] = t
	if t.long != nil {
		s.longs[t.Number] = t.long.name
	}
}

// dropLocked drops the bodies of messages that are done, once that is stored.
func (s *SequenceSource) dropLocked() {
	_, done, _ := s.engine.Positions()
	for number, name := range s.longs {
		if number <= done {
			delete(s.longs, number)
			s.goLocked(func() {
				if err := s.bodies.Drop(context.WithoutCancel(s.ctx), name); err != nil {
					s.cfg.Log.Warn("body of a long message not dropped", "number", number, "err", err)
				}
			})
		}
	}
}

// ackLocked acknowledges the replies that came.
func (s *SequenceSource) ackLocked() []header.Acknowledgement {
	ranges := s.engine.Committed()
	if s.record.Offered == "" || len(ranges) == 0 {
		return nil
	}
	return []header.Acknowledgement{{Sequence: s.record.Offered, Ranges: ranges}}
}
