package wscontext_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/lease"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
)

// ask posts an envelope as it is.
func ask(t *testing.T, s *wscontext.ContextService, contentType, envelope string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader(envelope))
	r.RemoteAddr = "127.0.0.1:9"
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func in11(header, body string) string {
	return `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `" xmlns:c="` + xmlns.WSContext + `" xmlns:h="` +
		xmlns.HHFRContext + `"><s:Header>` + header + `</s:Header><s:Body>` + body + `</s:Body></s:Envelope>`
}

func newService(t *testing.T, cfg wscontext.Config) *wscontext.ContextService {
	t.Helper()
	if cfg.Store == nil {
		store := memory.New(memory.Config{})
		t.Cleanup(func() { assert.NoError(t, store.Close()) })
		cfg.Store = store
	}
	s, err := wscontext.New(cfg)
	require.NoError(t, err)
	return s
}

// The envelopes of docs/context.md: set, get, both versions of SOAP, by element and by header.
func TestEnvelopes(t *testing.T) {
	s := newService(t, wscontext.Config{})
	id := `<c:context-identifier>urn:x:a</c:context-identifier>`
	status, reply := ask(t, s, "text/xml",
		in11("", `<c:setContents>`+id+`<o:order xmlns:o="urn:o">1</o:order></c:setContents>`))
	require.Equal(t, 200, status, reply)
	assert.Contains(t, reply, `<C:context-identifier>urn:x:a</C:context-identifier><C:version>1</C:version>`)

	get := in11("", `<c:getContents>`+id+`</c:getContents>`)
	status, reply = ask(t, s, "text/xml; charset=utf-8", get)
	require.Equal(t, 200, status, reply)
	assert.Contains(t, reply, `<C:version>1</C:version><o:order xmlns:o="urn:o">1</o:order></C:contents>`)

	status, reply = ask(t, s, `application/soap+xml; action="x"`, strings.ReplaceAll(get, xmlns.SOAP11, xmlns.SOAP12))
	require.Equal(t, 200, status, reply)
	assert.Contains(t, reply, xmlns.SOAP12)
	status, reply = ask(t, s, "text/xml",
		in11(`<c:context s:mustUnderstand="1"><c:any><c:deep/></c:any>`+id+`</c:context>`, `<c:getContents/>`))
	require.Equal(t, 200, status, reply)
	assert.Contains(t, reply, `<o:order`)

	status, reply = ask(t, s, "text/xml", in11("", `<c:setContents><a/></c:setContents>`))
	require.Equal(t, 200, status, reply)
	assert.Contains(t, reply, `<C:context-identifier>urn:uuid:`)
}

// Contents are the bytes that came, with what they need of the envelope around them.
func TestContentsStandAlone(t *testing.T) {
	store := memory.New(memory.Config{})
	defer func() { assert.NoError(t, store.Close()) }()
	s := newService(t, wscontext.Config{Store: store})
	for _, tc := range []struct{ sent, stored string }{
		{`<a/>`, `<a/>`},
		{
			"\n  <a b='1' >x &amp; y<!-- c --><![CDATA[<z>]]></a >\n\t<b/>  ",
			"<a b='1' >x &amp; y<!-- c --><![CDATA[<z>]]></a >\n\t<b/>",
		},
		{`<s:x/>`, `<s:x xmlns:s="` + xmlns.SOAP11 + `"/>`},
		{`<x t="s:y"/>`, `<x xmlns:s="` + xmlns.SOAP11 + `" t="s:y"/>`},
		{`<x>urls:y</x>`, `<x>urls:y</x>`},
		{`<x xmlns:s="urn:o"><s:y/></x>`, `<x xmlns:s="urn:o"><s:y/></x>`},
		{`<h:binary>AAEC</h:binary>`, "\x00\x01\x02"},
		{``, ``},
	} {
		status, reply := ask(t, s, "text/xml", in11("",
			`<c:setContents><c:context-identifier>urn:x</c:context-identifier>`+tc.sent+`</c:setContents>`))
		require.Equal(t, 200, status, reply)
		e, err := store.Get(t.Context(), "urn:x")
		require.NoError(t, err)
		assert.Equal(t, tc.stored, string(e.Value))
	}
	// A default namespace is needed by elements without a prefix only.
	status, reply := ask(t, s, "text/xml", `<Envelope xmlns="`+xmlns.SOAP11+`"><Body><setContents xmlns="`+
		xmlns.WSContext+`"><context-identifier>urn:x</context-identifier><p:a xmlns:p="urn:p" xmlns="urn:q"><b/></p:a>`+
		`</setContents></Body></Envelope>`)
	require.Equal(t, 200, status, reply)
	e, err := store.Get(t.Context(), "urn:x")
	require.NoError(t, err)
	assert.Equal(t, `<p:a xmlns:p="urn:p" xmlns="urn:q"><b/></p:a>`, string(e.Value))
}

// What a store has comes back as the same bytes, whatever it is.
func TestAnyValueThereAndBack(t *testing.T) {
	s, store := serveMemory(t, memory.Config{})
	r := s.open(t)
	defer func() { assert.NoError(t, r.Close()) }()
	for _, value := range []string{
		`<a/>`, ` <a/>`, `<a/> `, `<a/><b/>`, `<a>`, `<a></b>`, `<p:a/>`, `<a x="1" x="2"/>`,
		`<?xml version="1.0"?><a/>`,
		`<!DOCTYPE a><a/>`, `<a>&nope;</a>`, `<a>&#0;</a>`, "<a>\x00</a>", "<a>\r\n</a>", "<a>\xff</a>", `<a>]]></a>`,
		`<a b="<"/>`, `<E:a xmlns:E="urn:e"/>`, `<a>C:x</a>`, `<a b="H:x"/>`, `<x/>text<y/>`, `<größe/>`, `<1/>`,
		`<binary xmlns="` + xmlns.HHFRContext + `">AAEC</binary>`,
		`<version xmlns="` + xmlns.WSContext + `">1</version>`,
		strings.Repeat("<a>", 60) + strings.Repeat("</a>", 60), strings.Repeat("<a>", 63) + strings.Repeat("</a>", 63),
		`<a><?pi x?></a>`, `<a xmlns:p=""/>`, "\xEF\xBB\xBF<a/>", `<!-- c --><a/>`, `<a:b:c xmlns:a="x"/>`,
		`<a><!-- x -- y --></a>`,
	} {
		_, err := r.Put(t.Context(), "urn:x", []byte(value), ctxstore.PutOptions{})
		require.NoError(t, err, value)
		there, err := store.Get(t.Context(), "urn:x")
		require.NoError(t, err)
		assert.Equal(t, value, string(there.Value))
		back, err := r.Get(t.Context(), "urn:x")
		require.NoError(t, err, value)
		assert.Equal(t, value, string(back.Value))
	}
}

func FuzzThereAndBack(f *testing.F) {
	for _, seed := range []string{"", "<a/>", "<a b='c'>&#10;</a>", "<E:a/>", "\x00", "<a xmlns='x'/> <b/>"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		store := memory.New(memory.Config{})
		defer func() { assert.NoError(t, store.Close()) }()
		service, err := wscontext.New(wscontext.Config{Store: store, Admit: func(*http.Request) error { return nil }})
		require.NoError(t, err)
		h, err := wscontext.NewContextServiceHandler("http://localhost/",
			wscontext.ClientConfig{Transport: direct{service}})
		require.NoError(t, err)
		require.NoError(t, h.SetContent(t.Context(), "urn:x", value))
		there, err := store.Get(t.Context(), "urn:x")
		require.NoError(t, err)
		require.True(t, bytes.Equal(value, there.Value), "%q became %q", value, there.Value)
		back, err := h.GetContent(t.Context(), "urn:x")
		require.NoError(t, err)
		require.True(t, bytes.Equal(value, back), "%q became %q", value, back)
	})
}

// direct hands requests to a handler.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// FuzzService: no envelope makes the service panic, and each gets an answer.
func FuzzService(f *testing.F) {
	for _, seed := range []string{
		in11("", "<c:begin/>"), in11("", "<h:list><h:prefix/></h:list>"),
		in11("<x s:mustUnderstand='1'/>", "<c:complete/>"),
		"<a/>", "", "<", in11("", "<c:setContents><c:timeout>-1</c:timeout></c:setContents>"),
	} {
		f.Add([]byte(seed))
	}
	store := memory.New(memory.Config{})
	f.Cleanup(func() { assert.NoError(f, store.Close()) })
	service, err := wscontext.New(wscontext.Config{Store: store})
	require.NoError(f, err)
	service.Drain()
	f.Fuzz(func(t *testing.T, envelope []byte) {
		status, reply := ask(t, service, "text/xml", string(envelope))
		require.Contains(t, []int{200, 400, 500}, status)
		require.Contains(t, reply, "Envelope")
	})
}

// What is wrong with a request is told in a fault, by where and what.
func TestRefusals(t *testing.T) {
	s := newService(t, wscontext.Config{})
	id := `<c:context-identifier>urn:x:none</c:context-identifier>`
	for _, tc := range []struct {
		envelope, says string
	}{
		{``, `there is no XML`},
		{`hello`, `text before the envelope`},
		{`<a/>`, `no SOAP envelope but a`},
		{`<e:Envelope xmlns:e="urn:e"/>`, `VersionMismatch`},
		{in11("", ``), `one Body with one element`},
		{in11("", `<c:complete/><c:complete/>`), `more than one element`},
		{in11("", `<c:complete>`), `the end tag of`},
		{in11("", `<p:x/>`), `the prefix "p" is not declared`},
		{in11("", `<c:unknown/>`), `no operation of this service`},
		{in11("", `<x/>`), `no operation of this service`},
		{`<!DOCTYPE a [<!ENTITY b "c">]>` + in11("", `<c:complete/>`), `document type declaration`},
		{in11("", `<c:complete><?pi?></c:complete>`), `processing instruction`},
		{`<?xml version="1.0" encoding="utf-16"?>` + in11("", `<c:complete/>`), `only UTF-8`},
		{in11("", "<c:complete>\xff</c:complete>"), `not UTF-8`},
		{in11("", `<c:setContents>text</c:setContents>`), `text where only elements are expected`},
		{
			in11("", `<c:setContents>`+strings.Repeat("<a>", 80)+strings.Repeat("</a>", 80)+`</c:setContents>`),
			`deeper than 64`,
		},
		{in11("", `<c:setContents><a>&b;</a></c:setContents>`), `malformed text`},
		{in11("", `<c:setContents><a b="1" b="2"/></c:setContents>`), `stands twice`},
		{in11("", `<c:setContents><h:binary>%</h:binary></c:setContents>`), `not base64`},
		{in11("", `<c:setContents><a/>`+id+`<a/></c:setContents>`), `no other element between`},
		{in11("", `<c:setContents><c:expect-version>x</c:expect-version></c:setContents>`), `is no number`},
		{in11("", `<c:setContents><c:timeout>-1</c:timeout></c:setContents>`), `timeoutOutOfRangeFault`},
		{in11("", `<c:begin><c:timeout>99999999999</c:timeout></c:begin>`), `timeoutOutOfRangeFault`},
		{in11("", `<c:begin><c:parent>urn:x:none</c:parent></c:begin>`), `parentActivityUnknownFault`},
		{in11(`<c:context>`+id+`</c:context>`, `<c:begin/>`), `parentActivityUnknownFault`},
		{in11("", `<c:getContents>`+id+`</c:getContents>`), `unknownContextFault`},
		{in11("", `<c:complete>`+id+`</c:complete>`), `unknownContextFault`},
		{in11("", `<c:getStatus>`+id+`</c:getStatus>`), `unknownContextFault`},
		{in11("", `<c:getTimeout>`+id+`</c:getTimeout>`), `unknownContextFault`},
		{in11("", `<c:setTimeout>`+id+`<c:timeout>1</c:timeout></c:setTimeout>`), `unknownContextFault`},
		{in11("", `<c:setTimeout>`+id+`</c:setTimeout>`), `has no timeout`},
		{in11("", `<h:delete>`+id+`</h:delete>`), `unknownContextFault`},
		{in11("", `<c:getContents/>`), `the URI is empty`},
		{
			in11("", `<c:setContents>`+id+`<c:expect-version>3</c:expect-version></c:setContents>`),
			`versionConflictFault`,
		},
		{in11(`<w:Security xmlns:w="urn:w" s:mustUnderstand="1"/>`, `<c:complete/>`), `MustUnderstand`},
	} {
		status, reply := ask(t, s, "text/xml", tc.envelope)
		assert.Equal(t, 500, status, tc.envelope)
		assert.Contains(t, strings.ReplaceAll(reply, "&#34;", `"`), tc.says, tc.envelope)
	}
	status, reply := ask(t, s, "application/soap+xml",
		strings.ReplaceAll(in11("", `<c:getContents>`+id+`</c:getContents>`), xmlns.SOAP11, xmlns.SOAP12))
	assert.Equal(t, 400, status)
	assert.Contains(t, reply, `soap:Sender`)
	assert.Contains(t, reply, `urn:x:none`, "the detail names the context")
	status, _ = ask(t, s, "text/plain", in11("", `<c:begin/>`))
	assert.Equal(t, http.StatusUnsupportedMediaType, status)
}

// An activity from its begin to its end.
func TestActivities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := serveMemory(t, memory.Config{})
		h, err := wscontext.NewContextServiceHandler("http://localhost/",
			wscontext.ClientConfig{Transport: s.transport()})
		require.NoError(t, err)
		defer func() { assert.NoError(t, h.Close()) }()
		ctx := t.Context()
		parent, err := h.Begin(ctx, "urn:type", "", time.Hour, []byte("<a/>"))
		require.NoError(t, err)
		child, err := h.Begin(ctx, "", parent, 0, nil)
		require.NoError(t, err)
		left, err := h.GetTimeout(ctx, child)
		require.NoError(t, err)
		assert.Equal(t, time.Hour, left, "no longer than its parent")
		require.ErrorContains(t, h.Complete(ctx, parent), "this child is still active")
		status, err := h.GetStatus(ctx, parent)
		require.NoError(t, err)
		assert.Equal(t, wscontext.StatusActive, status)

		require.NoError(t, h.SetContent(ctx, child, []byte("<b/>")))
		require.NoError(t, h.Complete(ctx, child))
		require.ErrorContains(t, h.SetContent(ctx, child, []byte("<c/>")), "is completed")
		require.ErrorContains(t, h.Complete(ctx, child), "is completed already")
		require.ErrorContains(t, h.SetTimeout(ctx, child, time.Hour), "is completed")
		value, err := h.GetContent(ctx, child)
		require.NoError(t, err)
		assert.Equal(t, "<b/>", string(value), "it can be read")

		time.Sleep(30 * time.Minute)
		require.NoError(t, h.SetTimeout(ctx, parent, time.Hour))
		require.NoError(t, h.SetContent(ctx, parent, []byte("<d/>")))
		time.Sleep(59 * time.Minute)
		require.NoError(t, h.Complete(ctx, parent))
		status, err = h.GetStatus(ctx, parent)
		require.NoError(t, err)
		assert.Equal(t, wscontext.StatusCompleted, status)
		_, err = h.Begin(ctx, "", parent, 0, nil)
		require.ErrorContains(t, err, "the parent is completed")
		time.Sleep(time.Minute)
		_, err = h.GetContent(ctx, parent)
		require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.NotFound})
		_, err = h.GetStatus(ctx, parent)
		require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.NotFound})
	})
}

// A hold ends with its holder, even if that ends without a word.
func TestHoldersThatAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := serveMemory(t, memory.Config{})
		one := s.open(t)
		release, err := ctxstore.Hold(one, "urn:x")
		require.NoError(t, err)
		two := s.open(t)
		time.Sleep(time.Hour)
		_, err = ctxstore.Hold(two, "urn:x")
		require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Held}, "it is renewed")
		release()
		release, err = ctxstore.Hold(two, "urn:x")
		require.NoError(t, err)
		release()
		require.NoError(t, one.Close())
		// What a process leaves that is killed:
		_, err = store.Put(t.Context(), lease.URI("urn:x"), nil, ctxstore.PutOptions{TTL: lease.Life})
		require.NoError(t, err)
		_, err = ctxstore.Hold(two, "urn:x")
		require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Held})
		time.Sleep(lease.Life)
		release, err = ctxstore.Hold(two, "urn:x")
		require.NoError(t, err)
		require.NoError(t, two.Close())
		release()
	})
}

// Only programs of this machine are admitted, unless the configuration says otherwise: neither
// other machines, nor pages of other sites in a browser here, nor what a reverse proxy here
// forwards.
func TestAdmission(t *testing.T) {
	for _, tc := range []struct {
		from, host string
		field      string
		fine       bool
	}{
		{"127.0.0.1:1", "localhost:80", "", true}, {"[::1]:1", "[::1]:80", "", true},
		{"127.0.0.1:1", "127.0.0.1", "", true}, {"[::ffff:127.0.0.1]:1", "LOCALHOST", "", true},
		{"192.0.2.1:1", "localhost", "", false}, {"127.0.0.1:1", "evil.example", "", false},
		{"", "localhost", "", false}, {"127.0.0.1:1", "localhost", "X-Forwarded-For", false},
		{"127.0.0.1:1", "localhost", "Origin", false}, {"127.0.0.1:1", "192.0.2.1", "", false},
		{"127.0.0.1:1", "localhost", "Sec-Fetch-Site", false},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://x/", nil)
		r.RemoteAddr, r.Host = tc.from, tc.host
		if tc.field != "" {
			r.Header.Set(tc.field, "cross-site")
		}
		assert.Equal(t, tc.fine, wscontext.AdmitLoopback(r) == nil, "%+v", tc)
		w := httptest.NewRecorder()
		newService(t, wscontext.Config{}).ServeHTTP(w, r)
		assert.Equal(t, tc.fine, w.Code != http.StatusForbidden, "%+v", tc)
	}
}

// A service that only reads changes nothing, and a client knows.
func TestReadOnly(t *testing.T) {
	store := memory.New(memory.Config{})
	defer func() { assert.NoError(t, store.Close()) }()
	s := newService(t, wscontext.Config{Store: store, ReadOnly: true})
	for _, op := range []string{"c:begin", "c:complete", "c:setTimeout", "c:setContents", "h:delete"} {
		_, reply := ask(t, s, "text/xml", in11("", `<`+op+`/>`))
		assert.Contains(t, reply, "noPermissionFault", op)
	}
	r := serve(t, wscontext.Config{Store: store, ReadOnly: true}).open(t)
	defer func() { assert.NoError(t, r.Close()) }()
	_, err := r.Put(t.Context(), "urn:x", nil, ctxstore.PutOptions{})
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Permission})
	assert.False(t, ctxstore.Persists(r), "memory does not persist, here or there")
}

// A request that is too long is refused before it is read.
func TestTooLong(t *testing.T) {
	s := newService(t, wscontext.Config{})
	r := httptest.NewRequest(http.MethodPost, "http://localhost/", io.LimitReader(zeros{}, 1<<30))
	r.RemoteAddr, r.ContentLength = "127.0.0.1:9", -1
	r.Header.Set("Content-Type", "text/xml")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	assert.Contains(t, w.Body.String(), "longer than")
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

// local has requests come from this machine.
type local struct{ http.RoundTripper }

func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	here := *r
	here.RemoteAddr = "127.0.0.1:9"
	return l.RoundTripper.RoundTrip(&here)
}
