package peer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is one made of a function.
func service(path string, serve http.HandlerFunc) peer.Service {
	return peer.Service{Path: path, Handler: serve}
}

// serve has a service answer a message, beside any server.
func serve(t testing.TB, s peer.Service, message []byte) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.Path, bytes.NewReader(message))
	s.Handler.ServeHTTP(w, r)
	return w
}

func newStore(t testing.TB) ctxstore.Store {
	s := memory.New(memory.Config{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func codersOf(store ctxstore.Store) coders.Func {
	return coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))
}

func listen(t testing.TB) net.Listener {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

func start(t testing.TB, services ...peer.Service) *peer.Server {
	return startWith(t, nil, append(services, peer.Echo())...)
}

func startWith(t testing.TB, change func(*peer.Config), services ...peer.Service) *peer.Server {
	list, err := peer.NewServices(services...)
	require.NoError(t, err)
	store := newStore(t)
	cfg := peer.Config{HTTP: listen(t), Services: list, Store: store, Coders: codersOf(store)}
	if change != nil {
		change(&cfg)
	}
	s, err := peer.Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// config is that of a dialer with a store of its own. Without transports it speaks plain SOAP.
func config(t testing.TB, hhfr bool) session.Config {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	t.Cleanup(client.CloseIdleConnections)
	store := newStore(t)
	cfg := session.Config{
		HTTPClient: client,
		Store:      store,
		Coders:     codersOf(store),
		Transports: map[string]streamer.Transport{},
		Timeout:    5 * time.Minute,
	} // a busy machine may be late
	if hhfr {
		cfg.Transports = map[string]streamer.Transport{"tcp": tcp.Transport{}}
		cfg.RequireHHFR = true
	}
	return cfg
}

func dial(t testing.TB, url string, cfg session.Config) *session.Session {
	s, err := session.Dial(t.Context(), url, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func exchange(
	ctx context.Context,
	s *session.Session,
	head string,
	body io.Reader,
) (gotHead, gotBody string, err error) {
	m := &streamer.Message{Body: body}
	if head != "" {
		m.Head = []byte(strings.ReplaceAll(head, "\n", "\r\n"))
	}
	reply, err := s.Call(ctx, m)
	if err != nil {
		return "", "", err
	}
	data, err := reply.ReadAll(1 << 30)
	if c, ok := reply.Body.(io.Closer); ok {
		err = errors.Join(err, c.Close())
	}
	return string(reply.Head), string(data), err
}

// The same calls, by either way, have the same outcome.
func TestServicesByEitherWay(t *testing.T) {
	s := start(t,
		service("/accepted", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }),
		service("/teapot", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-Kind"], w.Header()["Content-Type"] = []string{"a", "b"}, nil
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "short and stout")
		}),
		service("/seen", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = fmt.Fprint(w, r.Method, " ", r.URL.Path, " ", r.URL.RawQuery, " ", r.Host, " ", r.Header["X-Kind"])
		}),
		peer.Ledger(broken{newStore(t)}),
	)
	host := s.Addrs()["http"].String()
	xml := "Content-Type: text/xml; charset=utf-8\n"
	for _, c := range []struct {
		name, head, body   string
		status             int
		contentType, reply string
	}{
		{"default", "", "any <octets> \x00\xff", 200, "text/xml; charset=utf-8", "any <octets> \x00\xff"},
		{"empty", "", "", 200, "text/xml; charset=utf-8", ""},
		{
			"type", "POST /echo HTTP/1.1\nContent-Type: application/soap+xml; action=\"a\"\n\n", "x", 200,
			`application/soap+xml; action="a"`, "x",
		},
		{
			"coding", "POST /echo HTTP/1.1\n" + xml + "Content-Encoding: x-own\n\n", "x", 200,
			"text/xml; charset=utf-8", "x",
		},
		{"no type", "POST /echo HTTP/1.1\nX: y\n\n", "<html>", 200, "", "<html>"},
		{"nobody", "POST /nobody HTTP/1.1\n" + xml + "\n", "x", 404, "text/plain; charset=utf-8", "no service here\n"},
		{"method", "PUT /echo HTTP/1.1\n" + xml + "\n", "x", 405, "text/plain; charset=utf-8", "SOAP is posted here\n"},
		{"accepted", "POST /accepted HTTP/1.1\n" + xml + "\n", "x", 202, "", ""},
		{"teapot", "POST /teapot HTTP/1.1\n" + xml + "\n", "x", 418, "", "short and stout"},
		{
			"seen", "POST /seen?q=1 HTTP/1.1\nX-Kind: a\nX-Kind: b\n\n", "x", 200, "text/plain",
			"POST /seen q=1 " + host + " [a b]",
		},
		{
			"fails", "POST /ledger HTTP/1.1\n" + xml + "\n", addition("a", 1), 500, "text/xml; charset=utf-8", "fault",
		},
	} {
		for _, hhfr := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s hhfr=%v", c.name, hhfr), func(t *testing.T) {
				sess := dial(t, s.URL(peer.EchoPath), config(t, hhfr))
				head, body, err := exchange(t.Context(), sess, c.head, strings.NewReader(c.body))
				require.NoError(t, err)
				if head == "" {
					head = string(negotiate.DefaultReplyHead())
				}
				assert.Contains(t, head, fmt.Sprintf("HTTP/1.1 %d ", c.status))
				if c.contentType != "" {
					assert.Contains(t, head, "\r\nContent-Type: "+c.contentType+"\r\n")
				} else {
					assert.NotContains(t, head, "Content-Type")
				}
				if c.reply == "fault" {
					assert.True(t, soap.Recognize([]byte(body)).Fault)
					assert.Contains(t, body, "the service failed")
					assert.NotContains(t, body, "secret")
					return
				}
				assert.Equal(t, c.reply, body)
			})
		}
	}
}

// broken is a store that does not read.
type broken struct{ ctxstore.Store }

func (broken) Get(context.Context, string) (ctxstore.Entry, error) {
	return ctxstore.Entry{}, errors.New("secret reason")
}

// counting reads as many bytes as it is told, a pattern, and nothing holds them all.
type counting struct{ at, end int64 }

func (c *counting) Read(p []byte) (int, error) {
	if c.at == c.end {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), c.end-c.at))
	for i := range p[:n] {
		p[i] = byte((c.at + int64(i)) * 7 >> 3)
	}
	c.at += int64(n)
	return n, nil
}

// What comes back of a long message begins to arrive while the message is still being sent, by
// either way: nobody waits for the whole.
func TestEchoStreams(t *testing.T) {
	s := start(t)
	for _, hhfr := range []bool{false, true} {
		t.Run(fmt.Sprintf("hhfr=%v", hhfr), func(t *testing.T) {
			sess := dial(t, s.URL(peer.EchoPath), config(t, hhfr))
			const half = 12 << 20 // more than any end looks ahead
			gate := make(chan struct{})
			body := io.MultiReader(&counting{end: half}, waiting(gate), &counting{end: half})
			reply, err := sess.Call(t.Context(), &streamer.Message{Body: body})
			require.NoError(t, err)
			first := make([]byte, 1<<20)
			_, err = io.ReadFull(reply.Body, first)
			require.NoError(t, err)
			close(gate)
			want := io.MultiReader(&counting{end: half}, &counting{end: half})
			same(t, want, io.MultiReader(bytes.NewReader(first), reply.Body))
			require.NoError(t, reply.Body.(io.Closer).Close())
		})
	}
}

// waiting reads as nothing, once the channel is closed.
type waiting chan struct{}

func (w waiting) Read([]byte) (int, error) { <-w; return 0, io.EOF }

func same(t *testing.T, want, got io.Reader) {
	a, b := make([]byte, 1<<16), make([]byte, 1<<16)
	for at := 0; ; {
		n, errA := io.ReadFull(want, a)
		m, errB := io.ReadFull(got, b)
		require.Equal(t, n, m, "after %d octets", at)
		require.True(t, bytes.Equal(a[:n], b[:m]), "within %d octets of %d", n, at)
		at += n
		if errA != nil || errB != nil {
			require.Equal(t, errA, errB)
			return
		}
	}
}

// 64 clients at once, half of them plain: each gets its own replies.
func TestManyClients(t *testing.T) {
	s := start(t)
	var wait sync.WaitGroup
	for client := range 64 {
		cfg := config(t, client%2 == 0)
		wait.Go(func() {
			sess, err := session.Dial(t.Context(), s.URL(peer.EchoPath), cfg)
			if !assert.NoError(t, err) {
				return
			}
			defer sess.Close()
			var calls sync.WaitGroup
			for n := range 8 {
				calls.Go(func() {
					want := fmt.Sprintf(
						`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><who `+
							`client="%d"><call>%d</call></who></s:Body></s:Envelope>`,
						client,
						n,
					)
					_, got, err := exchange(t.Context(), sess, "", strings.NewReader(want))
					assert.NoError(t, err)
					assert.Equal(t, want, got)
				})
			}
			calls.Wait()
		})
	}
	wait.Wait()
}

// Every real message comes back byte for byte, twice in a session.
func TestEchoOfRealMessages(t *testing.T) {
	paths := shared.Messages(t)
	s := start(t)
	sess := dial(t, s.URL(peer.EchoPath), config(t, true))
	for _, path := range paths {
		want := shared.Read(t, path)
		for range 2 {
			_, got, err := exchange(t.Context(), sess, "", bytes.NewReader(want))
			require.NoError(t, err, path)
			assert.True(t, string(want) == got, path)
		}
	}
}

func TestInproc(t *testing.T) {
	list, err := peer.NewServices(peer.Echo())
	require.NoError(t, err)
	transport := new(inproc.Transport)
	streams, err := transport.Listen(t.Context(), "peer")
	require.NoError(t, err)
	store := newStore(t)
	s, err := peer.Start(
		peer.Config{
			HTTP:     listen(t),
			Streams:  map[string]net.Listener{"inproc": streams},
			Services: list,
			Store:    store,
			Coders:   codersOf(store),
		},
	)
	require.NoError(t, err)
	defer s.Close()
	cfg := config(t, true)
	cfg.Transports = map[string]streamer.Transport{"inproc": transport}
	sess := dial(t, s.URL(peer.EchoPath), cfg)
	_, got, err := exchange(t.Context(), sess, "", strings.NewReader("x"))
	require.NoError(t, err)
	assert.Equal(t, "x", got)
	assert.Equal(t, []string{"/echo"}, list.Paths())
	assert.Equal(
		t,
		map[string]net.Addr{"http": s.Addrs()["http"], "tcp": s.Addrs()["http"], "inproc": streams.Addr()},
		s.Addrs(),
	)
}

// Close lets what is under way end.
func TestCloseIsGraceful(t *testing.T) {
	for _, hhfr := range []bool{false, true} {
		t.Run(fmt.Sprintf("hhfr=%v", hhfr), func(t *testing.T) {
			reached, closing := make(chan struct{}), make(chan struct{})
			s := start(t, service("/slow", func(w http.ResponseWriter, _ *http.Request) {
				close(reached)
				<-closing
				_, _ = io.WriteString(w, "done")
			}))
			sess := dial(t, s.URL("/slow"), config(t, hhfr))
			got := make(chan string)
			go func() {
				_, body, err := exchange(context.Background(), sess, "", strings.NewReader("x"))
				got <- fmt.Sprint(body, err)
			}()
			<-reached
			closed := make(chan error)
			go func() { closed <- s.Close() }()
			close(closing)
			assert.Equal(t, "done<nil>", <-got)
			require.NoError(t, <-closed)
			require.NoError(t, s.Close())
			_, err := session.Dial(t.Context(), s.URL("/slow"), config(t, hhfr))
			if hhfr {
				require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
			}
		})
	}
}

func TestBadConfig(t *testing.T) {
	_, err := peer.NewServices(peer.Echo(), peer.Echo())
	require.ErrorIs(t, err, &peer.Error{Code: peer.BadConfig})
	_, err = peer.NewServices(service("x", nil))
	require.ErrorIs(t, err, &peer.Error{Code: peer.BadConfig})
	l := listen(t)
	_, err = peer.Start(peer.Config{HTTP: l})
	require.ErrorIs(t, err, &peer.Error{Code: peer.BadConfig})
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// A listener that fails is reported.
func TestFailed(t *testing.T) {
	list, err := peer.NewServices(peer.Echo())
	require.NoError(t, err)
	store := newStore(t)
	s, err := peer.Start(
		peer.Config{
			HTTP:     listen(t),
			Streams:  map[string]net.Listener{"tcp": failing{listen(t)}},
			Services: list,
			Store:    store,
			Coders:   codersOf(store),
		},
	)
	require.NoError(t, err)
	defer s.Close()
	require.ErrorIs(t, <-s.Failed(), &peer.Error{Code: peer.Failed})
}

type failing struct{ net.Listener }

func (failing) Accept() (net.Conn, error) { return nil, io.ErrUnexpectedEOF }
