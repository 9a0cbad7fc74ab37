package soapjms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answers remembers what was answered; with lost nobody knows.
type answers struct {
	mu     sync.Mutex
	by     map[string]chan []byte
	lost   bool
	broken int
}

func (a *answers) Do(ctx context.Context, id, _ string, handle func(context.Context, bool) ([]byte, error)) (
	_ []byte, _ bool, err error) {
	a.mu.Lock()
	if a.broken--; a.broken >= 0 {
		a.mu.Unlock()
		return nil, false, errors.New("the store is gone")
	}
	at, again := a.by[id]
	if !again {
		at = make(chan []byte, 1)
		a.by[id] = at
	}
	a.mu.Unlock()
	if a.lost {
		return nil, false, nil
	}
	var reply []byte
	if again {
		reply = <-at
	}
	if reply == nil {
		reply, err = handle(ctx, true)
	}
	at <- reply
	return reply, true, err
}

func (a *answers) MaxReply() int { return 12 << 20 }

// startOnce starts several servers, and what ends each of them.
func startOnce(t *testing.T, broker *memory, once Once, log *strings.Builder, handler http.HandlerFunc) (
	kill []func(), wait func()) {
	t.Helper()
	var all sync.WaitGroup
	logger := slog.New(slog.NewTextHandler(log, nil))
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		c, err := NewConsumer(ctx, ConsumerConfig{Queues: broker, Queue: "q", Handler: handler, Concurrency: 4,
			Once: once, Log: logger})
		require.NoError(t, err)
		all.Go(func() { c.Run(ctx) })
		kill = append(kill, func() {
			stop()
			_ = c.link.Close() // what it has begun is not acknowledged
		})
	}
	return kill, all.Wait
}

// Two servers, one of which is killed: what it has begun and not acknowledged comes to the other
// one, with its reply, and nothing is handled twice.
func TestOnceOverKills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, once := newMemory(), &answers{by: map[string]chan []byte{}}
		handled := map[string]int{}
		var mu sync.Mutex
		kill, wait := startOnce(t, broker, once, &strings.Builder{}, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			handled[r.Header.Get("SOAPAction")]++
			mu.Unlock()
			time.Sleep(time.Second)
			echo(w, r)
		})
		for i := range 40 {
			m := jmsRequest(classText, envelope11, map[string]any{propSOAPAction: fmt.Sprint(i)})
			m.Properties.MessageID = fmt.Sprint(i)
			broker.put("q", m)
		}
		time.Sleep(5500 * time.Millisecond)
		kill[0]()
		for range 100 {
			time.Sleep(time.Second)
		}
		synctest.Wait()
		assert.Equal(t, 40, broker.answered(), "nothing is lost")
		assert.Len(t, handled, 40)
		for action, n := range handled {
			assert.Equal(t, 1, n, action)
		}
		assert.Empty(t, broker.dead)
		kill[1]()
		wait()
	})
}

// One that is sent again has the reply again, at the queue that it names then.
func TestOnceIsAnsweredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, once, handled := newMemory(), &answers{by: map[string]chan []byte{}}, 0
		kill, wait := startOnce(t, broker, once, &strings.Builder{}, func(w http.ResponseWriter, r *http.Request) {
			handled++
			echo(w, r)
		})
		for _, queue := range []string{"one", "other"} {
			m := jmsRequest(classText, envelope11, nil)
			m.Properties.ReplyTo = &queue
			broker.put("q", m)
			synctest.Wait()
			require.Len(t, broker.queues[queue], 1)
			reply := broker.queues[queue][0]
			assert.Equal(t, envelope11, reply.Value)
			assert.Equal(t, "ID:1", reply.Properties.CorrelationID)
			assert.Equal(t, "text/xml; charset=utf-8", text(reply, propContentType))
		}
		assert.Equal(t, 1, handled)
		for _, end := range kill {
			end()
		}
		wait()
	})
}

// What a service fails at for ever is begun so often, and no more; a reply that cannot be
// remembered is a fault at once.
func TestOncePoison(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		begun   int
		answers int
		dead    any // why a request without a reply is dead
	}{
		"an error": {func(http.ResponseWriter, *http.Request) { panic(errors.New("bug")) }, maxDeliveries, 0,
			"begun 5 times without an answer"},
		"another panic": {func(http.ResponseWriter, *http.Request) { panic("bug") }, maxDeliveries, 0,
			"begun 5 times without an answer"},
		"a long reply": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusOK, "text/xml", strings.Repeat("x", 12<<20))
		}, 1, 1, "the reply is longer than 12582912 bytes: nothing was done"},
		"a longer one": {func(w http.ResponseWriter, _ *http.Request) {
			if _, err := w.Write(make([]byte, maxMessage+1)); err != nil {
				panic(http.ErrAbortHandler)
			}
		}, 1, 1, "the reply is longer than 67108864 bytes: nothing was done"},
	} {
		for _, replies := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				broker, begun := newMemory(), 0
				kill, wait := startOnce(t, broker, &answers{by: map[string]chan []byte{}}, &strings.Builder{},
					func(w http.ResponseWriter, r *http.Request) {
						begun++
						c.handler(w, r)
					})
				m := jmsRequest(classBytes, envelope11, nil)
				if !replies {
					m.Properties.ReplyTo = nil
				}
				broker.put("q", m)
				time.Sleep(time.Hour)
				synctest.Wait()
				assert.Equal(t, c.begun, begun, name)
				if replies && c.answers > 0 {
					require.Len(t, broker.queues["answers"], c.answers, name)
					assert.Contains(t, string(broker.queues["answers"][0].Data[0]), c.dead, name)
					assert.Empty(t, broker.dead, name)
				} else {
					require.Len(t, broker.dead, 1, name)
					assert.Equal(t, c.dead, broker.dead[0].ApplicationProperties["why"], name)
				}
				for _, end := range kill {
					end()
				}
				wait()
			})
		}
	}
}

// What a service failed at is not taken for what the store of requests failed at.
func TestServiceFailureHidesItsCause(t *testing.T) {
	err := error(serviceFailure{fmt.Errorf("%w: so it is", http.ErrAbortHandler)})
	assert.NotErrorIs(t, err, http.ErrAbortHandler)
	assert.ErrorContains(t, err, "so it is")
}

// A request without a reply that was wrong is with the dead letters, also when the server whose it
// was ended before it could say so.
func TestOnceRemembersWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker, begun := newMemory(), 0
		kill, wait := startOnce(t, broker, &answers{by: map[string]chan []byte{}}, &strings.Builder{},
			func(w http.ResponseWriter, _ *http.Request) {
				if begun++; begun == 1 {
					broker.breaks(nil)
				}
				http.Error(w, "no service here", http.StatusNotFound)
			})
		m := jmsRequest(classBytes, envelope11, nil)
		m.Properties.ReplyTo = nil
		broker.put("q", m)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, begun)
		require.Len(t, broker.dead, 1)
		assert.Equal(t, "/q: no service here", broker.dead[0].ApplicationProperties["why"])
		again := jmsRequest(classBytes, envelope11, nil)
		broker.put("q", again)
		synctest.Wait()
		require.Len(t, broker.queues["answers"], 1)
		assert.NotContains(t, broker.queues["answers"][0].ApplicationProperties, propWhy)
		for _, end := range kill {
			end()
		}
		wait()
	})
}

func TestOnceFails(t *testing.T) {
	for name, c := range map[string]struct {
		once    *answers
		change  func(m *amqp.Message)
		handler http.HandlerFunc
		says    string // in the reply
		logged  string
	}{
		"nobody knows": {&answers{lost: true}, nil, echo, "nobody knows whether it was handled", ""},
		"no id": {&answers{}, func(m *amqp.Message) { m.Properties.MessageID = nil }, echo,
			"the request has no JMSMessageID", ""},
		"the store is gone": {&answers{broken: 3}, nil, echo, "<a/>", "the store is gone"},
		"the handler gives up": {&answers{}, nil, func() http.HandlerFunc {
			times := 0
			return func(w http.ResponseWriter, r *http.Request) {
				if times++; times < 4 {
					panic(fmt.Errorf("%w: no space", http.ErrAbortHandler))
				}
				echo(w, r)
			}
		}(), "<a/>", "no space"},
	} {
		synctest.Test(t, func(t *testing.T) {
			broker, log := newMemory(), &strings.Builder{}
			c.once.by = map[string]chan []byte{}
			kill, wait := startOnce(t, broker, c.once, log, c.handler)
			m := jmsRequest(classBytes, envelope11, nil)
			if c.change != nil {
				c.change(m)
			}
			broker.put("q", m)
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Len(t, broker.queues["answers"], 1, name)
			assert.Contains(t, string(broker.queues["answers"][0].Data[0]), c.says, name)
			assert.Contains(t, log.String(), c.logged, name)
			assert.Empty(t, broker.dead, name)
			for _, end := range kill {
				end()
			}
			wait()
		})
	}
}

// A request as content that one server handled, whose link ended before it was acknowledged, and
// that another one cannot read, comes as XML, and has the reply from before.
func TestOnceOverRefusedContent(t *testing.T) {
	for name, replyTo := range map[string]string{"a queue with a name": "answers", "its own": ""} {
		synctest.Test(t, func(t *testing.T) {
			broker, content, handled := newMemory(), newAside(), 0
			once, logger := &answers{by: map[string]chan []byte{}}, slog.New(slog.DiscardHandler)
			var drop func()
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if handled++; drop != nil {
					drop()
				}
				echo(w, r)
			})
			ctx, stop := context.WithCancel(t.Context())
			all, err := NewConsumers(ctx, ConsumerConfig{Queues: broker, Queue: "q", Handler: handler, Concurrency: 4,
				Once: once, Content: content, Log: logger})
			require.NoError(t, err)
			var served sync.WaitGroup
			for _, c := range all {
				served.Go(func() { c.Run(ctx) })
			}
			e := &ends{T: t, broker: broker, client: NewRequester(RequesterConfig{Queues: broker, Content: content,
				Address: Address{Queue: "q", Priority: defaultPriority, ReplyTo: replyTo}, Log: logger})}
			for range 2 {
				_, _, err := e.call(envelope11)
				require.NoError(t, err, name)
			}
			drop = func() { // the links of the servers end, and the next has no shapes
				broker.mu.Lock()
				defer broker.mu.Unlock()
				for l := range broker.links {
					if l.queue == "q" || l.queue == "q.hhfr" {
						l.end(errBroken)
					}
				}
				content.lose(true)
			}
			_, got, err := e.call(envelope11)
			require.NoError(t, err, name)
			assert.Equal(t, envelope11, got, name)
			assert.Equal(t, 3, handled, name)
			assert.Len(t, broker.sentTo("q"), 2, "it was sent as XML: %s", name)
			require.NoError(t, e.client.Close())
			stop()
			served.Wait()
		})
	}
}
