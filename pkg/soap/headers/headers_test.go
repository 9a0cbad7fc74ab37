package headers_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
)

// trace understands urn:trace in a role, and writes what it got into the reply.
type trace struct {
	role string
	seen *atomic.Int64
}

type traceKey struct{}

func (trace) Understands(name soap.Name) bool { return name.Space == "urn:trace" }

func (h trace) Role() string { return h.role }

func (h trace) In(ctx context.Context, e *soap.Envelope) (context.Context, error) {
	h.seen.Add(1)
	for i := range e.Header {
		if e.Header[i].Text == "forbidden" {
			return ctx, &headers.RefusedMessage{Fault: soap.Fault{Code: soap.Client, Reason: "not that"}}
		}
		if h.Understands(e.Header[i].Name) {
			ctx = context.WithValue(ctx, traceKey{}, e.Header[i].Text)
		}
	}
	return ctx, nil
}

func (trace) Out(ctx context.Context, _ *soap.Envelope) ([]soap.Element, error) {
	text, _ := ctx.Value(traceKey{}).(string)
	return []soap.Element{{Name: soap.Name{Space: "urn:trace", Local: "back"}, Text: text}}, nil
}

// world is a service behind a chain of two handlers.
type world struct {
	handler http.Handler
	seen    atomic.Int64
	got     []string
}

func newWorld(role string) *world {
	w := &world{}
	chain := headers.Chain{addressing.HeaderHandler{}, trace{role, &w.seen}}
	w.handler = chain.Handler(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.got = append(w.got, string(body))
		out.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = out.Write(body)
	}))
	return w
}

func (w *world) send(contentType, message string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(message))
	r.Header.Set("Content-Type", contentType)
	out := httptest.NewRecorder()
	w.handler.ServeHTTP(out, r)
	return out
}

const typeXML = "text/xml; charset=utf-8"

func envelope(blocks string) string {
	return `<s:Envelope xmlns:s="` + soap.V11.Namespace() + `" xmlns:t="urn:trace" xmlns:a="` + addressing.V200508 +
		`"><s:Header>` + blocks + `</s:Header><s:Body> <op/></s:Body></s:Envelope>`
}

// What is understood is taken out, the rest passes byte for byte; replies get the blocks of the
// chain.
func TestHandler(t *testing.T) {
	w := newWorld("")
	out := w.send(typeXML, envelope(`<t:id s:mustUnderstand="1">7</t:id><a:MessageID>urn:m</a:MessageID>`+
		`<a:Action>urn:act</a:Action><other/>`))
	require.Equal(t, []string{envelope(`<other/>`)}, w.got)
	e, err := soap.Parse(out.Body.Bytes(), soap.Limits{})
	require.NoError(t, err)
	p, err := addressing.Read(e)
	require.NoError(t, err)
	assert.Equal(t, "urn:m", p.RelatesTo)
	assert.Equal(t, "urn:actResponse", p.Action)
	assert.Contains(t, out.Body.String(), `<n:back xmlns:n="urn:trace">7</n:back>`)
}

// Nothing looks at a message with a block that nobody understands, or not in that role.
func TestMustUnderstandComesFirst(t *testing.T) {
	for role, blocks := range map[string]string{
		"":         `<other s:mustUnderstand="1"/>`,
		"urn:role": `<t:id s:mustUnderstand="1">7</t:id>`,
	} {
		w := newWorld(role)
		out := w.send(typeXML, envelope(blocks))
		assert.Equal(t, http.StatusInternalServerError, out.Code)
		e, err := soap.Parse(out.Body.Bytes(), soap.Limits{})
		require.NoError(t, err)
		f, _ := e.Fault()
		assert.Equal(t, soap.MustUnderstand, f.Code)
		assert.Zero(t, w.seen.Load())
		assert.Empty(t, w.got)
	}
	w := newWorld("urn:role")
	w.send(typeXML, envelope(`<t:id s:actor="urn:role" s:mustUnderstand="1">7</t:id>`))
	assert.Equal(t, []string{envelope("")}, w.got)
}

// What a handler refuses, or what is malformed, is a fault, and the service is not called.
func TestRefused(t *testing.T) {
	w := newWorld("")
	for _, blocks := range []string{
		`<t:id>forbidden</t:id>`, `<a:Action>a</a:Action><a:Action>b</a:Action>`, `<a:ReplyTo/>`, `<t:id>`, `<u:x/>`,
	} {
		out := w.send(typeXML, envelope(blocks))
		assert.Equal(t, http.StatusInternalServerError, out.Code, blocks)
		assert.Contains(t, out.Body.String(), "faultcode", blocks)
	}
	assert.Empty(t, w.got)
}

// What no chain can read passes as it came.
func TestPasses(t *testing.T) {
	w := newWorld("")
	w.send("text/plain", "hello")
	w.send(typeXML, "<x/>")
	w.send("text/xml; charset=iso-8859-1", envelope(`<t:id/>`))
	assert.Equal(t, []string{"hello", "<x/>", envelope(`<t:id/>`)}, w.got)
}
