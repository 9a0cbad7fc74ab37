package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hhfr/hhfr/internal/session"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/replay"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// turned is a service that echoes the body, with one value of one message changed.
type turned struct{ from, to string }

// ServeHTTP implements [http.Handler].
func (s turned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if s.from != "" {
		body = []byte(strings.Replace(string(body), s.from, s.to, 1))
	}
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	_, _ = w.Write(body)
}

func newStore(t testing.TB) ctxstore.Store {
	s := memory.New(memory.Config{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func start(t testing.TB, service turned) *peer.Server {
	services, err := peer.NewServices(peer.Service{Path: peer.EchoPath, Handler: service})
	require.NoError(t, err)
	listen := func() net.Listener {
		l, err := tcp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
		require.NoError(t, err)
		return l
	}
	store := newStore(t)
	s, err := peer.Start(
		peer.Config{HTTP: listen(), Streams: map[string]net.Listener{"tcp": listen()}, Services: services, Store: store,
			Coders: coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))},
	)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func dial(t testing.TB, to string, hhfr bool, rec *pcapng.Recorder) *session.Session {
	store := newStore(t)
	transport := &http.Transport{DisableCompression: true}
	cfg := session.Config{
		HTTPClient: &http.Client{Transport: transport},
		Store:      store,
		Coders:     coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store})),
	}
	cfg.Transports, cfg.RequireHHFR = map[string]streamer.Transport{}, hhfr
	if hhfr {
		cfg.Transports["tcp"] = tcp.Transport{}
	}
	if rec != nil {
		transport.DialContext = rec.DialContext((&net.Dialer{}).DialContext)
		cfg.WrapConn = func(c net.Conn) net.Conn { return rec.Conn(c) }
		cfg.OnSession = func(f negotiate.Facts, c net.Conn) {
			b, err := json.Marshal(f)
			require.NoError(t, err)
			require.NoError(t, c.(*pcapng.RecordedConn).Comment(string(b)))
		}
	}
	s, err := session.Dial(t.Context(), to, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = s.Close()
		transport.CloseIdleConnections()
	})
	return s
}

// record sends the messages of testdata to an echo and returns the recording.
func record(t testing.TB, hhfr bool) (recording []byte, n int) {
	var out bytes.Buffer
	rec := pcapng.NewRecorder(&out, nil)
	s := dial(t, start(t, turned{}).URL("/echo"), hhfr, rec)
	messages := func(yield func(sender.MessageToSend, error) bool) {
		isXML := func(p string) bool { return strings.HasSuffix(p, ".xml") }
		for _, path := range shared.Files(t, shared.Testdata(t, "soap"), isXML) {
			body := shared.Read(t, path)
			head, err := sender.RequestHead("/echo", body, "urn:a", []string{"X-Trace: 1"})
			if !yield(sender.MessageToSend{Head: head, Body: body}, err) {
				return
			}
		}
	}
	for in := range sender.Send(t.Context(), s, messages, 1) {
		require.NoError(t, in.Err)
		n++
	}
	require.NoError(t, s.Close())
	require.NoError(t, rec.Close())
	return out.Bytes(), n
}

func TestReplay(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		recording, n := record(t, recorded)
		for _, as := range []bool{true, false} {
			for _, tt := range []struct {
				service turned
				want    []string
			}{
				{turned{}, nil},
				{turned{"<SerialNumber>HG26031400417<", "<SerialNumber>HG26031400418<"}, []string{"Inform"}},
			} {
				t.Run(
					fmt.Sprintf("recorded hhfr %t, as hhfr %t, %q", recorded, as, tt.service.from),
					func(t *testing.T) {
						rec, err := replay.Load(t.Context(), bytes.NewReader(recording), nil)
						require.NoError(t, err)
						assert.Len(t, rec.Exchanges, n)
						assert.Zero(t, rec.Skipped)
						server := start(t, tt.service)
						to, err := url.Parse(server.URL("/echo"))
						require.NoError(t, err)
						require.NoError(t, rec.Target(to))
						var changed []string
						count := 0
						cfg := replay.RunConfig{InFlight: 4}
						for r := range rec.Run(t.Context(), dial(t, to.String(), as, nil), cfg) {
							require.NoError(t, r.Err)
							assert.True(t, r.Exchange.Answered)
							if count++; r.Difference != nil {
								changed = append(changed, r.Exchange.Operation)
							}
						}
						assert.Equal(t, n, count)
						assert.Equal(t, tt.want, changed)
					},
				)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	long := strings.Repeat("x", 100)
	const fault = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>` +
		`<faultcode>s:Server</faultcode><faultstring>out of order</faultstring></s:Fault></s:Body></s:Envelope>`
	for _, tt := range []struct {
		was, is   string
		wasS, isS int
		want      *replay.Difference
	}{
		{"a", "a", 200, 200, nil},
		{"", "", 204, 204, nil},
		{
			"a", "a", 200, 500,
			&replay.Difference{What: "status", Recorded: "200", Now: "500", RecordedOctets: 1, NowOctets: 1},
		},
		{
			"a", fault, 200, 500,
			&replay.Difference{What: "status", Recorded: "200", Now: "500", NowFault: "Server: out of order",
				RecordedOctets: 1, NowOctets: len(fault)},
		},
		{
			"<a>1</a>", "<a>2</a>", 200, 200,
			&replay.Difference{What: "body", Offset: 3, Recorded: `"<a>1</a>"`, Now: `"<a>2</a>"`,
				RecordedOctets: 8, NowOctets: 8},
		},
		{"a", "", 200, 200, &replay.Difference{What: "body", Recorded: `"a"`, Now: `""`, RecordedOctets: 1}},
		{
			long + "1" + long, long, 200, 200,
			&replay.Difference{What: "body", Offset: 100, Recorded: "…\"" + long[:32] + "1" + long[:31] + "\"…",
				Now: "…\"" + long[:32] + "\"", RecordedOctets: 201, NowOctets: 100},
		},
	} {
		assert.Equal(t, tt.want, replay.Compare(tt.wasS, []byte(tt.was), tt.isS, []byte(tt.is)))
	}
}
