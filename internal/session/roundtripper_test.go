package session_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// failing fails the first requests, and passes on the others.
type failing struct {
	to    http.RoundTripper
	first atomic.Int64 // how many
	fail  func(*http.Request) (*http.Response, error)
	plain atomic.Int64 // messages that went as plain SOAP, without an offer
}

func (f *failing) RoundTrip(req *http.Request) (*http.Response, error) {
	if f.first.Add(-1) >= 0 {
		return f.fail(req)
	}
	if req.Method == http.MethodPost && req.Header.Get("HHFR") == "" && req.Header.Get("Upgrade") == "" {
		f.plain.Add(1)
	}
	return f.to.RoundTrip(req)
}

// A peer that could not be asked, or that refused for now, is asked again by the next request;
// where hhfr is required, none goes as plain SOAP meanwhile.
func TestTroubleOfTheFirstRequestPasses(t *testing.T) {
	unavailable := func(req *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusServiceUnavailable, Status: "503 Service Unavailable",
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req,
		}, nil
	}
	unreachable := func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	for name, fail := range map[string]func(*http.Request) (*http.Response, error){
		"503": unavailable, "unreachable": unreachable,
	} {
		for _, mode := range []negotiate.Mode{negotiate.Auto, negotiate.Explicit} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				d := open(t, http.HandlerFunc(repeat), false, nil)
				base := &failing{to: d.client, fail: fail}
				base.first.Store(1)
				cfg := d.config(mode)
				cfg.RequireHHFR, cfg.RememberFor = true, -1
				rt, err := session.NewRoundTripper(base, cfg)
				require.NoError(t, err)
				client := &http.Client{Transport: rt}
				send := func() error {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url,
						strings.NewReader("<e/>"))
					require.NoError(t, err)
					req.Header.Set("Content-Type", "text/xml; charset=utf-8")
					resp, err := client.Do(req)
					if err == nil {
						err = resp.Body.Close()
					}
					return err
				}
				require.Error(t, send())
				require.NoError(t, send(), "the peer is asked again")
				if mode == negotiate.Explicit {
					assert.Zero(t, base.plain.Load()-1, "but for the offer")
				}
				s, ok := rt.Session(strings.TrimSuffix(d.url, "/soap"))
				require.True(t, ok)
				assert.True(t, s.Agreed().HHFR)
				require.NoError(t, rt.Close())
			})
		}
	}
}

// Close does not wait for a peer that says nothing.
func TestCloseGivesUpNegotiations(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	asked := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			asked <- c
		}
	}()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	rt, err := session.NewRoundTripper(base, session.Config{Mode: negotiate.Explicit, RequireHHFR: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		url := "http://" + l.Addr().String()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("<e/>"))
		if err == nil {
			req.Header.Set("Content-Type", "text/xml")
			_, err = rt.RoundTrip(req)
		}
		failed <- err
	}()
	conn := <-asked
	defer conn.Close()
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	closed := make(chan error, 1)
	go func() { closed <- rt.Close() }()
	select {
	case err := <-closed:
		require.NoError(t, err)
	case <-time.After(negotiate.DefaultTimeout / 2):
		require.NoError(t, errors.New("Close waits for the time of the negotiation"))
	}
}
