package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/negotiate"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	agreement "github.com/hhfr/hhfr/pkg/negotiate"
)

// relay carries connections to a server. Once hold is set, it forwards nothing before a client has
// sent that many bytes.
type relay struct {
	net.Listener
	hold  atomic.Int64
	conns atomic.Int64
}

func startRelay(t *testing.T, to string) *relay {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{Listener: l}
	var wait sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wait.Wait()
	})
	wait.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			r.conns.Add(1)
			wait.Go(func() { r.carry(client, to) })
		}
	})
	return r
}

func (r *relay) carry(client net.Conn, to string) {
	defer client.Close()
	first := make([]byte, r.hold.Load())
	if _, err := io.ReadFull(client, first); err != nil {
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(client, server)
		_ = client.(*net.TCPConn).CloseWrite()
	}()
	_, _ = server.Write(first)
	_, _ = io.Copy(server, client)
	_ = server.(*net.TCPConn).CloseWrite()
	<-done
	_ = server.Close()
}

// startEcho starts a server, and returns its address.
func startEcho(t *testing.T) string {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	store := memory.New(memory.Config{})
	services, err := peer.NewServices(peer.Echo())
	require.NoError(t, err)
	server, err := peer.Start(peer.Config{
		HTTP: l, Services: services, Store: store, Coders: coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store})),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Close()) })
	return l.Addr().String()
}

// TestMetInOneFlight: peers that have met need one connection, and hello and message leave before
// the peer has sent anything.
func TestMetInOneFlight(t *testing.T) {
	r := startRelay(t, startEcho(t))
	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	args := []string{"stream", "http://" + r.Addr().String() + peer.EchoPath, message, "--store",
		filepath.Join(t.TempDir(), "store"), "-o", "json"}
	for i, mode := range []string{"first-call", "met", "met"} {
		code, out, stderr := do(t, args...)
		require.Equal(t, exit.Done, code, stderr)
		s := lastSummary(t, out)
		assert.Equal(t, mode, s.Mode)
		assert.Equal(t, 1, s.Messages)
		assert.Equal(t, int64(i+1), r.conns.Load(), "connections")
		// Hello alone is shorter: see docs/wire-format.md, section 3.
		r.hold.Store(300)
	}
}

// TestInvitedToBlockedPort: an answer to the first call names a port that something on the path
// blocks. That is one warning with a remedy; the messages arrive.
func TestInvitedToBlockedPort(t *testing.T) {
	port := closedPort(t)
	end := &plainEnd{answer: func(w http.ResponseWriter, _ *http.Request, _ *agreement.Offer) {
		w.Header().Set("HHFR", `1;address="`+port+
			`";session="urn:uuid:05000000-0000-4000-8000-000000000000"`+
			`;token="00112233445566778899aabbccddeeff";lifetime=60;transport=tcp`)
		always(200, "text/xml", envelope(0))(w, nil, nil)
	}}
	server := httptest.NewServer(end)
	defer server.Close()
	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	want := "no stream to 127.0.0.1" + port + " (connection refused)"
	code, out, stderr := do(t, "stream", server.URL+"/service", message, "--repeat", "20", "-o", "json")
	assert.Zero(t, code)
	assert.Equal(t, "hhfr: plain SOAP: "+want+"\nhhfr: hint: "+session.BlockedHint+"\n", stderr)
	assert.Equal(t, want, lastSummary(t, out).Why)
	offers, bodies := end.got()
	assert.Zero(t, offers)
	bodies = slices.DeleteFunc(bodies, func(b string) bool { return b == "" }) // that of a question
	assert.Len(t, bodies, 20)
	code, _, stderr = do(t, "stream", server.URL+"/service", message, "--require-hhfr")
	assert.Equal(t, exit.NoPeer, code)
	assert.Contains(t, stderr, want)

	code, out, _ = do(t, "negotiate", server.URL+"/service", "-o", "json")
	assert.Zero(t, code)
	var r negotiate.NegotiateReport
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Len(t, r.Tried, 3)
	assert.Equal(t, negotiate.TriedReport{Mode: "first-call", Why: want, Transport: agreement.TransportURI("tcp"),
		Address: "127.0.0.1" + port}, r.Tried[1])
}
