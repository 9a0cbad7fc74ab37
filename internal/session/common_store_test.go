package session_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/workload"
)

// commonPair are a service that gets plain SOAP, and an initiator, with a context service that both
// use.
type commonPair struct {
	t              *testing.T
	context        *httptest.Server // the context service
	shared, remote ctxstore.Store   // what it serves; that over the network
	server, client ctxstore.Store   // those of the ends
	url            string
	log            *strings.Builder // of the initiator
	responder      *responder.Handler

	service http.Handler // what is behind the responder; nil: it repeats the request

	mu    sync.Mutex
	got   []string     // what services got
	back  []string     // replies on the link
	wire  atomic.Int64 // bytes of request bodies on the link
	sent  atomic.Int64 // requests on the link
	named atomic.Int64 // requests on the link that name fragments for their replies
	field atomic.Int64 // bytes of that
}

// watchedReply keeps the body of a reply on the link.
type watchedReply struct {
	http.ResponseWriter
	body strings.Builder
}

func (w *watchedReply) Write(p []byte) (int, error) {
	w.body.Write(p)
	return w.ResponseWriter.Write(p)
}

func (w *watchedReply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func newCommonPair(t *testing.T) *commonPair {
	p := &commonPair{t: t, shared: memory.New(memory.Config{}), server: memory.New(memory.Config{}),
		client: memory.New(memory.Config{}), log: &strings.Builder{}}
	service, err := wscontext.New(wscontext.Config{Store: p.shared})
	require.NoError(t, err)
	p.context = httptest.NewServer(service)
	t.Cleanup(p.context.Close)
	p.startResponder(p.server)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.wire.Add(r.ContentLength)
		p.sent.Add(1)
		if field := r.Header.Get(negotiate.FragmentsField); field != "" {
			p.named.Add(1)
			p.field.Add(int64(len(negotiate.FragmentsField + ": " + field + "\r\n")))
		}
		reply := &watchedReply{ResponseWriter: w}
		p.responder.ServeHTTP(reply, r)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.back = append(p.back, reply.body.String())
	}))
	t.Cleanup(front.Close)
	p.url = front.URL + "/echo"
	return p
}

// startResponder makes the responder anew, with a store of its own.
func (p *commonPair) startResponder(own ctxstore.Store) {
	h, err := responder.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(p.t, err)
		assert.EqualValues(p.t, len(body), r.ContentLength)
		p.mu.Lock()
		p.got = append(p.got, string(body))
		p.mu.Unlock()
		if p.service != nil {
			p.service.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = w.Write(body)
	}), responder.Config{Store: own, Common: p.common(nil)})
	require.NoError(p.t, err)
	p.responder = h
	p.t.Cleanup(func() { _ = h.Close() })
}

// common opens the context service.
func (p *commonPair) common(headers []string) *unchanging.CommonStore {
	if p.remote == nil {
		remote, err := wscontext.Open(p.t.Context(), p.context.URL, wscontext.RemoteConfig{})
		require.NoError(p.t, err)
		p.t.Cleanup(func() { _ = remote.Close() })
		p.remote = remote
	}
	c := &unchanging.CommonStore{URL: p.context.URL, Store: p.remote}
	for _, text := range headers {
		name, err := negotiate.ParseHeaderName(text)
		require.NoError(p.t, err)
		c.Headers = append(c.Headers, name)
	}
	return c
}

// dial opens a session of plain SOAP.
func (p *commonPair) dial(headers []string, blocks ...string) *session.Session {
	cfg := config(p.t)
	cfg.Store, cfg.Common, cfg.Headers = p.client, p.common(headers), blocks
	cfg.Transports = map[string]streamer.Transport{}
	cfg.Log = slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return dial(p.t, p.url, cfg)
}

// call sends a message, and checks that service and caller see it as it is.
func (p *commonPair) call(s *session.Session, message []byte) {
	p.t.Helper()
	_, body := call(p.t, s, "", string(message))
	require.Equal(p.t, string(message), body)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Equal(p.t, string(message), p.got[len(p.got)-1])
}

// settled waits until the store has what messages will refer to.
func (p *commonPair) settled(s *session.Session, message []byte) {
	require.Eventually(p.t, func() bool {
		before := s.HeadersTaken()
		p.call(s, message)
		return s.HeadersTaken() > before
	}, 10*time.Second, time.Millisecond)
}

func firstOf(n int, list func(func([]byte) bool)) (messages [][]byte, size int) {
	for m := range list {
		messages, size = append(messages, m), size+len(m)
		if len(messages) == n {
			break
		}
	}
	return messages, size
}

// Messages of which most does not change take at most half their bytes, and arrive as they are.
func TestHalfTheBytesByReference(t *testing.T) {
	p := newCommonPair(t)
	s := p.dial(workload.FixedHeaderNames())
	agreed := s.Agreed()
	assert.Equal(t, negotiate.HTTPTransport, agreed.Facts.Transport)
	messages, size := firstOf(100, workload.FixedHeaders(1))
	before := p.wire.Load()
	for i, m := range messages {
		if i == 1 { // the second one makes the entry, beside the messages
			p.settled(s, m)
			before = p.wire.Load() - int64(len(messages[0])+len(m))
			continue
		}
		p.call(s, m)
	}
	carried := p.wire.Load() - before
	t.Logf("%d messages of %d bytes: %d by reference, %.1f %%", len(messages), size, carried,
		100*float64(carried)/float64(size))
	assert.LessOrEqual(t, carried, int64(size/2))
	assert.Empty(t, p.log.String())
}

// Of W5 only blocks of 293 bytes are the same in all messages; what is about security never goes to
// the store, whatever its name is.
func TestHeadersThatHardlyRecur(t *testing.T) {
	p := newCommonPair(t)
	const wsa = "{http://schemas.xmlsoap.org/ws/2004/08/addressing}"
	s := p.dial([]string{wsa + "To", wsa + "Action", wsa + "ReplyTo"})
	messages, size := firstOf(100, workload.Headers(1))
	p.call(s, messages[0])
	p.settled(s, messages[1])
	before := p.wire.Load()
	for _, m := range messages {
		p.call(s, m)
	}
	carried := p.wire.Load() - before
	t.Logf("W5: %d bytes by reference, of %d, %.1f %%", carried, size, 100*float64(carried)/float64(size))
	assert.Less(t, carried, int64(size))
	_, err := negotiate.ParseHeaderName("{" + xmlns.WSSE + "}Security")
	assert.Error(t, err)
}

// Who has the store alone learns nothing, not even by asking the service.
func TestTheStoreAloneTellsNothing(t *testing.T) {
	p := newCommonPair(t)
	const secret = "tenant-4711-of-somebody"
	block := `<t:Tenant xmlns:t="urn:example:tenant">` + secret + strings.Repeat(" ", 300) + `</t:Tenant>`
	message := []byte(withHeader(block, "<op/>"))
	s := p.dial(nil, block)
	p.call(s, message)
	assert.EqualValues(t, 1, s.HeadersTaken())
	require.Eventually(t, func() bool { return len(uris(t, p.shared, ctxstore.AgreedPrefix)) == 3 },
		10*time.Second, time.Millisecond)
	fragments := uris(t, p.shared, ctxstore.FragmentPrefix)
	require.Len(t, fragments, 1)
	key := s.Agreed().Facts.Common.Key
	for info, err := range p.shared.List(t.Context(), "") {
		require.NoError(t, err)
		entry, err := p.shared.Get(t.Context(), info.URI)
		require.NoError(t, err)
		assert.NotContains(t, string(entry.Value), secret, info.URI)
		assert.NotContains(t, string(entry.Value), "Tenant", info.URI)
		assert.NotContains(t, string(entry.Value), string(key[:]), info.URI)
	}
	// A reference without the proof of the key is refused: no service is asked by it.
	const context = `<c:context xmlns:c="http://docs.oasis-open.org/ws-caf/2005/10/wsctx" s:mustUnderstand="1">`
	for _, proof := range []string{"", "#", "#0123456789abcdef"} {
		forged := withHeader(context+`<c:context-identifier>`+fragments[0]+proof+
			`</c:context-identifier></c:context>`, "<op/>")
		resp, err := http.Post(p.url, "text/xml; charset=utf-8", strings.NewReader(forged))
		require.NoError(t, err)
		reply, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.NotContains(t, string(reply), secret)
		if proof == "#0123456789abcdef" {
			assert.Equal(t, http.StatusInternalServerError, resp.StatusCode)
		}
	}
	// With the context of the session, of either end, everybody has the message.
	for _, own := range []ctxstore.Store{p.client, p.server} {
		r := unchanging.NewRestorer(unchanging.RestorerConfig{Store: p.shared, Common: unchanging.CommonIn(own)})
		whole, n, err := r.Restore(t.Context(), []byte(referring(t, s, block)))
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		assert.Contains(t, string(whole), block)
	}
}

// referring makes the message that the session of a block sends.
func referring(t *testing.T, s *session.Session, block string) string {
	r := unchanging.NewReferrer(unchanging.ReferrerConfig{
		CommonStore: unchanging.CommonStore{Store: memory.New(memory.Config{})}, Common: s.Agreed().Facts.Common,
		Blocks: []string{block},
	})
	defer r.Close()
	_, err := r.Keep(t.Context(), []string{block})
	require.NoError(t, err)
	by, references := r.Refer(t.Context(), []byte(withHeader(block, "<op/>")))
	require.Len(t, references, 1)
	return string(by)
}

func uris(t *testing.T, store ctxstore.Store, prefix string) (list []string) {
	for info, err := range store.List(t.Context(), prefix) {
		require.NoError(t, err)
		list = append(list, info.URI)
	}
	return list
}

// A store that is gone in mid-run, and a service that was started again and has nothing any more:
// messages travel whole, each once; the log says so once.
func TestCommonStoreGoneInMidRun(t *testing.T) {
	p := newCommonPair(t)
	s := p.dial(workload.FixedHeaderNames())
	messages, _ := firstOf(30, workload.FixedHeaders(1))
	p.call(s, messages[0])
	p.settled(s, messages[1])
	require.Eventually(t, func() bool { return len(uris(t, p.shared, ctxstore.AgreedPrefix)) == 3 },
		10*time.Second, time.Millisecond) // else that is a warning, too
	p.context.CloseClientConnections()
	p.context.Close()
	for _, m := range messages[:5] { // the receiver knows it still
		p.call(s, m)
	}
	p.startResponder(p.server)
	taken, got, sent := s.HeadersTaken(), len(p.got), p.sent.Load()
	for _, m := range messages {
		p.call(s, m)
	}
	others, _ := firstOf(10, workload.FixedHeaders(2)) // these would be new in the store
	for _, m := range others {
		p.call(s, m)
	}
	assert.Equal(t, taken, s.HeadersTaken())
	assert.Len(t, p.got, got+len(messages)+len(others))
	assert.EqualValues(t, len(messages)+len(others)+1, p.sent.Load()-sent, "one message was refused, and went again")
	assert.Equal(t, 1, strings.Count(p.log.String(), "level=WARN"), p.log.String())
}

// A responder that lost its own store takes no references any more; one message goes twice over the
// link, and reaches the service once.
func TestResponderLosesTheSession(t *testing.T) {
	p := newCommonPair(t)
	s := p.dial(workload.FixedHeaderNames())
	messages, _ := firstOf(5, workload.FixedHeaders(1))
	p.call(s, messages[0])
	p.settled(s, messages[1])
	p.startResponder(memory.New(memory.Config{}))
	got := len(p.got)
	for _, m := range messages {
		p.call(s, m)
	}
	assert.Len(t, p.got, got+len(messages))
	assert.Contains(t, p.log.String(), "unknownContextFault")
}

// The service behind the URL is replaced by one that knows nothing of hhfr.
func TestReceiverWithoutReferences(t *testing.T) {
	p := newCommonPair(t)
	s := p.dial(workload.FixedHeaderNames())
	messages, _ := firstOf(5, workload.FixedHeaders(1))
	p.call(s, messages[0])
	p.settled(s, messages[1])
	var understood atomic.Int64
	plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !bytes.Contains(body, []byte("hhfr:ref")) {
			understood.Add(1)
			w.Header().Set("Content-Type", "text/xml")
			_, _ = w.Write(body)
			return
		}
		fault, _ := soap.BuildFault(soap.V11, soap.Fault{Code: soap.MustUnderstand, Reason: "what is context?"})
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(fault)
	})
	h, err := responder.NewHandler(plain, responder.Config{}) // no common store: everything is passed on
	require.NoError(t, err)
	p.responder = h
	defer func() { _ = h.Close() }()
	sent := p.sent.Load()
	for _, m := range messages {
		_, body := call(t, s, "", string(m))
		assert.Equal(t, string(m), body)
	}
	assert.EqualValues(t, len(messages), understood.Load())
	assert.EqualValues(t, len(messages)+1, p.sent.Load()-sent)
}

// A responder with another common store, or none, agrees to the rest; blocks then travel in the
// offer, as without one.
func TestAnotherCommonStore(t *testing.T) {
	other := &unchanging.CommonStore{URL: "http://127.0.0.1:1/", Store: memory.New(memory.Config{})}
	for _, common := range []*unchanging.CommonStore{nil, other} {
		service := startServices(t, func(cfg *responder.Config) { cfg.Common = common })
		cfg := config(t)
		cfg.Common = &unchanging.CommonStore{URL: "http://127.0.0.1:2/", Store: memory.New(memory.Config{})}
		cfg.Headers = []string{addressing}
		s := dial(t, service.http.URL+"/echo", cfg)
		a := s.Agreed()
		assert.True(t, a.HHFR, a.Why)
		assert.Equal(t, []string{addressing}, a.Facts.Headers)
		assert.Nil(t, a.Facts.Common)
		refused := negotiate.Declined{Item: "ContextStore", Why: "another one is used here, or none"}
		assert.Contains(t, a.Refused, refused)
	}
}

// A session with a stream agrees on its headers by reference, and takes them out as ever.
func TestStreamsAgreeByReference(t *testing.T) {
	common := &unchanging.CommonStore{URL: "http://127.0.0.1:2/", Store: memory.New(memory.Config{})}
	url := startServices(t, func(cfg *responder.Config) { cfg.Common = common }).http.URL + "/echo"
	cfg := config(t)
	cfg.Common, cfg.Headers = common, []string{addressing}
	s := dial(t, url, cfg)
	a := s.Agreed()
	require.True(t, a.HHFR, a.Why)
	assert.Empty(t, a.Offer.Headers)
	assert.Len(t, a.Offer.References, 1)
	assert.Equal(t, []string{addressing}, a.Facts.Headers)
	message := withHeader(addressing, "<op/>")
	_, body := call(t, s, "", message)
	assert.Equal(t, message, body)
	assert.EqualValues(t, 1, s.HeadersTaken())

	// A fragment that is gone from the store: the item is refused, the session is not.
	gone := *common
	gone.Store = negligent{common.Store}
	lacking := config(t)
	lacking.Common, lacking.Headers = &gone, cfg.Headers
	a = dial(t, url, lacking).Agreed()
	assert.True(t, a.HHFR, a.Why)
	assert.Empty(t, a.Facts.Headers)

	// One that an earlier session has put there, and that is gone since, is put there again.
	for _, uri := range uris(t, common.Store, ctxstore.FragmentPrefix) {
		require.NoError(t, common.Store.Delete(t.Context(), uri, nil))
	}
	cfg.Mode, cfg.RememberFor = negotiate.Explicit, -1
	require.NoError(t, s.Close())
	assert.Empty(t, dial(t, url, cfg).Agreed().Facts.Headers)
	assert.Equal(t, cfg.Headers, dial(t, url, cfg).Agreed().Facts.Headers)
}

// A fixed fragment of the Body, named like a header block, is agreed on by reference and left out
// of streams as well: it is taken out where it stands.
func TestFixedFragmentOfTheBodyOnAStream(t *testing.T) {
	common := &unchanging.CommonStore{URL: "http://127.0.0.1:2/", Store: memory.New(memory.Config{})}
	service := startServices(t, func(cfg *responder.Config) { cfg.Common = common })
	fragment := `<f:Device xmlns:f="urn:example:fleet">` + strings.Repeat("0123456789", 100) + `</f:Device>`
	cfg := config(t)
	cfg.Common, cfg.Headers = common, []string{fragment}
	s := dial(t, service.http.URL+"/echo", cfg)
	require.True(t, s.Agreed().HHFR, s.Agreed().Why)
	require.Len(t, s.Agreed().Offer.References, 1)
	message := envelope("<op>" + fragment + "<n>1</n></op>")
	before, _ := carried(s)
	_, body := call(t, s, "", message)
	assert.Equal(t, message, body)
	assert.EqualValues(t, 1, s.HeadersTaken())
	after, _ := carried(s)
	assert.Less(t, after-before, int64(500))
	assert.Equal(t, message, service.got()[0].body)
}

// negligent is a store that says it took what it did not.
type negligent struct{ ctxstore.Store }

func (negligent) Put(context.Context, string, []byte, ctxstore.PutOptions) (uint64, error) {
	return 1, nil
}
