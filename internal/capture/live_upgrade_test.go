package capture_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func newCoder() streamer.Coder {
	return binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(binary.Options{Without: wire.Zstd})
}

// contact is a connection of two ends that do not share a store, recorded at the client's end.
func contact(t *testing.T, client func(net.Conn), server func(net.Conn)) []byte {
	t.Helper()
	here, there := inproc.Pipe(1 << 20)
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, time.Now)
	done := make(chan struct{})
	go func() { defer close(done); server(there) }()
	client(rec.Conn(here))
	<-done
	require.NoError(t, rec.Close())
	return file.Bytes()
}

func echo(ctx context.Context, x *streamer.Exchange) {
	if body, err := x.Message().ReadAll(1 << 20); err == nil {
		_ = x.Reply(ctx, streamer.NewMessage(nil, body))
	}
}

// admitted returns a responder's configuration.
func admitted(ctx context.Context, _ frame.Hello) (streamer.Admission, error) {
	token := []byte("the next token 1")
	return streamer.Admission{Coder: newCoder(), Handler: echo, Token: token, Lifetime: time.Hour}, nil
}

func call(t *testing.T, s *streamer.Stream, body []byte) {
	t.Helper()
	reply, err := s.Lane(0).Call(t.Context(), streamer.NewMessage(nil, body))
	require.NoError(t, err)
	got, err := reply.ReadAll(1 << 20)
	require.NoError(t, err)
	require.Equal(t, string(body), string(got))
}

// upgradedLive is a connection that both ends upgrade after so many plain exchanges: each message
// is sent, and comes back.
func upgradedLive(t *testing.T, plain int, messages [][]byte) []byte {
	return contact(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for i, body := range messages[:plain+1] {
			fields := ""
			if i == plain {
				fields = asksUpgrade
			}
			_, err := io.WriteString(c, posted(fields, string(body)))
			assert.NoError(t, err)
			if i < plain {
				r, err := http.ReadResponse(in, nil)
				require.NoError(t, err)
				_, err = io.Copy(io.Discard, r.Body)
				assert.NoError(t, err)
			}
		}
		_, err := io.ReadFull(c, make([]byte, len(agreesUpgrade)))
		assert.NoError(t, err)
		s, p, err := streamer.DialUpgraded(t.Context(), c, streamer.Config{Coder: newCoder(), SyncBytes: 1024}, true)
		require.NoError(t, err)
		m, err := p.Reply(t.Context())
		require.NoError(t, err)
		got, err := m.ReadAll(1 << 20)
		require.NoError(t, err)
		assert.Equal(t, string(messages[plain]), string(got))
		for _, body := range messages[plain+1:] {
			call(t, s, body)
		}
		assert.NoError(t, s.Close())
	}, func(c net.Conn) {
		in := bufio.NewReader(c)
		for i, body := range messages[:plain+1] {
			r, err := http.ReadRequest(in)
			if !assert.NoError(t, err) {
				return
			}
			_, err = io.Copy(io.Discard, r.Body)
			assert.NoError(t, err)
			if i < plain {
				_, err = io.WriteString(c, answered(string(body)))
			}
			assert.NoError(t, err)
		}
		a, _ := admitted(t.Context(), frame.Hello{})
		cfg := streamer.Config{Session: [16]byte{5}, SyncBytes: 1024}
		s, err := streamer.AcceptUpgraded(t.Context(), c, cfg, []byte(agreesUpgrade), a,
			a.Coder.Stages(), &streamer.Message{}, func(ctx context.Context, x *streamer.Exchange) {
				assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, messages[plain])))
			})
		if assert.NoError(t, err) {
			<-s.Done()
		}
	})
}

// A recording of an upgraded connection, made once.
func TestUpgradedInTheTree(t *testing.T) {
	name := shared.Testdata(t, "pcap", "upgraded.pcapng")
	if *update {
		require.NoError(t, os.WriteFile(name, upgradedLive(t, 0, tree(t)), 0o644))
	}
	r := decode(t, shared.Read(t, name), nil)
	assert.False(t, r.Partial())
	all := 2 * len(tree(t))
	assert.Equal(t, capture.Counts{Messages: all, Verified: all - 1, Unchecked: 1}, r.Counts(),
		"the request that was upgraded")
	dir := t.TempDir()
	save(t, r, dir)
	requireSaved(t, dir, tree(t))
}

// The listing shows what the ends of an upgraded connection do.
func TestUpgradedByLiveEnds(t *testing.T) {
	var messages [][]byte
	for i := range 7 {
		messages = append(messages, body(i+1))
	}
	file := upgradedLive(t, 1, messages)
	r := decode(t, file, nil)
	assert.Equal(t, map[string]int{}, r.Others)
	assert.False(t, r.Partial(), "%+v", r.Streams)
	seen := map[string]string{}
	for _, m := range r.Messages {
		require.Equal(t, string(body(m.Number)), string(m.Body))
		seen[fmt.Sprint(m.Number, m.Reply)] = m.State.String()
	}
	assert.Len(t, seen, 14)
	for k, state := range seen {
		plain := strings.HasPrefix(k, "1 ") || k == "2 false"
		assert.Equal(t, map[bool]string{true: "unchecked", false: "verified"}[plain], state, k)
	}
	require.Len(t, r.Streams, 1)
	assert.Equal(t, capture.Endpoint{Path: "/service"}, r.Streams[0].Service)
}

// A stream without negotiation is with the service that its hello names, unless the store knows its
// session.
func TestFirstContacts(t *testing.T) {
	file := contact(t, func(c net.Conn) {
		early := frame.EarlyLimits
		s, err := streamer.Over(t.Context(), c, streamer.Config{Initiator: true, Session: [16]byte{6},
			Target: "https://example.org:8443/a/b", Early: &early, Representation: frame.Binary, Coder: newCoder()})
		require.NoError(t, err)
		call(t, s, body(1))
		assert.NoError(t, s.Close())
	}, func(c net.Conn) {
		s, err := streamer.Over(t.Context(), c, streamer.Config{Accept: admitted})
		if assert.NoError(t, err) {
			<-s.Done()
		}
	})
	r := decode(t, file, nil)
	assert.Equal(t, 2, r.Counts().Verified)
	require.Len(t, r.Streams, 1)
	assert.Equal(t, capture.Endpoint{Origin: "https://example.org:8443", Path: "/a/b"}, r.Streams[0].Service)

	raw, err := decodeStreams(t, runsOf(t, file, nil), capture.DecodeConfig{})
	require.NoError(t, err)
	assert.Equal(t, r.Streams[0].Service, raw.Streams[0].Service)

	store := memory.New(memory.Config{})
	_, err = store.Put(t.Context(), ctxstore.SessionURI([16]byte{6}), []byte(`<n:Session xmlns:n="urn:hhfr:context:1">
<n:Session>urn:uuid:06000000-0000-0000-0000-000000000000</n:Session><n:Scheme>urn:hhfr:scheme:1</n:Scheme>
<n:Representation>urn:hhfr:representation:binary</n:Representation><n:Transport>urn:hhfr:transport:tcp</n:Transport>
<n:Origin>http://other:80</n:Origin><n:Path>/echo</n:Path><n:Address>:9090</n:Address>
<n:Expires>2099-01-02T03:04:05Z</n:Expires></n:Session>`), ctxstore.PutOptions{})
	require.NoError(t, err)
	stored := decode(t, file, store).Streams[0].Service
	assert.Equal(t, capture.Endpoint{Origin: "http://other:80", Path: "/echo"}, stored, "the store comes first")
}

// Messages to a responder that did not take the session are listed as such; the initiator then
// leaving does not count as missing data.
func TestDeclinedSessions(t *testing.T) {
	x := newTalkOf(t, func(h *frame.Hello) {
		if h.Session = [16]byte{6}; h.Responder {
			h.Representation = 0
		} else {
			h.Token = make([]byte, frame.TokenLen)
		}
	})
	x.message(0, wire.Outgoing{Key: frame.Key{Exchange: 1}}, nil, body(1))
	x.enc[1].Close(frame.CloseUnknownSession, "session or token not accepted")
	x.take(1)
	p := newPackets(t)
	c := p.connect(1000)
	c.carry(x, 1000)
	c.end()
	r := decode(t, p.bytes(), nil)
	require.Len(t, r.Messages, 1)
	assert.Equal(t, capture.Unverified, r.Messages[0].State)
	assert.Equal(t, "refused: the session was not accepted", r.Messages[0].Why)
	require.Len(t, r.Streams, 1)
	why := "second direction, offset 63: closed: unknown session session or token not accepted"
	assert.Equal(t, []string{why}, r.Streams[0].Problems)
	assert.False(t, r.Streams[0].Cut)
}
