package session_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/workload"
)

// lastReply returns the last reply on the link.
func (p *commonPair) lastReply() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.back[len(p.back)-1]
}

// replyBytes are those of all replies on the link.
func (p *commonPair) replyBytes() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.back {
		n += len(b)
	}
	return n
}

// repliesSettled sends a message until its reply refers to something.
func (p *commonPair) repliesSettled(s *session.Session, message []byte) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		p.call(s, message)
		return strings.Contains(p.lastReply(), xmlns.Reference)
	}, 10*time.Second, time.Millisecond)
}

// settledReplies is a pair whose replies refer to something, with the session of its initiator and
// so many messages, of which two were sent.
func settledReplies(t *testing.T, count int) (p *commonPair, s *session.Session, messages [][]byte) {
	p = newCommonPair(t)
	s = p.dial(workload.FixedHeaderNames())
	messages, _ = firstOf(count, workload.FixedHeaders(1))
	p.call(s, messages[0])
	p.repliesSettled(s, messages[1])
	return p, s, messages
}

// Replies of which most does not change take less than half their bytes, what their requests name
// included, and callers get them as they are.
func TestRepliesByReference(t *testing.T) {
	p := newCommonPair(t)
	s := p.dial(workload.FixedHeaderNames())
	messages, size := firstOf(100, workload.FixedHeaders(1))
	p.call(s, messages[0])
	p.repliesSettled(s, messages[1])
	before, field := p.replyBytes(), p.field.Load()
	for _, m := range messages {
		p.call(s, m)
	}
	carried, field := int64(p.replyBytes()-before), p.field.Load()-field
	t.Logf("%d replies of %d bytes: %d by reference and %d in requests that name them, %.1f %%", len(messages), size,
		carried, field, 100*float64(carried+field)/float64(size))
	assert.Less(t, carried+field, int64(size/2))
	assert.Empty(t, p.log.String())
}

// Of W5 hardly anything in the replies is worth a reference: requests do not become longer for it.
func TestRepliesThatHardlyRecur(t *testing.T) {
	p := newCommonPair(t)
	const wsa = "{http://schemas.xmlsoap.org/ws/2004/08/addressing}"
	s := p.dial([]string{wsa + "To", wsa + "Action", wsa + "ReplyTo"})
	messages, size := firstOf(100, workload.Headers(1))
	before := p.replyBytes()
	for _, m := range messages {
		p.call(s, m)
	}
	carried := p.replyBytes() - before
	t.Logf("W5: %d bytes of replies, of %d, and %d in requests", carried, size, p.field.Load())
	assert.LessOrEqual(t, carried+int(p.field.Load()), size)
}

// tenant is a header block that only replies have.
func tenant() string {
	return `<t:Tenant xmlns:t="urn:example:tenant">` + strings.Repeat("of the service ", 60) + `</t:Tenant>`
}

// tenantPair are peers of which the service answers with one reply.
func tenantPair(t *testing.T, reply http.HandlerFunc) (*commonPair, *session.Session) {
	p := newCommonPair(t)
	p.service = reply
	return p, p.dial([]string{"{urn:example:tenant}Tenant"})
}

// However a service writes its reply, the caller has it as it was, with a length that is right.
func TestRepliesOfAnyForm(t *testing.T) {
	reply := withHeader(tenant(), "<ok/>")
	write := func(status int, fields map[string]string, parts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/xml")
			for name, value := range fields {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			for _, part := range parts {
				_, _ = io.WriteString(w, part)
			}
		}
	}
	long := reply + strings.Repeat(" ", 300<<10)
	var bytewise []string
	for i := range reply {
		bytewise = append(bytewise, reply[i:i+1])
	}
	flushed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		for _, part := range []string{reply[:200], reply[200:]} {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	}
	for name, c := range map[string]struct {
		serve   http.HandlerFunc
		want    string
		whole   bool // it has no reference
		unsized bool // its length is not known before its end
	}{
		"at once": {serve: write(200, nil, reply), want: reply},
		"with length": {
			serve: write(200, map[string]string{"Content-Length": strconv.Itoa(len(reply))}, reply), want: reply,
		},
		"bytewise": {serve: write(200, nil, bytewise...), want: reply},
		"long":     {serve: write(200, nil, long), want: long, unsized: true},
		"long with length": {
			serve: write(200, map[string]string{"Content-Length": strconv.Itoa(len(long))}, long), want: long,
		},
		"a fault":        {serve: write(500, nil, reply), want: reply},
		"flushed within": {serve: flushed, want: reply, whole: true, unsized: true},
		"compressed": {
			serve: write(200, map[string]string{"Content-Encoding": "br"}, reply), want: reply, whole: true,
		},
		"no SOAP": {
			serve: write(200, map[string]string{"Content-Type": "text/plain"}, reply), want: reply, whole: true,
		},
		"no envelope": {serve: write(200, nil, "sorry"), want: "sorry", whole: true},
		"nothing":     {serve: write(200, nil), whole: true},
		"a copy": {serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/xml")
			_, _ = io.Copy(w, onlyReader{strings.NewReader(reply)})
		}, want: reply},
	} {
		t.Run(name, func(t *testing.T) {
			var settled atomic.Bool
			p, first := newCommonPair(t), write(200, nil, reply)
			p.service = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if settled.Load() {
					c.serve(w, r)
					return
				}
				first(w, r)
			})
			post := p.netHTTP([]string{"{urn:example:tenant}Tenant"})
			require.Eventually(t, func() bool {
				_, body := post([]byte(envelope("<op/>")))
				require.Equal(t, reply, body)
				return strings.Contains(p.lastReply(), xmlns.Reference)
			}, 10*time.Second, time.Millisecond)
			settled.Store(true)
			for range 3 {
				resp, body := post([]byte(envelope("<op/>")))
				assert.Equal(t, c.want, body)
				assert.Equal(t, c.whole, !strings.Contains(p.lastReply(), xmlns.Reference))
				if !c.unsized {
					assert.EqualValues(t, len(c.want), resp.ContentLength)
					assert.Equal(t, strconv.Itoa(len(c.want)), resp.Header.Get("Content-Length"))
				}
				assert.Equal(t, name == "a fault", resp.StatusCode == http.StatusInternalServerError)
			}
		})
	}
}

// netHTTP returns a client of net/http with sessions of plain SOAP, as a function that posts.
func (p *commonPair) netHTTP(headers []string) func(message []byte, named ...string) (*http.Response, string) {
	cfg := config(p.t)
	cfg.Common, cfg.Transports = p.common(headers), map[string]streamer.Transport{}
	transport, err := session.NewRoundTripper(&http.Transport{}, cfg)
	require.NoError(p.t, err)
	p.t.Cleanup(func() {
		assert.NoError(p.t, transport.Close())
		transport.CloseIdleConnections()
	})
	client := &http.Client{Transport: transport}
	return func(message []byte, named ...string) (*http.Response, string) {
		req, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(string(message)))
		require.NoError(p.t, err)
		req.Header.Set("Content-Type", "text/xml")
		for _, field := range named {
			req.Header.Set(negotiate.FragmentsField, field)
		}
		resp, err := client.Do(req)
		require.NoError(p.t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(p.t, err)
		require.NoError(p.t, resp.Body.Close())
		return resp, string(body)
	}
}

// A reply that breaks off does so for its caller, who gets what came before.
func TestReferringReplyBreaksOff(t *testing.T) {
	reply := withHeader(tenant(), "<ok/>")
	var broken atomic.Bool
	p, s := tenantPair(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		w.Header().Set("Content-Length", strconv.Itoa(len(reply)+1000))
		if !broken.Load() {
			w.Header().Del("Content-Length")
			_, _ = io.WriteString(w, reply)
			return
		}
		_, _ = io.WriteString(w, reply)
		panic(http.ErrAbortHandler)
	})
	message := []byte(envelope("<op/>"))
	require.Eventually(t, func() bool {
		_, body := call(t, s, "", string(message))
		require.Equal(t, reply, body)
		return strings.Contains(p.lastReply(), xmlns.Reference)
	}, 10*time.Second, time.Millisecond)
	broken.Store(true)
	got, err := s.Call(t.Context(), streamer.NewMessage(nil, message))
	if err == nil {
		var data []byte
		data, err = got.ReadAll(1 << 20)
		assert.True(t, strings.HasPrefix(reply, string(data)), string(data))
	}
	assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
}

// A store that is gone in mid-run loses no reply: those known go on by reference, and after the
// responder is started anew all travel whole.
func TestRepliesWhileTheStoreIsGone(t *testing.T) {
	p, s, messages := settledReplies(t, 20)
	p.context.CloseClientConnections()
	p.context.Close()
	for _, m := range messages {
		p.call(s, m)
		assert.Contains(t, p.lastReply(), xmlns.Reference)
	}
	p.startResponder(p.server)
	got := len(p.got)
	for _, m := range messages {
		p.call(s, m)
		assert.NotContains(t, p.lastReply(), xmlns.Reference)
	}
	assert.Len(t, p.got, got+len(messages))

	// A responder that lost its own store as well knows no key of the session.
	p.startResponder(memory.New(memory.Config{}))
	for _, m := range messages {
		p.call(s, m)
		assert.NotContains(t, p.lastReply(), xmlns.Reference)
	}
}

// Who has not agreed on the store never gets a reference: a client without a session, also one with
// a field that it made up, and an initiator that does not name any, as those before did.
func TestOnlyWhoNamesFragmentsGetsReferences(t *testing.T) {
	p, _, messages := settledReplies(t, 3)
	fragments := uris(t, p.shared, ctxstore.FragmentPrefix)
	require.NotEmpty(t, fragments)
	made := strings.TrimPrefix(fragments[0], ctxstore.FragmentPrefix)
	for _, field := range []string{
		"", "1", made, made + "#", made + "#0123456789abcdef", strings.Repeat(made+"#0123456789abcdef,", 100),
	} {
		for range 3 {
			req, err := http.NewRequest(http.MethodPost, p.url, strings.NewReader(string(messages[2])))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "text/xml")
			if field != "" {
				req.Header.Set(negotiate.FragmentsField, field)
			}
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			reply, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, string(messages[2]), string(reply), field)
		}
	}
}

// What is in the store of blocks that only replies have tells those without the session nothing.
func TestBlocksOfRepliesAreSealed(t *testing.T) {
	reply := withHeader(tenant(), "<ok/>")
	p, s := tenantPair(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, reply)
	})
	require.Eventually(t, func() bool {
		_, body := call(t, s, "", envelope("<op/>"))
		require.Equal(t, reply, body)
		return strings.Contains(p.lastReply(), xmlns.Reference)
	}, 10*time.Second, time.Millisecond)
	assert.NotContains(t, p.lastReply(), "of the service")
	require.Len(t, uris(t, p.shared, ctxstore.FragmentPrefix), 1)
	for info, err := range p.shared.List(t.Context(), "") {
		require.NoError(t, err)
		entry, err := p.shared.Get(t.Context(), info.URI)
		require.NoError(t, err)
		assert.NotContains(t, string(entry.Value), "of the service", info.URI)
		assert.NotContains(t, string(entry.Value), "Tenant", info.URI)
	}
}

// A session whose operator names no block names none in requests, and gets no reference.
func TestNoBlocksNoNames(t *testing.T) {
	p := newCommonPair(t)
	s := p.dial(nil)
	messages, _ := firstOf(10, workload.FixedHeaders(1))
	for _, m := range messages {
		p.call(s, m)
		assert.NotContains(t, p.lastReply(), xmlns.Reference)
	}
	assert.Zero(t, p.named.Load())
	assert.Empty(t, uris(t, p.shared, ctxstore.FragmentPrefix))
}

// A reply that refers to what nobody named is an error, with the reason; the request is not sent
// again.
func TestReplyThatCannotBeMadeWhole(t *testing.T) {
	for _, sized := range []bool{true, false} {
		p, s, _ := settledReplies(t, 2)
		scope := s.Agreed().Facts.Common.Scope()
		reference := ctxstore.FragmentPrefix + scope + ":0123456789abcdef#0123456789abcdef"
		bad := withHeader(`<c:context xmlns:c="`+xmlns.WSContext+`"><c:context-identifier>`+reference+
			`</c:context-identifier></c:context>`, "<ok/>")
		h, err := responder.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/xml")
			_, _ = io.WriteString(w, bad[:10])
			if !sized {
				_ = http.NewResponseController(w).Flush()
			}
			_, _ = io.WriteString(w, bad[10:])
		}), responder.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = h.Close() })
		p.responder = h
		sent := p.sent.Load()
		reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(envelope("<op/>"))))
		if err == nil {
			_, err = reply.ReadAll(1 << 20)
		}
		assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
		assert.ErrorContains(t, err, reference+`", which its request has not named`)
		assert.EqualValues(t, 1, p.sent.Load()-sent)
	}
}

// Under net/http, too: an unchanged client and an unchanged server.
func TestRepliesByReferenceUnderNetHTTP(t *testing.T) {
	p := newCommonPair(t)
	post := p.netHTTP(workload.FixedHeaderNames())
	messages, _ := firstOf(30, workload.FixedHeaders(1))
	require.Eventually(t, func() bool {
		post(messages[0])
		return strings.Contains(p.lastReply(), xmlns.Reference)
	}, 10*time.Second, time.Millisecond)
	for _, m := range messages {
		resp, body := post(m)
		require.Equal(t, string(m), body)
		assert.EqualValues(t, len(m), resp.ContentLength)
		assert.Contains(t, p.lastReply(), xmlns.Reference)
	}

	// A caller that names fragments itself gets what it named, here none.
	_, body := post(messages[0], "its own")
	assert.Equal(t, string(messages[0]), body)
	assert.NotContains(t, p.lastReply(), xmlns.Reference)
}

// A fault about references in the request comes as ever when the reply may refer to something.
func TestRefusedRequestThatNamesFragments(t *testing.T) {
	p, s, messages := settledReplies(t, 3)
	named := ""
	h, err := responder.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		named = r.Header.Get(negotiate.FragmentsField)
		w.Header().Set("Content-Type", "text/xml")
		if strings.Contains(string(body), "hhfr:ref") {
			fault, _ := soap.BuildFault(soap.V11, soap.Fault{Code: soap.MustUnderstand, Reason: "what is context?"})
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(fault)
			return
		}
		_, _ = w.Write(body)
	}), responder.Config{})
	require.NoError(t, err)
	defer func() { _ = h.Close() }()
	p.responder = h
	for _, m := range messages {
		_, body := call(t, s, "", string(m))
		assert.Equal(t, string(m), body)
	}
	assert.Empty(t, named, "the peer does not understand references")
}
