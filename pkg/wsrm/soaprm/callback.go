package soaprm

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
)

// Callback takes the replies and acknowledgements of one [SequenceSource] that do not come on the
// connections of its requests: a handler of net/http for whatever is under its URL. It is safe for
// concurrent use.
type Callback struct {
	base   string
	source atomic.Pointer[SequenceSource]
}

// NewCallback makes one. url is that under which the service reaches it, without a path. The path
// of each sequence is a random one, so that only who was told of it can send anything there.
func NewCallback(url string) *Callback { return &Callback{base: strings.TrimSuffix(url, "/") + "/"} }

// place is where the replies of a new sequence go: to its callback, to who asks for them, or on the
// connections of requests (empty).
func (c *SourceConfig) place() string {
	id := strings.TrimPrefix(addressing.NewID(), "urn:uuid:")
	switch {
	case c.Callback != nil:
		return c.Callback.base + id
	case c.Poll > 0:
		return pollPrefix + id
	}
	return ""
}

// checkPlace refuses a sequence of the store whose replies go elsewhere than the configuration has
// them come: the service was told once, when it was created.
func (c *SourceConfig) checkPlace(replyTo string) error {
	same := replyTo == ""
	switch {
	case c.Callback != nil:
		same = strings.HasPrefix(replyTo, c.Callback.base)
	case c.Poll > 0:
		same = isPolled(replyTo)
	}
	if same {
		return nil
	}
	where := "on the connections of its requests"
	if isPolled(replyTo) {
		where = "by polling"
	} else if replyTo != "" {
		where = "at " + replyTo
	}
	return &Error{Code: BadConfig, Err: fmt.Errorf("the store has a sequence to the service whose replies come %s",
		where)}
}

// ServeHTTP takes one message.
func (c *Callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := c.source.Load()
	if s == nil || c.base+strings.TrimPrefix(r.URL.Path, "/") != s.replyTo {
		http.NotFound(w, r)
		return
	}
	octets, ok := headers.ReadMessage(w, r)
	if !ok {
		http.Error(w, "replies are envelopes in UTF-8", http.StatusUnsupportedMediaType)
		return
	}
	a := s.hear(&ReceivedReply{http.StatusOK, r.Header.Get("Content-Type"), octets})
	err := s.arrive(a)
	refused, is := headers.RefusalOf(err)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
	case is:
		if a.at != nil {
			action := s.cfg.Version.faultAction(s.cfg.Addressing)
			refused = &headers.RefusedMessage{Fault: refused.Fault,
				Blocks: append(a.at.Answer(action).Blocks(), refused.Blocks...)}
		}
		headers.WriteFault(w, soap.Recognize(octets).Version, refused)
	default: // what sent it sends it again
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

var errNotOpen = errors.New("the sequence is not open yet")

// arrive takes in a message that came by itself. Errors: a refusal, for its sender; others, if it
// may come again.
func (s *SequenceSource) arrive(a *heardAnswer) error {
	if a.refused != nil {
		return a.refused
	}
	if err := s.admit(a); err != nil {
		return err
	}
	if s.answersOne(a) {
		return nil
	}
	s.mu.Lock()
	var t *SentMessage
	open := s.engine != nil
	if open && a.at != nil {
		t = s.byIDLocked(a.at.RelatesTo)
	}
	s.mu.Unlock()
	if !open {
		return errNotOpen
	}
	if t == nil && a.body.Local == "Fault" {
		s.cfg.Log.Warn("fault of the service", "err", a.why())
	}
	if err := s.take(a, t, false); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settleDoneLocked()
	return nil
}

// answersOne hands an answer to who asked for it; false: nobody did.
func (s *SequenceSource) answersOne(a *heardAnswer) bool {
	if a.at == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	came := s.asked[a.at.RelatesTo]
	if came == nil {
		return false
	}
	select {
	case came <- a:
	default: // the same once more
	}
	return true
}

// admit refuses what is about another sequence than those of the source (1.1, section 4.3), and
// acknowledgements of what was never sent (section 4.4).
func (s *SequenceSource) admit(a *heardAnswer) error {
	if a.b == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil {
		return nil
	}
	v := s.cfg.Version
	unknown := func(id string) error {
		return refusal(s.cfg.SOAP, v, unknownSequence, "the sequence is not known here", identifier(v, id))
	}
	if a.b.Number > 0 && (s.record.Offered == "" || a.b.Sequence != s.record.Offered) {
		return unknown(a.b.Sequence)
	}
	for _, id := range a.b.AckRequested {
		if id != s.record.Offered {
			return unknown(id)
		}
		s.dueLocked()
	}
	for _, block := range a.b.Invalid {
		if identifierOf(block) == s.record.Identifier {
			return invalidAcknowledgement(s.cfg.SOAP, v, brokenRule(a.b), block)
		}
	}
	accepted, _, _ := s.engine.Positions()
	for _, ack := range a.b.Acknowledgements {
		if ack.Sequence != s.record.Identifier {
			return unknown(ack.Sequence)
		}
		if n := len(ack.Ranges); n > 0 && ack.Ranges[n-1][1] > accepted {
			return invalidAcknowledgement(s.cfg.SOAP, v, neverSent, acknowledgementBlock(v, ack))
		}
	}
	return nil
}

// settleDoneLocked settles what wants no reply and is acknowledged, and has the others look.
func (s *SequenceSource) settleDoneLocked() {
	for _, t := range s.sent {
		switch {
		case !s.isDoneLocked(t.Number):
		case t.oneWay || t.last:
			s.settleLocked(t, nil, nil)
		default:
			t.poke()
		}
	}
}

// awaitReply waits for the reply to a message that is acknowledged. The service sends it until it
// is acknowledged, so that the message need not be sent again.
func (s *SequenceSource) awaitReply(t *SentMessage) {
	timer := s.cfg.Clock.NewTimer(s.cfg.GiveUp)
	defer timer.Stop()
	select {
	case <-t.settled:
	case <-s.ctx.Done():
	case <-timer.C():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.settleLocked(t, nil, &Error{Code: ReplyLost})
	}
}

var _ http.Handler = (*Callback)(nil)
