package session

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// SchemeError means that a server speaks TLS where the URL is http, or none where it is https. The
// server has processed nothing of what was sent. It is the cause of a [negotiate.Error] with the
// code Unreachable.
type SchemeError struct {
	// Scheme is the scheme that the URL would need.
	Scheme string
}

func (e *SchemeError) Error() string {
	if e.Scheme == "https" {
		return "the server speaks TLS there: the URL must be https"
	}
	return "the server speaks no TLS there: the URL must be http"
}

func wrongScheme(scheme string) error {
	return coded(negotiate.Unreachable, &SchemeError{scheme})
}

// schemeOf reports whether an error of an HTTP client means that the server does not speak what the
// URL says; nil if the error does not show it.
func schemeOf(u *url.URL, err error) error {
	var record tls.RecordHeaderError
	switch {
	case u.Scheme == "https" && (errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &record)):
		return wrongScheme("http")
	case u.Scheme == "http" && strings.Contains(err.Error(), alertReply):
		return wrongScheme("https")
	}
	return nil
}

// alertReply is what net/http, which has no type for it, reports of a reply that is a TLS alert.
const alertReply = `malformed HTTP response "\x15\x03`

// tellsOfTLS matches the texts by which servers answer a request without TLS on a port for TLS
// only: Go and what is written in it, nginx, Apache, Tomcat, hhfr.
var tellsOfTLS = regexp.MustCompile(`(?i)HTTP request to an HTTPS server|plain HTTP request was sent to HTTPS port|` +
	`plain HTTP to an SSL-enabled server port|host and port requires TLS|takes https only`)

// maxTold is how much of a reply is searched for such a text, in bytes.
const maxTold = 4 << 10

// schemeReply reports whether a reply says that the server speaks TLS there; nil if it does not.
// The reply's body can be read afterwards as if it had not been searched.
func schemeReply(u *url.URL, resp *http.Response) error {
	if u.Scheme != "http" || resp.StatusCode != http.StatusBadRequest {
		return nil
	}
	if start, _ := beginning(resp, maxTold); tellsOfTLS.Match(start) {
		_ = resp.Body.Close()
		return wrongScheme("https")
	}
	return nil
}

// probeTimeout bounds the TLS handshake with a server that sent no reply.
const probeTimeout = 5 * time.Second

// speaksTLS reports whether a server that sent no reply at all to an offer by http speaks TLS
// there: many such servers close the connection without a reply. Only a TLS handshake is made, for
// a request of which nothing is sent. It is used for offers only: for a message it would not be
// certain enough, since a port may take both.
func (n *negotiation) speaksTLS(ctx context.Context) bool {
	if n.url.Scheme != "http" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	ctx, shaken := traced(ctx)
	secure := *n.url
	secure.Scheme, secure.User = "https", nil
	if secure.Port() == "" {
		secure.Host = net.JoinHostPort(secure.Hostname(), "80")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, secure.String(), nil)
	if err != nil {
		return false
	}
	// A body that is shorter than its length fails before the head leaves the buffer.
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(nil)), 1
	resp, err := n.cfg.HTTPClient.Do(req)
	if err == nil {
		_ = resp.Body.Close()
		return false
	}
	var untrusted *tls.CertificateVerificationError
	var refused *net.OpError // an alert
	return shaken.Load() || errors.As(err, &untrusted) || errors.As(err, &refused) && refused.Op == "remote error"
}

// traced returns a context whose requests say when they have a connection.
func traced(ctx context.Context) (_ context.Context, connected *atomic.Bool) {
	connected = new(atomic.Bool)
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	return httptrace.WithClientTrace(ctx, trace), connected
}

// noReply returns the error of a request that had no reply, which the text is for. connected: it
// had a connection.
func (n *negotiation) noReply(ctx context.Context, err error, connected bool, text string) error {
	if wrong := schemeOf(n.url, err); wrong != nil {
		return wrong
	}
	switch err = late(ctx, withoutURL(err)); {
	case !connected, TroubleOf(err) != 0:
		return coded(negotiate.Unreachable, err)
	case n.cfg.ProbeTLS && ctx.Err() == nil && n.speaksTLS(ctx):
		return wrongScheme("https")
	}
	return &refusal{err: fmt.Errorf(text, err), passing: true, undecided: true}
}
