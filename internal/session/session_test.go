package session_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func TestSessionOverStream(t *testing.T) {
	var told []negotiate.Facts
	s := startServices(t, func(c *responder.Config) {
		c.OnSession = func(f negotiate.Facts, _ net.Conn) { told = append(told, f) }
	})
	cfg := config(t)
	var initiator negotiate.Facts
	cfg.OnSession = func(f negotiate.Facts, _ net.Conn) { initiator = f }
	sess := dial(t, s.http.URL+"/a/b", cfg)

	agreed := sess.Agreed()
	require.True(t, agreed.HHFR, agreed.Why)
	require.NotNil(t, agreed.Facts)
	assert.Equal(t, *agreed.Facts, initiator)
	assert.Equal(t, negotiate.RepresentationURI("binary"), initiator.Representation)
	assert.Equal(t, s.http.URL, initiator.Origin)
	assert.Equal(t, "/a/b", initiator.Path)
	require.Len(t, told, 1)
	assert.Equal(t, initiator.Session, told[0].Session)
	assert.Equal(t, initiator.Path, told[0].Path)

	head, body := call(t, sess, "", "one")
	assert.Empty(t, head)
	assert.Equal(t, "one", body)
	// The default head, written out, counts as no head; framing fields do not belong to the stream.
	call(
		t,
		sess,
		crlf(
			"POST /a/b HTTP/1.1\nContent-Length: 3\nContent-Type: text/xml; charset=utf-8\nSOAPAction: "+
				"\"\"\nHost: x\n\n",
		),
		"two",
	)
	call(t, sess, crlf("POST /other%20place?q HTTP/1.1\nhost: x\nsoapaction: urn:x\n\n"), "three")
	posted, err := sess.Post(t.Context(), streamer.NewMessage(nil, []byte("four")))
	require.NoError(t, err)
	require.NoError(t, posted.Err())
	call(t, sess, "", "five")
	got := s.atLeast(5)
	require.Len(t, got, 5)
	assert.Equal(t, []seen{
		{"stream", "/a/b", "", "one"}, {"stream", "/a/b", "", "two"},
		{"stream", "/other place", crlf("POST /other%20place?q HTTP/1.1\nsoapaction: urn:x\n\n"), "three"},
	}, got[:3])
	assert.ElementsMatch(t, []seen{{"stream", "/a/b", "", "four"}, {"stream", "/a/b", "", "five"}}, got[3:])
	_, err = sess.Call(t.Context(), streamer.NewMessage([]byte("no head"), nil))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed})

	for _, store := range []ctxstore.Store{cfg.Store, s.store} {
		entry, err := store.Get(t.Context(), initiator.Session.URI())
		require.NoError(t, err)
		facts, err := negotiate.ParseFacts(entry.Value)
		require.NoError(t, err)
		assert.Equal(t, initiator.Session, facts.Session)
		assert.Equal(t, initiator.Scheme, facts.Scheme)
	}
	require.NoError(t, sess.Close())
	require.NoError(t, sess.Close())
	_, err = sess.Call(t.Context(), streamer.NewMessage(nil, nil))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Closed})
}

// Query and credentials of the URL go with every message, by either path, and are stored nowhere.
func TestSecretsOfTheURL(t *testing.T) {
	s := startServices(t, nil)
	cfg := config(t)
	sess := dial(t, strings.Replace(s.http.URL, "://", "://user:hidden@", 1)+"/p?key=secret", cfg)
	require.True(t, sess.Agreed().HHFR)
	call(t, sess, "", "one")
	for _, store := range []ctxstore.Store{cfg.Store, s.store} {
		all := stored(t, store)
		assert.Contains(t, all, "/p")
		assert.NotContains(t, all, "secret")
		assert.NotContains(t, all, "hidden")
	}
	require.NoError(t, s.Close())
	<-sess.Stream().Done()
	call(t, sess, "", "two")
	s.http.Close()
	cfg.HTTPClient.CloseIdleConnections()
	_, err := sess.Call(t.Context(), streamer.NewMessage(nil, nil))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
	assert.NotContains(t, err.Error(), "secret")
	assert.Equal(t, []seen{
		{
			"stream",
			"/p",
			crlf(
				"POST /p?key=secret HTTP/1.1\nContent-Type: text/xml; charset=utf-8\nSOAPAction: " +
					"\"\"\nAuthorization: Basic dXNlcjpoaWRkZW4=\n\n",
			),
			"one",
		},
		{"http", "/p", `POST /p?key=secret "" Basic dXNlcjpoaWRkZW4=`, "two"},
	}, s.got())
}

func TestWithSharedShapes(t *testing.T) {
	specs := make(chan coders.Spec, 2)
	coders := func(_ context.Context, spec coders.Spec) (streamer.Coder, error) {
		specs <- spec
		return textCoder(), nil
	}
	s := startServices(t, func(c *responder.Config) { c.Coders = coders })
	cfg := config(t)
	cfg.Coders = coders
	both, err := ctxstore.Shapes{Store: s.store}.Put(t.Context(), []byte("both"))
	require.NoError(t, err)
	_, err = ctxstore.Shapes{Store: cfg.Store}.Put(t.Context(), []byte("both"))
	require.NoError(t, err)
	mine, err := ctxstore.Shapes{Store: cfg.Store}.Put(t.Context(), []byte("mine"))
	require.NoError(t, err)
	_, err = ctxstore.Shapes{Store: s.store}.Put(t.Context(), []byte("theirs"))
	require.NoError(t, err)
	cfg.Shapes = [][32]byte{both, mine}
	sess := dial(t, s.http.URL, cfg)
	require.True(t, sess.Agreed().HHFR)
	first, second := <-specs, <-specs
	assert.Equal(t, [][32]byte{both}, first.PeerKnows)
	assert.ElementsMatch(t, [][32]byte{both, mine}, second.PeerKnows)
}

func TestResponderIsAskedOnlyByOffers(t *testing.T) {
	s := startServices(t, func(c *responder.Config) { c.Serves = func(path string) bool { return path == "/svc" } })
	offer := string(offerMessage(t, soap.V11))
	post := func(method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.http.URL+path, bytes.NewReader([]byte(body)))
		require.NoError(t, err)
		resp, err := s.http.Client().Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(data)
	}
	long := envelope("<a>" + string(bytes.Repeat([]byte("x"), 100_000)) + "</a>")
	for _, body := range []string{"", "x", envelope(""), envelope("<a/>"), long, offer[:120]} {
		_, got := post(http.MethodPost, "/svc", body)
		assert.Equal(t, body, got)
	}
	_, got := post(http.MethodPut, "/svc", offer)
	assert.Equal(t, offer, got)
	_, got = post(http.MethodPost, "/elsewhere", offer)
	assert.Equal(t, offer, got)

	status, got := post(http.MethodPost, "/svc", offer)
	assert.Equal(t, 200, status)
	_, err := negotiate.ParseAnswer([]byte(got))
	require.NoError(t, err)
	status, got = post(http.MethodPost, "/svc", string(offerMessage(t, soap.V12)))
	assert.Equal(t, 200, status)
	assert.Equal(t, soap.V12, soap.Recognize([]byte(got)).Version)

	for name, in := range map[string]string{
		"Client": string(bytes.Replace([]byte(offer), []byte("<n:Lifetime>3600"), []byte("<n:Lifetime>x"), 1)),
		"Server": string(bytes.Replace([]byte(offer), []byte("transport:tcp"), []byte("transport:owl"), 1)),
		"MustUnderstand": string(bytes.Replace([]byte(offer), []byte("<soap:Body>"),
			[]byte(`<soap:Header><h soap:mustUnderstand="1"/></soap:Header><soap:Body>`), 1)),
	} {
		status, got := post(http.MethodPost, "/svc", in)
		assert.Equal(t, 500, status, name)
		e, err := soap.Parse([]byte(got), soap.Limits{})
		require.NoError(t, err)
		_, ok := e.Fault()
		require.True(t, ok)
		assert.Contains(t, got, "soap:"+name)
	}
	status, got = post(http.MethodPost, "/svc", offer+string(bytes.Repeat([]byte(" "), negotiate.MaxOffer)))
	assert.Equal(t, 500, status)
	assert.True(t, soap.Recognize([]byte(got)).Fault)
}

// Contexts of ended sessions stay for a while, but their number is bounded; those with headers that
// were agreed on take more of the space.
func TestEndedSessionsAreBounded(t *testing.T) {
	for kept, headers := range map[int][]string{4: nil, 1: {`<a xmlns="urn:x">` + strings.Repeat("x", 1500) + `</a>`}} {
		clock := newLater()
		s := startServices(t, func(c *responder.Config) { c.MaxSessions, c.Clock = 1, clock })
		cfg := config(t)
		cfg.RememberFor, cfg.Headers = -1, headers
		for range 7 {
			// The slot of the session before is free only once the responder has seen its end; a
			// session agreed on but not joined by then keeps its own for a while.
			require.Eventually(t, func() bool {
				sess := dial(t, s.http.URL, cfg)
				require.NoError(t, sess.Close())
				if !sess.Agreed().HHFR {
					clock.forward(2 * responder.DefaultJoinWithin)
				}
				return sess.Agreed().HHFR
			}, time.Minute, 10*time.Millisecond)
		}
		require.NoError(t, s.Close())
		// One that was agreed on and not joined may be there besides those that ended.
		assert.Contains(t, []int{kept, kept + 1}, strings.Count(stored(t, s.store), "<n:Session>"))
	}
}

// Only the owner of the token of a waiting session gets a stream, and only once.
func TestJoin(t *testing.T) {
	clock := newLater()
	s := startServices(t, func(c *responder.Config) { c.Clock = clock })
	answered := func() *negotiate.Answer {
		resp, err := s.http.Client().Post(s.http.URL, "text/xml", bytes.NewReader(offerMessage(t, soap.V11)))
		require.NoError(t, err)
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		a, err := negotiate.ParseAnswer(data)
		require.NoError(t, err)
		return a
	}
	join := func(a *negotiate.Answer, representation uint64) error {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.stream.Addr().String())
		require.NoError(t, err)
		stream, err := streamer.Over(t.Context(), conn, streamer.Config{
			Initiator:      true,
			Session:        a.Session,
			Token:          a.Token[:],
			Representation: representation,
			Coder:          textCoder(),
		})
		if err == nil {
			require.NoError(t, stream.Close())
		}
		return err
	}
	unknown := &streamer.Error{Code: streamer.UnknownSession}
	a := answered()
	assert.NotContains(t, stored(t, s.store), hex.EncodeToString(a.Token[:]), "the token itself is not stored")
	assert.Contains(t, stored(t, s.store), "TokenHash")

	wrong := *a
	wrong.Token[15] ^= 1
	require.ErrorIs(t, join(&wrong, 1), unknown)
	wrong = *a
	wrong.Session[0] ^= 1
	require.ErrorIs(t, join(&wrong, 1), unknown)
	require.ErrorIs(t, join(a, 2), &streamer.Error{Code: streamer.Unsupported})
	require.NoError(t, join(a, 1))
	require.ErrorIs(t, join(a, 1), unknown, "second time")

	late := answered()
	clock.forward(2 * time.Hour)
	require.ErrorIs(t, join(late, 1), unknown, "expired")

	race := answered()
	var won atomic.Int32
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if join(race, 1) == nil {
				won.Add(1)
			}
		})
	}
	wait.Wait()
	assert.EqualValues(t, 1, won.Load())
}

// A call that was written and not answered is reported and not repeated; what comes after goes as
// plain SOAP.
func TestFateUnknown(t *testing.T) {
	reached := make(chan struct{})
	s := startServices(t, func(c *responder.Config) {
		c.Serve = func(ctx context.Context, _ string, x *streamer.Exchange) {
			_, _ = x.Message().ReadAll(1 << 20)
			reached <- struct{}{}
			<-ctx.Done()
		}
	})
	cfg := config(t)
	conns := make(chan net.Conn, 1)
	cfg.OnSession = func(_ negotiate.Facts, c net.Conn) { conns <- c }
	sess := dial(t, s.http.URL+"/x", cfg)
	require.True(t, sess.Agreed().HHFR)
	failed := make(chan error)
	go func() {
		_, err := sess.Call(context.Background(), streamer.NewMessage(nil, []byte("once")))
		failed <- err
	}()
	<-reached
	require.NoError(t, (<-conns).Close())
	require.ErrorIs(t, <-failed, &negotiate.Error{Code: negotiate.FateUnknown})
	<-sess.Stream().Done()
	_, body := call(t, sess, "", "twice")
	assert.Equal(t, "twice", body)
	assert.Equal(t, []seen{{"http", "/x", `POST /x "" `, "twice"}}, s.got())
	assert.Contains(t, sess.Agreed().Why, "the stream ended")
	assert.True(t, sess.Agreed().HHFR)
}

func TestStreamEndsPlainGoesOn(t *testing.T) {
	s := startServices(t, nil)
	cfg := config(t)
	sess := dial(t, s.http.URL+"/x", cfg)
	call(t, sess, "", "one")
	require.NoError(t, s.Close())
	<-sess.Stream().Done()
	call(t, sess, "", "two")
	file := filepath.Join(t.TempDir(), "three")
	require.NoError(t, os.WriteFile(file, []byte("three"), 0o600))
	body, err := os.Open(file)
	require.NoError(t, err)
	reply, err := sess.Call(t.Context(), &streamer.Message{Body: body})
	require.NoError(t, err)
	data, err := reply.ReadAll(1 << 20)
	require.NoError(t, err)
	assert.Equal(t, "three", string(data))
	require.NoError(t, sess.Send(t.Context(), streamer.NewMessage(nil, []byte("four"))))
	var ways []string
	for _, g := range s.got() {
		ways = append(ways, g.way+" "+g.body)
	}
	assert.Equal(t, []string{"stream one", "http two", "http three", "http four"}, ways)
}

func TestRequireHHFRNeverTurnsPlain(t *testing.T) {
	s := startServices(t, nil)
	cfg := config(t)
	cfg.RequireHHFR = true
	sess := dial(t, s.http.URL, cfg)
	require.NoError(t, s.Close())
	<-sess.Stream().Done()
	_, err := sess.Call(t.Context(), streamer.NewMessage(nil, []byte("x")))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.NoHHFR})
	assert.Empty(t, s.got())
}

// Exchanges that the responder begins are served at the initiator.
func TestResponderBegins(t *testing.T) {
	streams := make(chan *streamer.Stream, 1)
	s := startServices(t, func(c *responder.Config) {
		c.OnStream = func(_ negotiate.Facts, st *streamer.Stream) { streams <- st }
	})
	cfg := config(t)
	cfg.Handler = func(ctx context.Context, x *streamer.Exchange) { _ = x.Reply(ctx, x.Message()) }
	dial(t, s.http.URL, cfg)
	stream := <-streams
	for i := range 16 {
		reply, err := stream.Lane(0).Call(t.Context(), streamer.NewMessage(nil, fmt.Append(nil, i)))
		require.NoError(t, err)
		data, err := reply.ReadAll(100)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(i), string(data))
	}
}

func TestPrivacyOfHTTPS(t *testing.T) {
	s := startServices(t, nil)
	tls := httptest.NewTLSServer(s.Handler(http.NotFoundHandler()))
	defer tls.Close()
	cfg := config(t)
	cfg.HTTPClient = tls.Client()
	sess := dial(t, tls.URL, cfg)
	assert.False(t, sess.Agreed().HHFR)
	assert.Contains(t, sess.Agreed().Why, "no transport that may be offered is encrypted")
	cfg.AllowCleartext = true
	assert.True(t, dial(t, tls.URL, cfg).Agreed().HHFR)
}

// TestStoresThatForgetShapes: stores of both ends have space for the session and a shape or two.
// The stream continues, with all kinds of messages.
func TestStoresThatForgetShapes(t *testing.T) {
	small := func() ctxstore.Store {
		store := memory.New(memory.Config{MaxBytes: 5 << 10})
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	coders := func(store ctxstore.Store) coders.Func {
		return coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))
	}
	limits := streamer.Config{SyncMessages: 5, Limits: streamer.Limits{MaxShapes: 16, MaxShapeBytes: 64 << 10}}
	s := startServices(t,
		func(c *responder.Config) { c.Store = small(); c.Coders = coders(c.Store); c.Stream = limits })
	cfg := config(t)
	cfg.Store, cfg.RequireHHFR, cfg.Stream = small(), true, limits
	cfg.Coders = coders(cfg.Store)
	sess := dial(t, s.http.URL+"/svc", cfg)
	first := sess.Stream()
	for range 3 {
		for kind := range 60 {
			m := envelope(fmt.Sprintf(`<k%d xmlns="urn:kinds">%s</k%d>`, kind, strings.Repeat("<v>1</v>", kind%5),
				kind))
			_, got := call(t, sess, "", m)
			require.Equal(t, m, got)
		}
	}
	assert.Same(t, first, sess.Stream())
	require.NoError(t, first.Err())
}
