package capture_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/tlsrecord"
)

// secretCalls are calls over TLS, recorded below it: their capture, which has the keys if embedded,
// and the keys.
func secretCalls(t testing.TB, embedded bool, bodies ...string) (file, keys []byte) {
	t.Helper()
	ca := shared.NewAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write(bytes.ReplaceAll(body, []byte("ask"), []byte("tell")))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{ca.Issue(time.Hour, "127.0.0.1")}}
	server.StartTLS()
	defer server.Close()
	var out, log bytes.Buffer
	rec := pcapng.NewRecorder(&out, time.Now)
	var to io.Writer = &log
	if embedded {
		to = io.MultiWriter(&log, rec.Secrets())
	}
	transport := &http.Transport{
		DialContext:     rec.DialContext((&net.Dialer{}).DialContext),
		TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), KeyLogWriter: to},
	}
	client := &http.Client{Transport: transport}
	for _, body := range bodies {
		resp, err := client.Post(server.URL+"/service", "text/xml", strings.NewReader(body))
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	transport.CloseIdleConnections()
	require.NoError(t, rec.Close())
	return out.Bytes(), log.Bytes()
}

func asking(text string) string {
	return "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body><ask>" + text +
		"</ask></e:Body></e:Envelope>"
}

// TestSecure: SOAP over HTTP in TLS is decoded by keys in the capture, or beside it, read once or
// twice; without them it is counted.
func TestSecure(t *testing.T) {
	bodies := []string{asking("1"), asking(strings.Repeat("long", 20000)), asking("3")}
	embedded, _ := secretCalls(t, true, bodies...)
	bare, log := secretCalls(t, false, bodies...)
	keys := new(tlsrecord.KeyLog)
	keys.Follow(bytes.NewReader(log))
	for name, tc := range map[string]struct {
		file []byte
		keys *tlsrecord.KeyLog
	}{"embedded": {embedded, nil}, "beside": {bare, keys}} {
		for _, in := range []io.Reader{bytes.NewReader(tc.file), bytes.NewBuffer(bytes.Clone(tc.file))} {
			r, err := capture.Decode(t.Context(), in, capture.DecodeConfig{Keys: tc.keys})
			require.NoError(t, err, name)
			require.Len(t, r.Messages, 2*len(bodies), name)
			for i, m := range r.Messages {
				want := bodies[i/2]
				if i%2 == 1 {
					want = strings.ReplaceAll(want, "ask", "tell")
				}
				assert.True(t, string(m.Body) == want, "%s: message %d", name, i)
				assert.Equal(t, i/2+1, m.Number, name)
				assert.Equal(t, i%2 == 1, m.Reply, name)
				assert.False(t, m.First.IsZero(), name)
				assert.Positive(t, m.Packet, name)
			}
			assert.Equal(t, 1, r.Decrypted, name)
			assert.Empty(t, r.Others, name)
			assert.False(t, r.Partial(), name)
		}
	}
	r, err := capture.Decode(t.Context(), bytes.NewReader(bare), capture.DecodeConfig{})
	require.NoError(t, err)
	assert.Empty(t, r.Messages)
	assert.Equal(t, map[string]int{capture.OtherKeyless: 1}, r.Others)
	assert.Zero(t, r.Decrypted)
}

// secretStream carries the bytes of both directions of a recorded stream over TLS, and returns the
// recording of that from below TLS, and its keys.
func secretStream(t testing.TB, r *recorded) (file []byte, keys *tlsrecord.KeyLog) {
	t.Helper()
	ca := shared.NewAuthority(t)
	var out, log bytes.Buffer
	rec := pcapng.NewRecorder(&out, time.Now)
	runs := runsOf(t, r.file, r.server)
	require.Len(t, runs, 2)
	asked, told := runs[0].octets, runs[1].octets
	near, far := net.Pipe()
	client := tls.Client(rec.Conn(near), &tls.Config{RootCAs: ca.Pool(), ServerName: "127.0.0.1", KeyLogWriter: &log})
	server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{ca.Issue(time.Hour, "127.0.0.1")}})
	done := make(chan error, 1)
	go func() {
		_, err := io.CopyN(io.Discard, server, int64(len(asked)))
		if err == nil {
			_, err = server.Write(told)
		}
		done <- err
	}()
	for at := 0; at < len(asked); at += 3000 {
		_, err := client.Write(asked[at:min(at+3000, len(asked))])
		require.NoError(t, err)
	}
	_, err := io.CopyN(io.Discard, client, int64(len(told)))
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.NoError(t, near.Close())
	require.NoError(t, far.Close())
	require.NoError(t, rec.Close())
	keys = new(tlsrecord.KeyLog)
	keys.Add(log.Bytes())
	return out.Bytes(), keys
}

// TestSecureStream: an hhfr stream in TLS is decoded as it is without; and with any packet missing
// what is decoded is right, and most is, behind the next sync.
func TestSecureStream(t *testing.T) {
	r := record(t, mixed(t), 4<<10)
	file, keys := secretStream(t, r)
	decodeSecret := func(file []byte) *capture.Result {
		cfg := capture.DecodeConfig{Keys: keys, Store: r.server}
		got, err := capture.Decode(t.Context(), bytes.NewReader(file), cfg)
		require.NoError(t, err)
		assert.Equal(t, 1, got.Decrypted)
		require.Len(t, got.Streams, 1)
		return got
	}
	plain, whole := decode(t, r.file, r.server), decodeSecret(file)
	assert.Equal(t, plain.Counts().Verified, whole.Counts().Verified)
	assert.False(t, whole.Partial())
	sent := map[string]bool{}
	for _, m := range r.messages {
		sent[string(m)] = true
	}
	packets := packetEnds(t, file)
	for missing := 12; missing < len(packets)-4; missing += max(1, len(packets)/shared.Some(40)) {
		if len(packets[missing].raw) <= 60 {
			continue // no data
		}
		var lost bytes.Buffer
		writeEvery(t, &lost, packets, func(n int) bool { return n != missing })
		part := decodeSecret(lost.Bytes())
		assert.True(t, part.Partial(), "packet %d", missing)
		right := 0
		for _, m := range part.Messages {
			if m.HHFR && m.Whole() {
				require.True(t, sent[string(m.Body)], "packet %d: message %d was never sent", missing, m.Number)
				right++
			}
		}
		assert.Greater(t, right, whole.Counts().Verified*2/3, "packet %d of %d", missing, len(packets))
	}
}
