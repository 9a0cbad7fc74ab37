package responder_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

const unknown = "session or token not accepted"

// A session is joined by the token of the answer, once, and again by that of the hello that came
// back: each admits one stream, of whoever has it.
func TestTokensAreForOneStream(t *testing.T) {
	e := start(t, echo, nil)
	a := e.agree(t, anOffer())
	assert.True(t, e.Knows(t.Context(), a.Session, a.Token[:]))
	assert.Equal(t, negotiate.Scheme, a.Scheme)
	assert.Equal(t, negotiate.AtMostOnce, a.Assurance)

	forged := a.Token
	forged[3]++
	_, err := e.open(t, hello(a.Session, forged[:]))
	require.ErrorContains(t, err, unknown)
	_, err = e.open(t, hello(negotiate.NewSessionID(), a.Token[:]))
	require.ErrorContains(t, err, unknown)

	for token := a.Token[:]; len(token) > 0; token = nil {
		first, err := e.open(t, hello(a.Session, token))
		require.NoError(t, err)
		head, body, err := call(t, first, requestHead, "<one/>")
		require.NoError(t, err)
		assert.Contains(t, head, "X-Way: stream")
		assert.Contains(t, head, "X-Path: /soap")
		assert.Equal(t, "<one/>", body)
		_, err = e.open(t, hello(a.Session, token))
		require.ErrorContains(t, err, unknown)

		again, err := e.open(t, hello(a.Session, first.Hello().Token))
		require.NoError(t, err)
		_, body, err = call(t, again, requestHead, "<two/>")
		require.NoError(t, err)
		assert.Equal(t, "<two/>", body)
	}
	other := hello(a.Session, nil)
	b := e.agree(t, anOffer())
	other.Session, other.Token, other.Representation = b.Session, b.Token[:], 2
	_, err = e.open(t, other)
	require.ErrorContains(t, err, "another representation was agreed on")
}

// What an offer asks for and cannot have is named, and the offer refused or met without it.
func TestOffersThatCannotBeMet(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*negotiate.Offer)
		config func(*responder.Config)
		why    string
	}{
		"scheme": {func(o *negotiate.Offer) { o.Schemes = []string{"urn:other"} }, nil, "Scheme"},
		"transport": {func(o *negotiate.Offer) { o.Transports = []string{negotiate.TransportURI("udp")} }, nil,
			"Transport"},
		"representation": {
			func(o *negotiate.Offer) { o.Representations = []string{negotiate.RepresentationURI("xml")} },
			func(c *responder.Config) { c.Representations = []string{"binary"} }, "Representation"},
		"exactly once in memory": {func(o *negotiate.Offer) {
			o.Assurances = []string{negotiate.AssuranceURI(wsrm.ExactlyOnce, true)}
			o.Sequence = "urn:hhfr:sequence:0f1e2d3c4b5a69788796a5b4c3d2e1f0"
		}, nil, "store that persists"},
		"not admitted": {func(*negotiate.Offer) {}, func(c *responder.Config) {
			c.Admit = responder.AdmitBearer([]string{"secret"})
		}, "bearer token"},
		"no certificate": {func(*negotiate.Offer) {}, func(c *responder.Config) {
			c.Admit = responder.AdmitCertificate
		}, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, echo, tc.config)
			o := anOffer()
			tc.change(o)
			status, body := e.offer(t, o)
			assert.Equal(t, http.StatusInternalServerError, status)
			assert.Contains(t, string(body), tc.why)
		})
	}
	t.Run("headers", func(t *testing.T) {
		e := start(t, echo, func(c *responder.Config) {
			c.UnchangingHeaders = func(string, []string) error { return errors.New("none are taken here") }
		})
		o := anOffer()
		o.Headers = []string{`<a xmlns="urn:a"/>`}
		a := e.agree(t, o)
		assert.Equal(t, []negotiate.Declined{{Item: "UnchangingHeader", Why: "none are taken here"}}, a.Refused)
		assert.Zero(t, a.HeadersKept)
	})
	t.Run("malformed", func(t *testing.T) {
		e := start(t, echo, nil)
		o, err := anOffer().Message(1)
		require.NoError(t, err)
		status, body := e.post(t, "text/xml", []byte(strings.Replace(string(o), "<n:Scheme>", "<n:Scheme", 1)))
		assert.Equal(t, http.StatusInternalServerError, status)
		assert.Contains(t, string(body), "Fault")
	})
}

// Whatever is no offer reaches the service as it is.
func TestOtherRequestsPass(t *testing.T) {
	e := start(t, echo, nil)
	long := `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a>` + strings.Repeat("x", 9000) +
		`</a></s:Body></s:Envelope>`
	for _, sent := range []string{"", "no XML", "<a/>", long} {
		status, body := e.post(t, "text/xml", []byte(sent))
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, sent, string(body))
	}
}

// A hello without a token begins a session with the service that it names, if there is one.
func TestFirstContacts(t *testing.T) {
	e := start(t, echo, func(c *responder.Config) { c.Serves = func(path string) bool { return path != "/none" } })
	to := func(target string) streamer.Config {
		h := hello(negotiate.NewSessionID(), nil)
		h.Target = target
		return h
	}
	s, err := e.open(t, to("http://there.example/soap"))
	require.NoError(t, err)
	_, body, err := call(t, s, requestHead, "<one/>")
	require.NoError(t, err)
	assert.Equal(t, "<one/>", body)
	for name, target := range map[string]string{
		"no service": "http://there.example/none", "no URL": "::", "query": "http://there.example/soap?a",
		"user": "http://me@there.example/soap", "scheme": "ftp://there.example/soap", "no host": "http:///soap",
	} {
		_, err := e.open(t, to(target))
		require.ErrorContains(t, err, unknown, name)
	}
	same := to("http://there.example/soap")
	same.Session = s.Session()
	_, err = e.open(t, same)
	require.ErrorContains(t, err, unknown, "the name of another session")
}

// Sessions that nobody joins go for others; where all have streams, the next peer is told that
// there is no slot, and has one as soon as a stream ends.
func TestRoom(t *testing.T) {
	e := start(t, echo, func(c *responder.Config) { c.MaxSessions, c.MaxPerPeer = 2, 2 })
	first := e.agree(t, anOffer())
	for range 3 {
		e.agree(t, anOffer())
	}
	assert.False(t, e.Knows(t.Context(), first.Session, first.Token[:]))
	contexts := 0
	for _, err := range e.store.List(t.Context(), ctxstore.SessionPrefix) {
		require.NoError(t, err)
		contexts++
	}
	assert.Equal(t, 2, contexts, "the store has no more of them than there are sessions")

	var streams []*streamer.Stream
	for range 2 {
		a := e.agree(t, anOffer())
		s, err := e.open(t, hello(a.Session, a.Token[:]))
		require.NoError(t, err)
		streams = append(streams, s)
	}
	status, body := e.offer(t, anOffer())
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Contains(t, string(body), "too many sessions")
	_, err := e.open(t, hello(negotiate.NewSessionID(), make([]byte, streamer.TokenLen)))
	require.ErrorContains(t, err, "too many sessions")
	require.NoError(t, streams[0].Close())
	require.Eventually(t, func() bool {
		status, _ := e.offer(t, anOffer())
		return status == http.StatusOK
	}, eventually, tick)
}

// A request that asks for a stream opens one over its connection, and a question does.
func TestUpgrades(t *testing.T) {
	e := start(t, echo, nil)
	say := func(request string) (*http.Response, net.Conn) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", e.http.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, request)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		return resp, conn
	}
	const asks = "Host: x\r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\nHHFR: 1\r\n"
	for _, request := range []string{
		"POST /soap HTTP/1.1\r\n" + asks + "Content-Type: text/xml\r\nContent-Length: 4\r\n\r\n<a/>",
		"OPTIONS /soap HTTP/1.1\r\n" + asks + "\r\n",
	} {
		resp, _ := say(request)
		assert.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode, request)
	}
	resp, _ := say("POST /soap HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: 4\r\n\r\n<a/>")
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Empty(t, resp.Header.Get(negotiate.Field), "nobody asked")
}

// Where a connection cannot be upgraded, the answer says where a stream can be opened.
func TestInvitations(t *testing.T) {
	e := start(t, echo, nil)
	for _, method := range []string{http.MethodPost, http.MethodOptions} {
		req := httptest.NewRequest(method, "http://there.example/soap", strings.NewReader("<a/>"))
		req.Header.Set(negotiate.Field, "1")
		req.Header.Set("Content-Type", "text/xml")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, req)
		i, err := upgrade.ParseInvitation(w.Header().Get(negotiate.Field))
		require.NoError(t, err, method)
		s, err := e.open(t, hello(i.Session, i.Token))
		require.NoError(t, err)
		_, body, err := call(t, s, requestHead, "<one/>")
		require.NoError(t, err)
		assert.Equal(t, "<one/>", body)
	}
}

// Shutdown lets what has begun end, and nothing begin; Close waits for nobody.
func TestShutdown(t *testing.T) {
	working, finish := make(chan struct{}), make(chan struct{})
	e := start(t, func(w http.ResponseWriter, r *http.Request) {
		close(working)
		<-finish
		echo(w, r)
	}, nil)
	a := e.agree(t, anOffer())
	s, err := e.open(t, hello(a.Session, a.Token[:]))
	require.NoError(t, err)
	replied := make(chan error, 1)
	go func() {
		_, body, err := call(t, s, requestHead, "<late/>")
		if err == nil && body != "<late/>" {
			err = fmt.Errorf("reply %q", body)
		}
		replied <- err
	}()
	<-working
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, e.Shutdown(over), context.Canceled)
	ended := make(chan error, 1)
	go func() { ended <- e.Shutdown(t.Context()) }()
	close(finish)
	require.NoError(t, <-replied)
	require.NoError(t, <-ended)
	late, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, e.ServeStreams(t.Context(), late))
	require.ErrorIs(t, late.Close(), net.ErrClosed, "it was not closed")
}

// What an ended session leaves in the store is bounded; with Archive all of it stays.
func TestRecordsOfEndedSessions(t *testing.T) {
	for archive, most := range map[bool]int{false: 4, true: 9} {
		e := start(t, echo, func(c *responder.Config) { c.MaxSessions, c.MaxPerPeer, c.Archive = 1, 1, archive })
		for range 9 {
			require.Eventually(t, func() bool { // the end of the stream before was seen
				status, body := e.offer(t, anOffer())
				if status != http.StatusOK {
					return false
				}
				a, err := negotiate.ParseAnswer(body)
				if err != nil {
					return false
				}
				s, err := e.open(t, hello(a.Session, a.Token[:]))
				return err == nil && s.Close() == nil
			}, eventually, tick)
		}
		require.Eventually(t, func() bool {
			left := 0
			for _, err := range e.store.List(t.Context(), ctxstore.SessionPrefix) {
				require.NoError(t, err)
				left++
			}
			return left == most
		}, eventually, tick, "archive %t", archive)
	}
}

// Descriptions of a store that an offer names are confirmed; what nobody has is refused.
func TestDescriptions(t *testing.T) {
	e := start(t, echo, nil)
	made, err := learn.FromMessage([]byte("<a>1</a>"))
	require.NoError(t, err)
	o := anOffer()
	o.Request = &negotiate.Description{Fingerprint: made.Fingerprint().URI()}
	a := e.agree(t, o)
	assert.Equal(t, []negotiate.Declined{{Item: "RequestDescription", Why: "not known here"}}, a.Refused)
	_, err = ctxstore.Shapes{Store: e.store}.Put(t.Context(), made.Octets())
	require.NoError(t, err)
	a = e.agree(t, o)
	assert.Empty(t, a.Refused)
	assert.Equal(t, o.Request, a.Request)
	assert.Equal(t, [][32]byte{made.Fingerprint()}, a.Shapes)
}
