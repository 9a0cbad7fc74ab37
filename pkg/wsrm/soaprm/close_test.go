package soaprm_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// lateLink is a link on which acknowledgements alone get no answer, and take a second to end when
// they are given up.
type lateLink struct {
	*link
	begun chan struct{}
	ended atomic.Bool
}

func (l *lateLink) RoundTrip(r *http.Request) (*http.Response, error) {
	octets, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(octets, []byte("200702/SequenceAcknowledgement</")) {
		close(l.begun)
		<-r.Context().Done()
		time.Sleep(time.Second)
		l.ended.Store(true)
		return nil, context.Cause(r.Context())
	}
	r.Body = io.NopCloser(bytes.NewReader(octets))
	return l.link.RoundTrip(r)
}

// Close waits for all that a source began, also for the acknowledgement of replies that goes by
// itself; what comes after it is not taken.
func TestCloseWaits(t *testing.T) {
	before := goleak.IgnoreCurrent()
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, 1, 0)
		late := &lateLink{link: e.link, begun: make(chan struct{})}
		cfg := e.sourceConfig(soaprm.V11, "", soap.V12)
		cfg.Client = &http.Client{Transport: late}
		s, err := soaprm.OpenSource(t.Context(), cfg)
		require.NoError(t, err)
		sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(soap.V12, 0), Action: "urn:add"})
		require.NoError(t, err)
		_, err = sent.Reply(t.Context())
		require.NoError(t, err)
		<-late.begun
		require.NoError(t, s.Close())
		assert.True(t, late.ended.Load())
		_, err = s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(soap.V12, 1), Action: "urn:add"})
		assert.ErrorIs(t, err, &soaprm.Error{Code: soaprm.Closed})
	})
	goleak.VerifyNone(t, before)
}
