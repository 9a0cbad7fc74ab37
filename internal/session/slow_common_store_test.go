package session_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/workload"
)

// slowCommon are two peers in one process, in virtual time, with a common store that takes half a
// second for everything; stores of their own are quick.
type slowCommon struct {
	t       *testing.T
	shared  *troubled
	handler *responder.Handler
	session *session.Session
	log     *warnings
	served  chan error
	service http.HandlerFunc
	replied string // the last reply in plain HTTP, as it travels
}

// RoundTrip takes no time, and keeps the reply.
func (p *slowCommon) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := inProcess{p.handler}.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	p.replied, resp.Body = string(body), io.NopCloser(bytes.NewReader(body))
	return resp, err
}

// newSlowCommon starts them, with a stream or without one. blocks are agreed on with the session.
func newSlowCommon(t *testing.T, stream bool, names []string, blocks ...string) *slowCommon {
	p := &slowCommon{t: t, shared: &troubled{Store: memory.New(memory.Config{})}, log: &warnings{},
		served: make(chan error, 1), service: repeat}
	slow := func(ctx context.Context, _ bool) error {
		select {
		case <-time.After(slowness):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.shared.trouble.Store(&slow)
	logger := slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	common := unchanging.CommonStore{URL: "http://store.example/", Store: p.shared}
	network := &inproc.Transport{}
	listener, err := network.Listen(t.Context(), "service")
	require.NoError(t, err)
	p.handler, err = responder.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.service(w, r)
	}), responder.Config{
		Store: memory.New(memory.Config{}), Common: &common, Addresses: map[string]string{"inproc": "service"},
		Log: logger,
	})
	require.NoError(t, err)
	go func() { p.served <- p.handler.ServeStreams(context.Background(), listener) }()
	named := common
	for _, text := range names {
		name, err := negotiate.ParseHeaderName(text)
		require.NoError(t, err)
		named.Headers = append(named.Headers, name)
	}
	cfg := session.Config{
		HTTPClient: &http.Client{Transport: p}, Store: memory.New(memory.Config{}), Common: &named, Headers: blocks,
		Transports: map[string]streamer.Transport{}, Log: logger,
	}
	if stream {
		cfg.Transports["inproc"] = network
	}
	p.session = dial(t, "http://service.example/echo", cfg)
	require.Equal(t, stream, p.session.Agreed().HHFR, p.session.Agreed().Why)
	return p
}

// took checks for how long something lasts.
func (p *slowCommon) took(what string, want time.Duration, do func()) {
	p.t.Helper()
	began := time.Now()
	do()
	assert.Equal(p.t, want, time.Since(began), what)
}

// call sends a message, which waits for nothing, and gets it back as it was.
func (p *slowCommon) call(message []byte) {
	p.t.Helper()
	p.took("a message", 0, func() {
		_, body := call(p.t, p.session, "", string(message))
		require.Equal(p.t, string(message), body)
	})
}

// close ends both peers. What is being written to the store is given up.
func (p *slowCommon) close() {
	p.took("close", 0, func() { require.NoError(p.t, p.session.Close()) })
	p.took("close the server", 0, func() { require.NoError(p.t, p.handler.Close()) })
	require.NoError(p.t, <-p.served)
	assert.Empty(p.t, strings.TrimSpace(p.log.text()), "a slow store is no trouble")
}

// A common store that takes half a second for everything: no message on a stream waits for it, be
// it known, the first with a block, or one that makes an entry; in the end blocks are left out. To
// agree on blocks at the beginning takes the time of one entry at the initiator and of one look at
// the responder, however many they are.
func TestSlowCommonStoreUnderAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		messages, _ := firstOf(20, workload.FixedHeaders(1))
		began := time.Now()
		p := newSlowCommon(t, true, workload.FixedHeaderNames())
		assert.Zero(t, time.Since(began), "a session without blocks needs nothing of it")
		for range 3 {
			for _, m := range messages {
				p.call(m)
			}
		}
		assert.Zero(t, p.session.HeadersTaken(), "nothing is there yet")
		time.Sleep(10 * slowness)
		for _, m := range messages {
			p.call(m)
		}
		time.Sleep(10 * slowness)
		for _, m := range messages {
			p.call(m)
		}
		assert.Positive(t, p.session.HeadersTaken())
		p.close()

		var blocks []string
		for i := range 16 {
			blocks = append(blocks, fmt.Sprintf(`<t:Tenant xmlns:t="urn:example:tenant">%d</t:Tenant>`, i))
		}
		began = time.Now()
		p = newSlowCommon(t, true, nil, blocks...)
		assert.Equal(t, 2*slowness, time.Since(began), "the entries, and their reading")
		p.call([]byte(withHeader(blocks[7], "<op/>")))
		assert.EqualValues(t, 1, p.session.HeadersTaken())
		time.Sleep(10 * slowness) // what was agreed on is told to third parties
		p.close()
	})
}

// In plain SOAP the second request with a block waits for its entry in a slow common store, and for
// the receiver, which has not seen it: the request cannot be served without it. The others, and
// replies, wait for nothing.
func TestSlowCommonStoreInPlainSOAP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSlowCommon(t, false, workload.FixedHeaderNames())
		messages, _ := firstOf(20, workload.FixedHeaders(1))
		p.call(messages[0])
		assert.Zero(t, p.session.HeadersTaken())
		p.took("the first reference", 2*slowness, func() {
			_, body := call(t, p.session, "", string(messages[1]))
			require.Equal(t, string(messages[1]), body)
		})
		for _, m := range messages[2:] {
			p.call(m)
		}
		assert.EqualValues(t, len(messages)-1, p.session.HeadersTaken())
		assert.Contains(t, p.replied, xmlns.Reference, "replies refer, too")
		time.Sleep(10 * slowness) // what was agreed on is told to third parties
		p.close()
	})
}

// A block that only replies have is read beside them: they travel whole until it is there.
func TestSlowCommonStoreOfReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newSlowCommon(t, false, []string{"{urn:example:tenant}Tenant"})
		block := `<t:Tenant xmlns:t="urn:example:tenant">` + strings.Repeat("of the service ", 60) + `</t:Tenant>`
		reply := withHeader(block, "<ok/>")
		p.service = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/xml")
			_, _ = w.Write([]byte(reply))
		}
		var whole []bool
		for range 20 {
			p.took("a reply", 0, func() {
				_, body := call(t, p.session, "", envelope("<op/>"))
				require.Equal(t, reply, body)
			})
			whole = append(whole, p.replied == reply)
			time.Sleep(slowness / 4)
		}
		assert.True(t, whole[0])
		assert.False(t, whole[len(whole)-1])
		assert.Contains(t, p.replied, xmlns.Reference)
		p.close()
	})
}
