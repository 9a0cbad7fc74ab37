package soaprm_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// A source that gets one of the faults of the standard in answer to a message gives the sequence up
// where the service does not take it any more, and what was sent is of unknown fate; any other one
// changes nothing, and the message comes to its reply. It is the same on the connection and at a
// callback.
func TestFaultsOfServices(t *testing.T) {
	ends := map[string]bool{
		"UnknownSequence": true, "SequenceTerminated": true, "SequenceClosed": true, "LastMessageNumberExceeded": true,
		"MessageNumberRollover": false, "InvalidAcknowledgement": false, "WSRMRequired": false,
	}
	eachPairing(t, func(t *testing.T, k *talk) {
		for subcode, isEnd := range ends {
			for _, decoupled := range []bool{false, true} {
				e := newEnds(t, 1, 0)
				k := &talk{ends: e, pairing: k.pairing}
				var s *soaprm.SequenceSource
				if decoupled {
					s = ways[0].open(e, k.pairing)
				} else {
					s = e.source(k.version, k.pairing.space, k.soap)
				}
				right, told := e.link.handler, false
				e.link.mu.Lock()
				e.link.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					octets, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(strings.NewReader(string(octets)))
					if told || !strings.Contains(string(octets), "<add>") {
						right.ServeHTTP(w, r)
						return
					}
					told = true
					fault := k.faultFor(octets, subcode)
					if !decoupled {
						w.WriteHeader(http.StatusInternalServerError)
						_, _ = w.Write(fault)
						return
					}
					back := httptest.NewRequest(http.MethodPost, k.replyTo(octets), strings.NewReader(string(fault)))
					back.Header.Set("Content-Type", "text/xml")
					e.back.handler.ServeHTTP(httptest.NewRecorder(), back)
					w.WriteHeader(http.StatusAccepted)
				})
				e.link.mu.Unlock()
				sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(k.soap, 0), Action: "urn:add"})
				require.NoError(t, err)
				_, err = sent.Reply(t.Context())
				if isEnd {
					assert.ErrorIs(t, err, &soaprm.Error{Code: soaprm.FateUnknown}, "%s %v", subcode, decoupled)
					_, err = s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(k.soap, 1), Action: "urn:add"})
					assert.ErrorIs(t, err, &soaprm.Error{Code: soaprm.Unsent})
					assert.Empty(t, e.entries())
				} else {
					assert.NoError(t, err, "%s %v", subcode, decoupled)
					assert.Equal(t, numbers(1), e.entries())
				}
				require.NoError(t, s.Close())
			}
		}
	})
}

// faultFor is a fault in answer to a message, in the header block where SOAP 1.1 has it.
func (k *talk) faultFor(message []byte, subcode string) []byte {
	a, err := soap.Split(message, soap.Limits{})
	require.NoError(k.t, err)
	p, err := addressing.Read(&a.Envelope)
	require.NoError(k.t, err)
	f := soap.Fault{Code: soap.Client, Reason: "no"}
	b := header.Blocks{Version: string(k.version)}
	if k.soap == soap.V12 {
		f.Subcode, f.SubcodeSpace = subcode, k.version.Namespace()
	} else {
		b.Fault = subcode
	}
	head, _ := b.Elements("")
	e := f.Envelope(k.soap)
	e.Header = append(append(p.Answer(k.version.Namespace()+"/fault").Blocks(), head...), e.Header...)
	octets, err := soap.Build(e)
	require.NoError(k.t, err)
	return octets
}

func (k *talk) replyTo(message []byte) string {
	a, err := soap.Split(message, soap.Limits{})
	require.NoError(k.t, err)
	p, err := addressing.Read(&a.Envelope)
	require.NoError(k.t, err)
	return p.ReplyTo.Address
}
