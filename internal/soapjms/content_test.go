package soapjms

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// aside is a form of messages whose readers need a store.
type aside struct{ store *asideStore }

type asideStore struct {
	mu    sync.Mutex
	marks map[string]bool
	lost  bool
}

func newAside() aside { return aside{&asideStore{marks: map[string]bool{}}} }

func (a aside) Pack(message []byte) ([]byte, error) {
	return append([]byte("packed:"), message...), nil
}

func (a aside) Unpack(packed []byte, _ int) ([]byte, error) {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	message, is := bytes.CutPrefix(packed, []byte("packed:"))
	if !is || a.store.lost {
		return nil, errors.New("unknown shape")
	}
	return message, nil
}

func (a aside) Mark(context.Context) (string, error) {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	a.store.marks["mark"] = true
	return "mark", nil
}

func (a aside) Shares(_ context.Context, name string) (bool, error) {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	return a.store.marks[name], nil
}

func (a aside) lose(lost bool) {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	a.store.lost = lost
}

// startWithContent is start where both ends have a form of content, or nil, and the server also
// reads the queue for it.
func startWithContent(t *testing.T, cfg RequesterConfig, client, server ContentForm, handler http.HandlerFunc) *ends {
	cfg.Content = client
	e := start(t, cfg, nil)
	ctx, stop := context.WithCancel(t.Context())
	e.stop, e.served = stop, make(chan struct{})
	var wait sync.WaitGroup
	all, err := NewConsumers(ctx, ConsumerConfig{Queues: e.broker, Queue: "q", Service: "q", Content: server,
		Handler: handler, Concurrency: 8, Log: e.logger})
	require.NoError(t, err)
	for _, c := range all {
		wait.Go(func() { c.Run(ctx) })
	}
	go func() {
		wait.Wait()
		close(e.served)
	}()
	return e
}

// sentTo are the content types of what was sent to a queue, and bodies.
func (b *memory) sentTo(queue string) (types []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.sent {
		if *m.Properties.To == queue {
			types = append(types, text(m, propContentType))
		}
	}
	return types
}

// The first request is XML, and what follows is content, of which each reply is content, too.
func TestContentIsAgreedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := newAside()
		e := startWithContent(t, RequesterConfig{}, both, both, func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, `"urn:a"`, r.Header.Get("SOAPAction"))
			assert.Equal(t, "/q", r.URL.Path)
			echo(w, r)
		})
		defer e.end()
		for range 3 {
			status, got, err := e.call(envelope11)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, status)
			assert.Equal(t, envelope11, got)
		}
		packed := `application/vnd.hhfr; of="text/xml; charset=utf-8"`
		assert.Equal(t, []string{"text/xml; charset=utf-8"}, e.broker.sentTo("q"))
		assert.Equal(t, []string{packed, packed}, e.broker.sentTo("q.hhfr"))
		assert.Equal(t, []string{"text/xml; charset=utf-8", packed, packed}, e.broker.sentTo("temporary-3"))
		assert.Equal(t, Saved{2, int64(2 * len(envelope11)), int64(2 * (len(envelope11) + len("packed:")))},
			e.client.Saved())
	})
}

// Whoever does not say so, or has another store, gets and sends XML alone.
func TestContentIsNotAgreedOn(t *testing.T) {
	for name, c := range map[string]struct{ client, server ContentForm }{
		"another store": {newAside(), newAside()},
		"an old server": {newAside(), nil}, "an old client": {nil, newAside()},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := startWithContent(t, RequesterConfig{}, c.client, c.server, echo)
			defer e.end()
			for range 3 {
				_, got, err := e.call(envelope11)
				require.NoError(t, err, name)
				assert.Equal(t, envelope11, got, name)
			}
			assert.Len(t, e.broker.sentTo("q"), 3, name)
			assert.Empty(t, e.broker.sentTo("q.hhfr"), name)
		})
	}
}

// A server that cannot read content says so, and the request is sent as XML; after a while content
// is sent again.
func TestContentIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, handled := newAside(), 0
		e := startWithContent(t, RequesterConfig{}, both, both, func(w http.ResponseWriter, r *http.Request) {
			handled++
			echo(w, r)
		})
		defer e.end()
		for range 2 {
			_, _, err := e.call(envelope11)
			require.NoError(t, err)
		}
		both.lose(true)
		for range 3 {
			status, got, err := e.call(envelope11)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, status)
			assert.Equal(t, envelope11, got)
		}
		assert.Len(t, e.broker.sentTo("q.hhfr"), 2, "it is not tried with each request")
		assert.Equal(t, 5, handled)
		assert.Contains(t, e.log.String(), "messages go as XML again")
		assert.Contains(t, e.log.String(), "unknown shape")
		both.lose(false)
		time.Sleep(firstTruce)
		for range 2 {
			_, _, err := e.call(envelope11)
			require.NoError(t, err)
		}
		assert.Len(t, e.broker.sentTo("q.hhfr"), 3)
	})
}

// A server without the store took the place of the one with it: the request is lost with a word,
// and the next ones go as XML.
func TestNobodyReadsContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := newAside()
		e := startWithContent(t, RequesterConfig{}, both, both, echo)
		_, _, err := e.call(envelope11)
		require.NoError(t, err)
		e.stop()
		<-e.served
		_, _, err = e.call(envelope11)
		require.ErrorIs(t, err, &Error{Code: NoReply})
		ctx, stop := context.WithCancel(t.Context())
		c, err := NewConsumer(ctx, ConsumerConfig{Queues: e.broker, Queue: "q", Handler: http.HandlerFunc(echo),
			Concurrency: 8, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		served := make(chan struct{})
		go func() {
			c.Run(ctx)
			close(served)
		}()
		_, got, err := e.call(envelope11)
		require.NoError(t, err)
		assert.Equal(t, envelope11, got)
		stop()
		<-served
		require.NoError(t, e.client.Close())
	})
}

// One-way messages ask for a reply as long as nothing is agreed on, and a reply without SOAP says
// so.
func TestContentOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := newAside()
		var heard []string
		cfg := RequesterConfig{OneWay: true}
		e := startWithContent(t, cfg, both, both, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			heard = append(heard, string(b))
			w.WriteHeader(http.StatusAccepted)
		})
		defer e.end()
		for range 3 {
			status, _, err := e.call(envelope11)
			require.NoError(t, err)
			assert.Equal(t, http.StatusAccepted, status)
			synctest.Wait()
		}
		assert.Equal(t, []string{envelope11, envelope11, envelope11}, heard)
		assert.Len(t, e.broker.sentTo("q"), 1)
		assert.Len(t, e.broker.sentTo("q.hhfr"), 2)
		// What nobody can be told of is with the dead letters.
		both.lose(true)
		_, _, err := e.call(envelope11)
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, e.broker.dead, 1)
		assert.Equal(t, "content that cannot be read: unknown shape", e.broker.dead[0].ApplicationProperties["why"])
	})
}

// A service that has nothing to say says so to clients that understand it.
func TestReplyWithoutSOAP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := newAside()
		e := startWithContent(t, RequesterConfig{}, both, both, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
		})
		defer e.end()
		for range 2 {
			status, got, err := e.call(envelope11)
			require.NoError(t, err)
			assert.Equal(t, http.StatusAccepted, status)
			assert.Empty(t, got)
		}
	})
}

// A reply that cannot be read is not a request that was not handled.
func TestContentOfReplyIsMalformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := newAside()
		e := startWithContent(t, RequesterConfig{}, both, both, func(w http.ResponseWriter, r *http.Request) {
			both.lose(true)
			echo(w, r)
		})
		defer e.end()
		e.client.agreement.holds = true
		_, _, err := e.call(envelope11)
		require.ErrorIs(t, err, &Error{Code: Malformed})
		assert.ErrorContains(t, err, "the request was handled")
		assert.False(t, e.client.agreement.is())
	})
}

func TestUnpackedLeavesItsMessage(t *testing.T) {
	m := jmsRequest(classBytes, "packed:"+envelope11, map[string]any{propContentType: contentType("text/xml")})
	plain, is, err := unpacked(newAside(), m)
	require.NoError(t, err)
	assert.True(t, is)
	assert.Equal(t, [][]byte{[]byte(envelope11)}, plain.Data)
	assert.Equal(t, "text/xml", text(plain, propContentType))
	assert.Equal(t, `application/vnd.hhfr; of="text/xml"`, text(m, propContentType))
	_, is, err = unpacked(nil, m)
	require.Error(t, err)
	assert.True(t, is)
	same, is, err := unpacked(nil, &amqp.Message{})
	require.NoError(t, err)
	assert.False(t, is)
	assert.NotNil(t, same)
}
