package capture_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hhfr/hhfr/internal/session"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/workload"
)

// recorded is a session with the echo service, recorded at the client's end.
type recorded struct {
	file     []byte
	messages [][]byte // in sending order
	server   ctxstore.Store
}

func codersOf(s ctxstore.Store) coders.Func {
	return coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: s}))
}

// record sends messages one after the other over a negotiated stream, in a session with unchanging
// headers if there are any. Client and server have stores of their own.
func record(t testing.TB, messages [][]byte, sync int64, headers ...string) *recorded {
	t.Helper()
	services, err := peer.NewServices(peer.Echo())
	require.NoError(t, err)
	var lc net.ListenConfig
	plain, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	streams, err := tcp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	r := &recorded{messages: messages, server: memory.New(memory.Config{})}
	stream := streamer.Config{SyncBytes: sync}
	server, err := peer.Start(
		peer.Config{
			HTTP:     plain,
			Streams:  map[string]net.Listener{"tcp": streams},
			Services: services,
			Store:    r.server,
			Coders:   codersOf(r.server),
			Stream:   stream,
		},
	)
	require.NoError(t, err)
	var file bytes.Buffer
	rec := pcapng.NewRecorder(&file, time.Now)
	client := memory.New(memory.Config{})
	transport := &http.Transport{DialContext: rec.DialContext((&net.Dialer{}).DialContext)}
	sess, err := session.Dial(t.Context(), server.URL(peer.EchoPath), session.Config{
		HTTPClient: &http.Client{
			Transport: transport,
		}, Transports: map[string]streamer.Transport{"tcp": tcp.Transport{}}, Store: client,
		Coders: codersOf(client), RequireHHFR: true, Headers: headers,
		Stream: stream, WrapConn: func(c net.Conn) net.Conn { return rec.Conn(c) },
	})
	require.NoError(t, err)
	n := 0
	for in := range sender.Send(t.Context(), sess, func(yield func(sender.MessageToSend, error) bool) {
		for _, m := range messages {
			if !yield(sender.MessageToSend{Body: m}, nil) {
				return
			}
		}
	}, 8) {
		require.NoError(t, in.Err)
		require.True(t, bytes.Equal(messages[n], in.Body))
		n++
	}
	require.Equal(t, len(messages), n)
	require.NoError(t, sess.Close())
	transport.CloseIdleConnections()
	require.NoError(t, server.Close())
	require.NoError(t, rec.Close())
	r.file = file.Bytes()
	return r
}

// mixed are messages of all kinds: workloads, the messages of testdata, text that is not XML, empty
// messages.
func mixed(t testing.TB) (list [][]byte) {
	take := func(n int, messages func(yield func([]byte) bool)) {
		for m := range messages {
			list = append(list, bytes.Clone(m))
			if n--; n == 0 {
				return
			}
		}
	}
	take(20, workload.Floats(1, 10))
	take(10, workload.Records(2, 20))
	take(3, workload.Records(3, 500))
	take(10, workload.Headers(4))
	isXML := func(p string) bool { return filepath.Ext(p) == ".xml" }
	for _, path := range shared.Files(t, shared.Testdata(t, "soap"), isXML) {
		list = append(list, shared.Read(t, path), shared.Read(t, path))
	}
	noise := make([]byte, 80000) // which cannot be compressed, so that the recording has many packets
	rnd := rand.New(rand.NewPCG(6, 7))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	list = append(
		list,
		[]byte("no XML at all"),
		nil,
		[]byte("<a><b></a>"),
		bytes.Repeat([]byte("0123456789abcdef"), 5000),
		noise,
	)
	take(20, workload.Floats(5, 10))
	return list
}

// corpus are the messages of the shared folder.
func corpus(t testing.TB) (list [][]byte) {
	for _, path := range shared.SomeMessages(t) {
		list = append(list, shared.Read(t, path))
	}
	return list
}

func copyStore(t testing.TB, from ctxstore.Store) ctxstore.Store {
	to := memory.New(memory.Config{})
	for info, err := range from.List(context.Background(), "") {
		require.NoError(t, err)
		e, err := from.Get(context.Background(), info.URI)
		require.NoError(t, err)
		_, err = to.Put(context.Background(), info.URI, e.Value, ctxstore.PutOptions{})
		require.NoError(t, err)
	}
	return to
}

func readDir(t testing.TB, dir string) map[string][]byte {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	files := map[string][]byte{}
	for _, e := range entries {
		files[e.Name()] = shared.Read(t, filepath.Join(dir, e.Name()))
	}
	return files
}

func requireSaved(t testing.TB, dir string, messages [][]byte) {
	t.Helper()
	files := readDir(t, dir)
	for i, m := range messages {
		for _, kind := range []string{"request", "reply"} {
			name := fmt.Sprintf("%06d-%s.xml", i+1, kind)
			got, there := files[name]
			require.True(t, there, name)
			require.True(t, bytes.Equal(m, got), "%s: %d bytes, not %d", name, len(got), len(m))
		}
	}
}
