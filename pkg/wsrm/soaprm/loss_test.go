package soaprm_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

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

// A service that acknowledges what was never sent is told so, and not believed.
func TestAcknowledgementOfWhatWasNeverSent(t *testing.T) {
	e := newEnds(t, 1, 0)
	s := e.source(soaprm.V11, "", soap.V12)
	right := e.link.handler
	e.link.mu.Lock()
	e.link.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		octets, _ := io.ReadAll(r.Body)
		if strings.Contains(string(octets), "Fault") {
			return
		}
		_, _ = io.WriteString(w, `<s:Envelope xmlns:s="`+soap.V12.Namespace()+`" xmlns:r="`+soaprm.V11.Namespace()+
			`"><s:Header><r:SequenceAcknowledgement><r:Identifier>`+s.Status().Identifier+
			`</r:Identifier><r:AcknowledgementRange Lower="1" Upper="9"/></r:SequenceAcknowledgement>`+
			`</s:Header><s:Body/></s:Envelope>`)
	})
	e.link.mu.Unlock()
	sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(soap.V12, 0), Action: "urn:add"})
	require.NoError(t, err)
	told := func() bool {
		e.link.mu.Lock()
		defer e.link.mu.Unlock()
		for _, octets := range e.link.seen {
			m := string(octets)
			if strings.Contains(m, "InvalidAcknowledgement") && strings.Contains(m, `Upper="9"`) {
				return true
			}
		}
		return false
	}
	require.Eventually(t, told, deadline, tick)
	assert.Zero(t, s.Status().Done)
	e.link.mu.Lock()
	e.link.handler = right
	e.link.mu.Unlock()
	_, err = sent.Reply(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Finish(t.Context()))
	require.NoError(t, s.Close())
	assert.Equal(t, numbers(1), e.entries())
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
