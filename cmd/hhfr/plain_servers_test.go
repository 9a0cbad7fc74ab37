package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// plainEnd is a server that never opens a stream. It notes the bodies that reach it, as the client
// sent them.
type plainEnd struct {
	answer func(w http.ResponseWriter, r *http.Request, offer *negotiate.Offer)

	mu     sync.Mutex
	offers int
	bodies []string
}

func (p *plainEnd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	offer, _, err := negotiate.ParseOffer(body)
	p.mu.Lock()
	if err == nil {
		p.offers++
	} else {
		p.bodies = append(p.bodies, string(body))
	}
	p.mu.Unlock()
	p.answer(w, r, offer)
}

// got returns what arrived since the last call.
func (p *plainEnd) got() (offers int, bodies []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	offers, bodies = p.offers, p.bodies
	p.offers, p.bodies = 0, nil
	return offers, bodies
}

// always answers everything, offers and messages, in the same way.
func always(status int, contentType, body string) func(http.ResponseWriter, *http.Request, *negotiate.Offer) {
	return func(w http.ResponseWriter, _ *http.Request, _ *negotiate.Offer) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// agreeing answers offers as an hhfr peer would, with an address for the stream; anything else gets
// a SOAP reply.
func agreeing(t *testing.T, address func() string) func(http.ResponseWriter, *http.Request, *negotiate.Offer) {
	return func(w http.ResponseWriter, r *http.Request, offer *negotiate.Offer) {
		if offer == nil {
			always(200, "text/xml", envelope(0))(w, r, nil)
			return
		}
		answer := negotiate.Answer{
			Scheme: offer.Schemes[0], Representation: offer.Representations[0], Transport: offer.Transports[0],
			Address: address(), Session: negotiate.SessionID{1}, Lifetime: time.Minute,
		}
		text, err := answer.Message(soap.V11)
		assert.NoError(t, err)
		always(200, "text/xml", string(text))(w, r, nil)
	}
}

// TestStreamToPlainServers: with every kind of server that opens no stream, each message reaches it
// once, as plain SOAP. It gets one offer for the time that is remembered; a possible captive portal
// is not remembered.
func TestStreamToPlainServers(t *testing.T) {
	faultOf := func(v soap.Version) string {
		text, err := soap.BuildFault(v, soap.Fault{Code: soap.Client, Reason: "no such operation"})
		require.NoError(t, err)
		return string(text)
	}
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, *negotiate.Offer)
		code   int
		why    string
	}{
		{"fault of SOAP 1.1", always(500, "text/xml", faultOf(soap.V11)), 1,
			`HTTP status 500: SOAP fault: "no such operation"`},
		{"fault of SOAP 1.2", always(400, "application/soap+xml", faultOf(soap.V12)), 1,
			`HTTP status 400: SOAP fault: "no such operation"`},
		{"fault with status 200", always(200, "text/xml", faultOf(soap.V11)), 1, `SOAP fault: "no such operation"`},
		{"404", always(404, "text/plain", "404 page not found"), 1, "HTTP status 404"},
		{"405", always(405, "text/plain", ""), 1, "HTTP status 405"},
		{"415", always(415, "text/plain", ""), 1, "HTTP status 415"},
		{"500", always(500, "text/html", "<html><body>oops"), 1, "HTTP status 500"},
		{"HTML", always(200, "text/html", "<html><body>hello"), 0, `reply of type "text/html"`},
		{"HTML that says it is XML", always(200, "text/xml", "<html><body>hello</body></html>"), 0,
			"the reply is no answer to an offer"},
		{"valid SOAP that is no answer", always(200, "text/xml", envelope(0)), 0,
			"the reply is no answer to an offer: no {urn:hhfr:negotiation:1}Answer in the Body"},
		{"nothing in the reply", always(200, "text/xml", ""), 0, "the reply is no answer to an offer"},
		{"redirect", always(302, "text/plain", ""), 1, "HTTP status 302"},
		{"reply that breaks off", func(w http.ResponseWriter, _ *http.Request, _ *negotiate.Offer) {
			w.Header().Set("Content-Length", "999")
			always(200, "text/xml", "<")(w, nil, nil)
		}, 5, "the reply to the offer broke off: unexpected EOF"},
		{"connection closed", func(http.ResponseWriter, *http.Request, *negotiate.Offer) {
			panic(http.ErrAbortHandler)
		}, 5, "no reply to the offer: EOF"},
		{"no reply in time", func(w http.ResponseWriter, r *http.Request, offer *negotiate.Offer) {
			if offer == nil {
				always(200, "text/xml", envelope(0))(w, r, nil)
				return
			}
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}, 0, "no reply to the offer: not within 500ms"},
		{"agreed port closed", agreeing(t, func() string { return closedPort(t) }), 0, "no stream to 127.0.0.1:"},
		{"agreed address that times out", agreeing(t, func() string {
			return silentPort(t)
		}), 0, "no stream to 127.0.0.1:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := &plainEnd{answer: c.answer}
			server := httptest.NewServer(end)
			defer server.Close()
			dir := t.TempDir()
			args := []string{"stream", server.URL + "/service", "--store", filepath.Join(dir, "store"),
				"--negotiate-timeout", "1m", "-o", "json", "--mode", "explicit"}
			if _, wait, ok := strings.Cut(c.why, "not within "); ok {
				args[5] = wait
			} else if c.name == "agreed address that times out" {
				args[5] = "3s"
			}
			var sent []string
			for i := range 5 {
				name := filepath.Join(dir, strconv.Itoa(i)+".xml")
				sent = append(sent, envelope(i))
				require.NoError(t, os.WriteFile(name, []byte(envelope(i)), 0o600))
				args = append(args, name)
			}
			type running struct {
				more   []string
				offers int
				says   string
			}
			again := running{nil, 0, "remembered: " + c.why}
			if c.name == "HTML" || c.name == "redirect" { // possibly of a captive portal
				again = running{nil, 1, c.why}
			}
			for _, run := range []running{{nil, 1, c.why}, again, {[]string{"--remember", "0"}, 1, c.why}} {
				code, stdout, stderr := do(t, append(args, run.more...)...)
				assert.Equal(t, c.code, code, stderr)
				assert.Contains(t, stderr, "hhfr: plain SOAP: "+run.says)
				offers, bodies := end.got()
				assert.Equal(t, run.offers, offers, "offers")
				assert.ElementsMatch(t, sent, bodies, "each message once")
				s := lastSummary(t, stdout)
				assert.False(t, s.HHFR)
				assert.Zero(t, s.Stream)
				if c.code == exit.Partial {
					assert.Equal(t, []int{1, 2, 3, 4, 5}, s.Unknown)
					continue
				}
				assert.Equal(t, len(sent), s.Messages)
				assert.Empty(t, s.Unknown)
			}
			code, _, stderr := do(t, append(args, "--require-hhfr")...)
			assert.Equal(t, exit.NoPeer, code, stderr)
			_, bodies := end.got()
			assert.Empty(t, bodies)
		})
	}
}

// closedPort is a port that nobody listens on.
func closedPort(t *testing.T) string {
	_, port, err := net.SplitHostPort(shared.Addr(t))
	assert.NoError(t, err)
	return ":" + port
}

// silentPort is a port that accepts connections and never sends anything.
func silentPort(t *testing.T) string {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	assert.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return portOf(t, l)
}

func portOf(t *testing.T, l net.Listener) string {
	_, port, err := net.SplitHostPort(l.Addr().String())
	assert.NoError(t, err)
	return ":" + port
}
