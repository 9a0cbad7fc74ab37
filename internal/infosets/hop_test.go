package infosets_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/infosets"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/soap"
)

// through is a client of XML through a hop.
func through(t *testing.T, optimistic bool) *http.Transport {
	hop := infosets.NewHop(new(net.Dialer).DialContext, optimistic, nil)
	client := &http.Transport{DialContext: hop.Dial}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		require.NoError(t, hop.Close())
		_, err := hop.Dial(context.Background(), "tcp", "127.0.0.1:1")
		assert.Error(t, err)
	})
	return client
}

// TestHop: a client of XML with a server that takes Fast Infoset only, over connections that stay.
func TestHop(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	s := newService(t, func(w http.ResponseWriter, text string, infoset, _ bool) {
		if !infoset {
			inForm(t, w, http.StatusUnsupportedMediaType, envelope(soap.V11, "<s:Fault/>"), true)
			return
		}
		inForm(t, w, http.StatusOK, text, true)
	})
	client := through(t, false)
	for n := range 3 {
		text := envelope(soap.V11, fmt.Sprintf("<a>%d%s</a>", n, strings.Repeat("x", n*300_000)))
		assert.Equal(t, reply{200, "text/xml; charset=utf-8", text, ""}, post(t, client, s.URL, soap.V11, text))
	}
	assert.Len(t, s.asked, 4)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/?wsdl", nil)
	require.NoError(t, err)
	resp, err := client.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	client.CloseIdleConnections()
	s.Close()
}

// TestHopWithoutOrigin: who dials learns that nobody is there, as without the hop; what an origin
// says that cannot be read is a status, and a reply that is cut stays so.
func TestHopWithoutOrigin(t *testing.T) {
	client := through(t, true)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	got := post(t, client, "http://"+gone.Addr().String(), soap.V11, envelope(soap.V11, ""))
	assert.Contains(t, got.fail, "connection refused")

	s := newService(t, func(w http.ResponseWriter, _ string, _, _ bool) {
		w.Header().Set("Content-Type", "application/fastinfoset")
		_, _ = io.WriteString(w, "no document")
	})
	got = post(t, client, s.URL, soap.V11, envelope(soap.V11, ""))
	assert.Equal(t, http.StatusBadGateway, got.status)
	assert.Contains(t, got.text, "offset 0: no Fast Infoset")

	cut := newService(t, func(w http.ResponseWriter, _ string, _, _ bool) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "<a/>")
	})
	assert.Contains(t, post(t, client, cut.URL, soap.V11, envelope(soap.V11, "")).fail, "EOF")
}

// TestHopOfCodings: a reply in Fast Infoset that is compressed comes as XML; one by a coding that
// is not known is an error, and not the client's to read.
func TestHopOfCodings(t *testing.T) {
	text := envelope(soap.V11, "<a/>")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, err := z.Write([]byte(document(t, text)))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for coding, one := range map[string]struct {
		octets []byte
		status int
		text   string
	}{
		"gzip": {zipped.Bytes(), 200, text},
		"br":   {[]byte("?"), 502, "coded by"},
	} {
		t.Run(coding, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, []string{"gzip"}, r.Header["Accept-Encoding"])
				w.Header().Set("Content-Type", "application/fastinfoset")
				w.Header().Set("Content-Encoding", coding)
				_, _ = w.Write(one.octets)
			}))
			defer s.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(text))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "text/xml; charset=utf-8")
			req.Header.Set("Accept-Encoding", "br, gzip")
			resp, err := through(t, false).RoundTrip(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, one.status, resp.StatusCode)
			assert.Contains(t, string(body), one.text)
			assert.Empty(t, resp.Header.Get("Content-Encoding"))
		})
	}
}

// exchange sends bytes through a hop, and ends its direction; what comes then, until the end.
func exchange(t *testing.T, hop *infosets.Hop, origin, said string) string {
	conn, err := hop.Dial(t.Context(), "tcp", origin)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, said)
	require.NoError(t, err)
	require.NoError(t, netconn.CloseWrite(conn))
	all, err := io.ReadAll(conn)
	require.NoError(t, err)
	return string(all)
}

// TestHopOfOneDirection: a client that has ended its direction has its reply; one that is gone does
// not keep its request going.
func TestHopOfOneDirection(t *testing.T) {
	came, ended := make(chan struct{}, 2), make(chan struct{})
	stays := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came <- struct{}{}
		if r.URL.Path == "/gone" {
			<-r.Context().Done()
			close(ended)
			return
		}
		<-stays
		w.Header()["Content-Type"] = nil
		w.Header().Set("Connection", "X-Own")
		w.Header().Set("X-Own", "of the connection")
		_, _ = io.WriteString(w, "<a/>")
	}))
	defer s.Close()
	hop := infosets.NewHop(new(net.Dialer).DialContext, false, nil)
	defer hop.Close()
	go func() {
		<-came
		close(stays)
	}()
	got := exchange(t, hop, s.Listener.Addr().String(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
	assert.Contains(t, got, "HTTP/1.1 200 OK\r\n")
	assert.NotContains(t, got, "Content-Type")
	assert.NotContains(t, got, "X-Own")
	assert.Contains(t, got, "<a/>")

	conn, err := hop.Dial(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(conn, "POST /gone HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx")
	require.NoError(t, err)
	<-came
	require.NoError(t, conn.Close())
	<-ended
}
