package soaprm_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// losing is a link that loses what lost says of a message.
type losing struct {
	*link
	lost func(message []byte) bool
}

func (l losing) RoundTrip(r *http.Request) (*http.Response, error) {
	octets, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if l.lost(octets) {
		return nil, errLost
	}
	r.Body = io.NopCloser(bytes.NewReader(octets))
	return l.link.RoundTrip(r)
}

// sendsOne sends a message, and returns when its reply is there.
func (e *ends) sendsOne(s *soaprm.SequenceSource, p pairing) {
	sent, err := s.Send(e.t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(p.soap, 0), Action: "urn:add"})
	require.NoError(e.t, err)
	_, err = sent.Reply(e.t.Context())
	require.NoError(e.t, err)
}

// A service that acknowledges with the answer to a message, if that says where answers go, and
// never answers the last one (Apache CXF) still lets a source with a callback end its sequence.
func TestTheLastMessageNamesNoAddressOfReplies(t *testing.T) {
	for _, space := range []string{addressing.V200408, addressing.V200508} {
		p := pairing{soaprm.V10, space, pairings[0].soap}
		e := newEnds(t, 1, 0)
		s := ways[0].open(e, p)
		served := e.link.handler
		e.link.mu.Lock()
		e.link.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			octets, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			if bytes.Contains(octets, []byte("rm/LastMessage<")) && bytes.Contains(octets, []byte("ReplyTo>")) {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(octets))
			served.ServeHTTP(w, r)
		})
		e.link.mu.Unlock()
		e.sendsOne(s, p)
		require.NoError(t, s.Finish(t.Context()))
		assert.EqualValues(t, 2, s.Status().Done)
		require.NoError(t, s.Close())
	}
}

// The last acknowledgement of replies is sent again when it is lost: who sent them would go on with
// them when the source is gone.
func TestTheLastAcknowledgementIsLost(t *testing.T) {
	for _, p := range pairings {
		e := newEnds(t, 1, 0)
		cfg := e.sourceConfig(p.version, p.space, p.soap)
		cfg.AckDelay = time.Hour
		left, came := 5, false
		cfg.Client = &http.Client{Transport: losing{e.link, func(message []byte) bool {
			alone := bytes.Contains(message, []byte("/SequenceAcknowledgement<"))
			if alone && left > 0 {
				left--
				return true
			}
			came = came || alone
			return false
		}}}
		s, err := soaprm.OpenSource(t.Context(), cfg)
		require.NoError(t, err)
		e.sendsOne(s, p)
		require.NoError(t, s.Finish(t.Context()))
		require.NoError(t, s.Close())
		assert.Zero(t, left)
		assert.True(t, came)
	}
}
