package soaprm_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// held is a link to a service that sends a reply to the first request of a message only, and not
// before a second one came, which it answers with nothing.
type held struct {
	*link
	requests int
	again    chan struct{}
}

func (l *held) RoundTrip(r *http.Request) (*http.Response, error) {
	octets, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(octets))
	if !bytes.Contains(octets, []byte("<add>")) {
		return l.link.RoundTrip(r)
	}
	l.mu.Lock()
	l.requests++
	n := l.requests
	l.mu.Unlock()
	switch n {
	case 1:
		select {
		case <-l.again:
			return l.link.RoundTrip(r)
		case <-r.Context().Done():
			return nil, context.Cause(r.Context())
		}
	case 2:
		close(l.again)
	}
	return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody}, nil
}

// A request that the service is slow to answer is not given up when the message is sent again: the
// reply may come to it alone.
func TestASlowRequestGoesOn(t *testing.T) {
	e := newEnds(t, 1, 0)
	cfg := e.sourceConfig(soaprm.V11, "", soap.V12)
	cfg.Resend = 50 * time.Millisecond
	cfg.Client = &http.Client{Transport: &held{link: e.link, again: make(chan struct{})}}
	s, err := soaprm.OpenSource(t.Context(), cfg)
	require.NoError(t, err)
	sent, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: entry(soap.V12, 0), Action: "urn:add"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	_, err = sent.Reply(ctx)
	require.NoError(t, err)
	require.NoError(t, s.Finish(t.Context()))
	require.NoError(t, s.Close())
}
