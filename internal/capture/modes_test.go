package capture_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// recordModes sends messages in sessions of the modes, one after the other, from one client to one
// server, which do not share a store.
func recordModes(t *testing.T, messages [][]byte, modes ...negotiate.Mode) []byte {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	handler, err := responder.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = w.Write(body)
	}), responder.Config{Store: memory.New(memory.Config{}), Addresses: map[string]string{"tcp": ":" + port}})
	require.NoError(t, err)
	p := oneport.New(l, oneport.Config{})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(p.HTTP()) })
	wait.Go(func() { _ = handler.ServeStreams(context.Background(), p.Streams()) })

	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, time.Now)
	transport := &http.Transport{DialContext: rec.DialContext((&net.Dialer{}).DialContext)}
	client := memory.New(memory.Config{})
	for i, mode := range modes {
		sess, err := session.Dial(t.Context(), "http://127.0.0.1:"+port+"/service", session.Config{
			Mode:  mode,
			Store: client,
			HTTPClient: &http.Client{
				Transport: transport,
			},
			WrapConn: func(c net.Conn) net.Conn { return rec.Conn(c) },
		})
		require.NoError(t, err)
		for _, body := range messages[len(messages)*i/len(modes) : len(messages)*(i+1)/len(modes)] {
			m, err := sess.Call(t.Context(), streamer.NewMessage(nil, body))
			require.NoError(t, err)
			got, err := m.ReadAll(1 << 20)
			require.NoError(t, err)
			require.Equal(t, string(body), string(got))
		}
		require.Eventually(t, func() bool { // it is remembered for the next one
			for range client.List(t.Context(), session.MetPrefix) {
				return true
			}
			return false
		}, 10*time.Second, time.Millisecond)
		require.NoError(t, sess.Close())
	}
	transport.CloseIdleConnections()
	require.NoError(t, handler.Close())
	require.NoError(t, server.Close())
	_ = p.Close()
	wait.Wait()
	require.NoError(t, rec.Close())
	return file.Bytes()
}

// A session that is negotiated by the first call, and is met again, is listed as one after the
// other: the streams share the session, and no message belongs to another one.
func TestModes(t *testing.T) {
	var messages [][]byte
	for i := range 9 {
		messages = append(messages, body(i+1))
	}
	file := recordModes(t, messages, negotiate.FirstCall, negotiate.Met, negotiate.Met)
	r := decode(t, file, nil)
	want := []string{"1q 1a!"}
	for n := range 8 {
		want = append(want, strings.ReplaceAll("Nq! Na!", "N", string(rune('2'+n))))
	}
	assert.Equal(t, strings.Join(want, " "), brief(r.Messages))
	for _, m := range r.Messages {
		require.Equal(t, string(body(m.Number)), string(m.Body))
	}
	assert.False(t, r.Partial())
	require.Len(t, r.Streams, 3)
	for _, s := range r.Streams {
		assert.Equal(t, r.Streams[0].Session, s.Session)
		assert.Equal(t, "/service", s.Service.Path)
	}
	raw, err := decodeStreams(t, runsOf(t, file, nil), capture.DecodeConfig{})
	require.NoError(t, err)
	assert.Len(t, raw.Streams, 3)
	assert.Equal(t, 17, raw.Counts().Verified, "all but the request that was upgraded")
}
