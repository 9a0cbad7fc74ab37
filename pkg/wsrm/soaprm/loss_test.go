package soaprm_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// A service that lost its store does not know the sequence: what was sent is of unknown fate, and
// never sent in another one; the next source has a new sequence.
func TestTheServiceLosesItsStore(t *testing.T) {
	for _, p := range pairings {
		e := newEnds(t, 1, 0)
		s := e.source(p.version, p.space, p.soap)
		sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(p.soap, 0), Action: "urn:add"})
		require.NoError(t, err)
		_, err = sent.Reply(t.Context())
		require.NoError(t, err)
		e.store = memory.New(memory.Config{})
		e.restart()
		sent, err = s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(p.soap, 1), Action: "urn:add"})
		require.NoError(t, err)
		_, err = sent.Reply(t.Context())
		require.ErrorIs(t, err, &soaprm.Error{Code: soaprm.FateUnknown})
		_, err = s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(p.soap, 2), Action: "urn:add"})
		require.ErrorIs(t, err, &soaprm.Error{Code: soaprm.Unsent})
		require.Error(t, s.Finish(t.Context()))
		require.NoError(t, s.Close())
		s = e.source(p.version, p.space, p.soap)
		_, err = s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(p.soap, 2), Action: "urn:add"})
		require.NoError(t, err)
		require.NoError(t, s.Finish(t.Context()))
		require.NoError(t, s.Close())
		assert.Equal(t, []string{"2"}, e.entries())
	}
}

// A service that acknowledges what was never sent, or against the rules, is told so, and not
// believed.
func TestAcknowledgementsThatCannotBe(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		for _, ranges := range []string{`Lower="1" Upper="9"`, `Lower="2" Upper="1"`, `Lower="1" Upper="x"`} {
			k := &talk{ends: newEnds(t, 1, 0), pairing: k.pairing}
			k.acknowledgesWrongly(ranges)
		}
	})
}

func (k *talk) acknowledgesWrongly(ranges string) {
	t := k.t
	s := k.source(k.version, k.pairing.space, k.soap)
	right := k.link.handler
	handle := func(h http.Handler) {
		k.link.mu.Lock()
		defer k.link.mu.Unlock()
		k.link.handler = h
	}
	handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		octets, _ := io.ReadAll(r.Body)
		if strings.Contains(string(octets), "Fault") {
			return
		}
		_, _ = io.WriteString(w, `<s:Envelope xmlns:s="`+k.soap.Namespace()+`" xmlns:r="`+k.version.Namespace()+
			`"><s:Header><r:SequenceAcknowledgement><r:Identifier>`+s.Status().Identifier+
			`</r:Identifier><r:AcknowledgementRange `+ranges+`/></r:SequenceAcknowledgement>`+
			`</s:Header><s:Body/></s:Envelope>`)
	}))
	sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(k.soap, 0), Action: "urn:add"})
	require.NoError(t, err)
	told := func() bool {
		k.link.mu.Lock()
		defer k.link.mu.Unlock()
		return slices.ContainsFunc(k.link.seen, func(octets []byte) bool {
			m := string(octets)
			return strings.Contains(m, "InvalidAcknowledgement") && strings.Contains(m, ranges)
		})
	}
	require.Eventually(t, told, deadline, tick)
	assert.Zero(t, s.Status().Done)
	handle(right)
	_, err = sent.Reply(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Finish(t.Context()))
	require.NoError(t, s.Close())
	assert.Equal(t, numbers(1), k.entries())
}

// A service that refuses a sequence leaves nothing behind, and may take one later.
func TestRefusedSequence(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		k.cfg.MaxSequences = 1
		k.restart()
		first := k.source(k.version, k.pairing.space, k.soap)
		k.sendsOne(first, k.pairing) // what nobody used would make place
		k.mine = memory.New(memory.Config{})
		_, err := soaprm.OpenSource(t.Context(), k.sourceConfig(k.version, k.pairing.space, k.soap))
		require.ErrorIs(t, err, &soaprm.Error{Code: soaprm.Refused})
		assert.ErrorContains(t, err, "CreateSequenceRefused: there are too many sequences")
		var refused *soaprm.Error
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, "CreateSequenceRefused", refused.Fault)
		for info, err := range k.mine.List(t.Context(), "") {
			require.NoError(t, err)
			assert.Fail(t, "left", info.URI)
		}
		require.NoError(t, first.Finish(t.Context()))
		require.NoError(t, first.Close())
		s := k.source(k.version, k.pairing.space, k.soap)
		k.sendsOne(s, k.pairing)
		require.NoError(t, s.Finish(t.Context()))
		require.NoError(t, s.Close())
	})
}

// A service goes away at the end of a sequence, or takes no notice of it: all messages are done, so
// that is no error, and what comes after that goes in another sequence.
func TestTheEndIsLost(t *testing.T) {
	for _, ending := range []string{"/LastMessage<", "/CloseSequence<", "/TerminateSequence<"} {
		eachPairing(t, func(t *testing.T, k *talk) {
			right := k.link.handler
			k.link.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				octets, _ := io.ReadAll(r.Body)
				switch r.Body = io.NopCloser(strings.NewReader(string(octets))); {
				case !strings.Contains(string(octets), ending):
					right.ServeHTTP(w, r)
				case ending == "/LastMessage<":
					w.WriteHeader(http.StatusAccepted)
				default:
					http.Error(w, "away", http.StatusServiceUnavailable)
				}
			})
			cfg := k.sourceConfig(k.version, k.pairing.space, k.soap)
			cfg.GiveUp = 30 * time.Second
			for n := range 3 {
				s, err := soaprm.OpenSource(t.Context(), cfg)
				require.NoError(t, err)
				sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(k.soap, n), Action: "urn:add"})
				require.NoError(t, err)
				_, err = sent.Reply(t.Context())
				require.NoError(t, err, "%s %d", ending, n)
				require.NoError(t, s.Finish(t.Context()))
				require.NoError(t, s.Close())
			}
			assert.Equal(t, numbers(3), slices.Sorted(slices.Values(k.entries())))
		})
	}
}

// A source outlives its sequence: what the service does not take is reported, and what comes then
// goes in another one. So does what comes after a pause that was longer than the sequence.
func TestSourceOutlivesItsSequence(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		now := newMovedClock()
		k.clock, k.cfg.Expires = now, time.Hour
		k.restart()
		send := func(s *soaprm.SequenceSource, n int) error {
			sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(k.soap, n), Action: "urn:add"})
			if err == nil {
				_, err = sent.Reply(t.Context())
			}
			return err
		}
		s := k.source(k.version, k.pairing.space, k.soap)
		require.NoError(t, send(s, 0))
		now.to(61 * time.Minute)
		assert.ErrorIs(t, send(s, 9), &soaprm.Error{Code: soaprm.FateUnknown})
		assert.ErrorIs(t, send(s, 9), &soaprm.Error{Code: soaprm.Unsent})
		require.NoError(t, s.Close())
		s = k.source(k.version, k.pairing.space, k.soap)
		require.NoError(t, send(s, 1))

		right := k.link.handler
		k.link.mu.Lock()
		k.link.handler = http.NotFoundHandler()
		k.link.mu.Unlock()
		sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(k.soap, 9), Action: "urn:add"})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		_, err = sent.Reply(t.Context())
		assert.ErrorIs(t, err, &soaprm.Error{Code: soaprm.Unanswered})
		k.link.mu.Lock()
		k.link.handler = right
		k.link.mu.Unlock()
		now.to(3 * time.Hour)
		cfg := k.sourceConfig(k.version, k.pairing.space, k.soap)
		var late []error
		cfg.Late = func(_ uint64, _ *soaprm.ReceivedReply, err error) { late = append(late, err) }
		s, err = soaprm.OpenSource(t.Context(), cfg)
		require.NoError(t, err)
		require.NoError(t, send(s, 2))
		require.NoError(t, s.Finish(t.Context()))
		require.NoError(t, s.Close())
		if assert.Len(t, late, 1) {
			assert.ErrorIs(t, late[0], &soaprm.Error{Code: soaprm.FateUnknown})
		}
		assert.Equal(t, numbers(3), slices.Sorted(slices.Values(k.entries())))
	})
}

// Two sources cannot send to a service from one store at a time.
func TestOneSourceAtATime(t *testing.T) {
	e := newEnds(t, 1, 0)
	s := e.source(soaprm.V11, "", soap.V11)
	cfg := soaprm.SourceConfig{URL: where, Version: soaprm.V11, Store: e.mine, Clock: e.clock}
	_, err := soaprm.OpenSource(t.Context(), cfg)
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Held})
	require.NoError(t, s.Close())
	cfg.SOAP = soap.V12
	_, err = soaprm.OpenSource(t.Context(), cfg)
	require.ErrorIs(t, err, &soaprm.Error{Code: soaprm.BadConfig})
}

// A service that knows no WS-ReliableMessaging refuses the sequence, and gets no message.
func TestAServiceThatDoesNotKnowIt(t *testing.T) {
	e := newEnds(t, 1, 0)
	e.link.handler = http.HandlerFunc(e.book)
	_, err := soaprm.OpenSource(t.Context(), soaprm.SourceConfig{
		URL: where, Version: soaprm.V11, Store: e.mine, Clock: e.clock, Client: &http.Client{Transport: e.link},
	})
	require.ErrorIs(t, err, &soaprm.Error{Code: soaprm.Refused})
	assert.Len(t, e.link.seen, 1)
}
