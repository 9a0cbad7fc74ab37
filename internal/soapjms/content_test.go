package soapjms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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
		assert.False(t, e.client.agreement.is(t.Context()))
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

// askedStore is a form whose store answers by these functions; nil: as that of aside.
type askedStore struct {
	aside
	mark   func(ctx context.Context) (string, error)
	shares func(ctx context.Context) (bool, error)
	unpack func() error
}

func (a askedStore) Mark(ctx context.Context) (string, error) {
	if a.mark == nil {
		return a.aside.Mark(ctx)
	}
	return a.mark(ctx)
}

func (a askedStore) Shares(ctx context.Context, name string) (bool, error) {
	if a.shares == nil {
		return a.aside.Shares(ctx, name)
	}
	return a.shares(ctx)
}

func (a askedStore) Unpack(packed []byte, most int) ([]byte, error) {
	if a.unpack != nil {
		if err := a.unpack(); err != nil {
			return nil, err
		}
	}
	return a.aside.Unpack(packed, most)
}

// A store that does not answer has no reply be late.
func TestSlowStoreOfClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		slow := askedStore{aside: newAside(), shares: func(ctx context.Context) (bool, error) {
			asked++
			<-ctx.Done()
			return false, ctx.Err()
		}}
		e := startWithContent(t, RequesterConfig{}, slow, newAside(), echo)
		begin := time.Now()
		_, _, err := e.call(envelope11)
		require.NoError(t, err)
		assert.Zero(t, time.Since(begin))
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				_, _, err := e.call(envelope11)
				require.NoError(t, err)
			})
		}
		wait.Wait()
		assert.Equal(t, lookPause, time.Since(begin), "what is sent waits no longer")
		e.end()
		assert.Equal(t, lookPause, time.Since(begin), "and the end does not")
		assert.Equal(t, 1, asked)
	})
}

// Two servers with other stores: the store is asked once, and after a while again.
func TestOtherStoresOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, made := 0, 0
		client := askedStore{aside: newAside(), shares: func(context.Context) (bool, error) {
			asked++
			return false, nil
		}}
		server := askedStore{aside: newAside(), mark: func(context.Context) (string, error) {
			made++
			return fmt.Sprint(made % 2), nil
		}}
		e := startWithContent(t, RequesterConfig{}, client, server, echo)
		defer e.end()
		for _, want := range []int{1, 2} {
			for range 100 {
				_, _, err := e.call(envelope11)
				require.NoError(t, err)
			}
			synctest.Wait()
			assert.Equal(t, want, asked)
			assert.Equal(t, want, strings.Count(e.log.String(), "another store"))
			time.Sleep(firstTruce)
		}
	})
}

// A store that does not take a mark is asked by one reply at once, and not again for a while.
func TestStoreOfServerTakesNoMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both, asked := newAside(), 0
		server := askedStore{aside: both, mark: func(ctx context.Context) (string, error) {
			if asked++; asked > 1 {
				return both.Mark(ctx)
			}
			<-ctx.Done()
			return "", ctx.Err()
		}}
		e := startWithContent(t, RequesterConfig{}, both, server, echo)
		defer e.end()
		begin := time.Now()
		var wait sync.WaitGroup
		var late atomic.Int32
		for range 8 {
			wait.Go(func() {
				_, _, err := e.call(envelope11)
				require.NoError(t, err)
				if time.Since(begin) > 0 {
					late.Add(1)
				}
			})
		}
		wait.Wait()
		for range 8 {
			_, _, err := e.call(envelope11)
			require.NoError(t, err)
		}
		assert.EqualValues(t, 1, late.Load())
		assert.Equal(t, lookTime, time.Since(begin))
		assert.Equal(t, 1, asked)
		time.Sleep(firstTruce)
		for range 2 {
			_, _, err := e.call(envelope11)
			require.NoError(t, err)
		}
		assert.Len(t, e.broker.sentTo("q.hhfr"), 1)
	})
}

// Content whose store fails comes again, and is handled when that is there: nothing is refused.
func TestStoreFailsForAWhile(t *testing.T) {
	for name, oneWay := range map[string]bool{"with a reply": false, "one-way": true} {
		synctest.Test(t, func(t *testing.T) {
			both, handled := newAside(), 0
			server := askedStore{aside: both, unpack: func() error {
				both.store.mu.Lock()
				defer both.store.mu.Unlock()
				if both.store.lost {
					return fmt.Errorf("%w: connection refused", ErrNotNow)
				}
				return nil
			}}
			e := startWithContent(t, RequesterConfig{OneWay: oneWay}, both, server,
				func(w http.ResponseWriter, r *http.Request) {
					handled++
					echo(w, r)
				})
			defer e.end()
			e.client.agreement.holds = true
			both.lose(true)
			time.AfterFunc(30*time.Second, func() { both.lose(false) })
			_, _, err := e.call(envelope11)
			require.NoError(t, err, name)
			time.Sleep(time.Minute)
			synctest.Wait()
			assert.Equal(t, 1, handled, name)
			assert.Empty(t, e.broker.dead, name)
			assert.Empty(t, e.broker.sentTo("q"), "it is not sent as XML: %s", name)
			assert.Contains(t, e.log.String(), "content that cannot be read now")
			assert.Contains(t, e.log.String(), "connection refused")
		})
	}
}
