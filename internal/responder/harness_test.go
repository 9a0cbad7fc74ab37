package responder_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	eventually = 20 * time.Second
	tick       = time.Millisecond
)

// end is a server with a handler of net/http, for plain SOAP and for streams.
type end struct {
	*responder.Handler
	http   *httptest.Server
	stream string // where streams are accepted
	store  ctxstore.Store
}

func start(t *testing.T, services http.HandlerFunc, change func(*responder.Config)) *end {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	e := &end{stream: l.Addr().String(), store: memory.New(memory.Config{})}
	cfg := responder.Config{Store: e.store, Addresses: map[string]string{"tcp": ":" + port}}
	if change != nil {
		change(&cfg)
	}
	e.Handler, err = responder.NewHandler(services, cfg)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- e.ServeStreams(context.Background(), l) }()
	e.http = httptest.NewServer(e.Handler)
	t.Cleanup(func() {
		require.NoError(t, e.Close())
		require.NoError(t, <-served)
		e.http.Close()
		require.NoError(t, e.store.Close())
	})
	return e
}

// echo repeats a request, with how it came, and its path, in fields.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.Header().Set("X-Path", r.URL.Path)
	if responder.FactsOf(r.Context()) != nil {
		w.Header().Set("X-Way", "stream")
	}
	body, _ := io.ReadAll(r.Body)
	_, _ = w.Write(body)
}

func anOffer() *negotiate.Offer {
	return &negotiate.Offer{
		Schemes:         []string{negotiate.Scheme},
		Representations: []string{negotiate.RepresentationURI("binary"), negotiate.RepresentationURI("xml")},
		Transports:      []string{negotiate.TransportURI("tcp")},
		Lifetime:        time.Hour,
		RequestHead:     negotiate.DefaultRequestFields,
		ReplyHead:       negotiate.DefaultReplyFields,
	}
}

// offer posts an offer, and returns the reply.
func (e *end) offer(t *testing.T, o *negotiate.Offer) (status int, body []byte) {
	t.Helper()
	message, err := o.Message(soap.V11)
	require.NoError(t, err)
	return e.post(t, "text/xml", message)
}

func (e *end) post(t *testing.T, contentType string, message []byte) (status int, body []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.http.URL+"/soap", bytes.NewReader(message))
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	resp, err := e.http.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, body
}

// agree gets the answer to an offer.
func (e *end) agree(t *testing.T, o *negotiate.Offer) *negotiate.Answer {
	t.Helper()
	status, body := e.offer(t, o)
	require.Equal(t, http.StatusOK, status, "%s", body)
	a, err := negotiate.ParseAnswer(body)
	require.NoError(t, err)
	return a
}

// hello is the configuration of a stream that joins a session.
func hello(session negotiate.SessionID, token []byte) streamer.Config {
	return streamer.Config{Initiator: true, Session: session, Token: token, Representation: 1,
		Coder: binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(binary.Options{})}
}

// open opens a stream.
func (e *end) open(t *testing.T, cfg streamer.Config) (*streamer.Stream, error) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", e.stream)
	require.NoError(t, err)
	s, err := streamer.Over(t.Context(), conn, cfg)
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// call makes a request over a stream, and returns head and body of the reply.
func call(t *testing.T, s *streamer.Stream, head, body string) (gotHead, gotBody string, err error) {
	t.Helper()
	reply, err := s.Lane(0).Call(t.Context(), streamer.NewMessage([]byte(head), []byte(body)))
	if err != nil {
		return "", "", err
	}
	data, err := reply.ReadAll(1 << 20)
	return string(reply.Head), string(data), err
}

const requestHead = "POST /soap HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\n\r\n"
