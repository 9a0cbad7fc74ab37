package soapjms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
)

// ends are a client and a server at a queue.
type ends struct {
	*testing.T
	broker *memory
	client *Requester
	log    *strings.Builder
	logger *slog.Logger // to log
	stop   context.CancelFunc
	served chan struct{}
	left   atomic.Bool // the last request may be handled
}

// start starts them in a bubble; handler answers, and nothing does without.
func start(t *testing.T, cfg RequesterConfig, handler http.HandlerFunc) *ends {
	t.Helper()
	e := &ends{T: t, broker: newMemory(), log: &strings.Builder{}, served: make(chan struct{})}
	e.logger = slog.New(slog.NewTextHandler(e.log, nil))
	ctx, stop := context.WithCancel(t.Context())
	e.stop = stop
	if cfg.Address.Queue == "" {
		cfg.Address = Address{Queue: "q", Priority: defaultPriority}
	}
	if handler == nil {
		close(e.served)
	} else {
		c, err := NewConsumer(ctx, ConsumerConfig{Queues: e.broker, Queue: "q", Handler: handler, Concurrency: 8,
			Log: e.logger})
		require.NoError(t, err)
		go func() {
			c.Run(ctx)
			close(e.served)
		}()
	}
	cfg.Queues, cfg.Log = e.broker, e.logger
	e.client = NewRequester(cfg)
	return e
}

func (e *ends) end() {
	e.Helper()
	require.NoError(e, e.client.Close())
	e.stop()
	<-e.served
}

// call is the status and the body of a reply.
func (e *ends) call(body string) (status int, text string, err error) {
	e.left.Store(false)
	ctx := httptrace.WithClientTrace(e.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { e.left.Store(true) },
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://queue/", strings.NewReader(body))
	require.NoError(e, err)
	r.Header.Set("Content-Type", "text/xml; charset=utf-8")
	r.Header.Set("SOAPAction", `"urn:a"`)
	w, err := e.client.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(w.Body)
	require.NoError(e, err)
	return w.StatusCode, string(b), w.Body.Close()
}

func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	_, _ = io.Copy(w, r.Body)
}

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, RequesterConfig{}, func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, `"urn:a"`, r.Header.Get("SOAPAction"))
			time.Sleep(time.Second)
			echo(w, r)
		})
		defer e.end()
		var wait sync.WaitGroup
		for i := range 40 {
			wait.Go(func() {
				want := strings.Replace(envelope11, "<a/>", fmt.Sprintf("<a>%d</a>", i), 1)
				status, got, err := e.call(want)
				require.NoError(t, err)
				assert.Equal(t, http.StatusOK, status)
				assert.Equal(t, want, got, "each has its own reply")
			})
		}
		wait.Wait()
		assert.Equal(t, 8, e.broker.most, "no more than are handled are had from the broker")
		assert.Equal(t, 2, e.broker.opened)
	})
}

// reply answers by a status and a body of a type; empty: without.
func reply(w http.ResponseWriter, status int, contentType, body string) {
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// What an origin answers without a type is XML, and of the version that it is.
func TestReplyWithoutType(t *testing.T) {
	for envelope, contentType := range map[string]string{envelope11: "text/xml", envelope12: "application/soap+xml"} {
		synctest.Test(t, func(t *testing.T) {
			e := start(t, RequesterConfig{}, func(w http.ResponseWriter, _ *http.Request) {
				reply(w, http.StatusOK, "", envelope)
			})
			defer e.end()
			status, got, err := e.call(envelope11)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, status)
			assert.Equal(t, envelope, got)
			assert.Equal(t, contentType, e.broker.sentTo("temporary-2")[0])
		})
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		says    string
		code    soap.FaultCode
	}{
		"of the service": {func(w http.ResponseWriter, _ *http.Request) {
			b, err := soap.BuildFault(soap.V11, soap.Fault{Code: soap.Server, Reason: "no such order"})
			require.NoError(t, err)
			w.Header().Set("Content-Type", "text/xml")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(b)
		}, "no such order", soap.Server},
		"no service": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no service here", http.StatusNotFound)
		}, "/q: no service here", soap.Client},
		"a panic": {func(http.ResponseWriter, *http.Request) { panic("oops") }, "the service failed", soap.Server},
		"no service, as HTML": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusNotFound, "text/html", "<p>no</p>")
		}, "/q: <p>no</p>", soap.Client},
		"no service, as JSON": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusNotFound, "application/problem+json", `{"title":"no"}`)
		}, `/q: {"title":"no"}`, soap.Client},
		"nothing": {func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusNotFound, "", "") },
			`/q: status 404 Not Found without SOAP, but 0 bytes of type ""`, soap.Client},
		"a page": {func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "text/html", "<p>hi</p>") },
			`status 200 OK without SOAP, but 9 bytes of type "text/html"`, soap.Server},
		"elsewhere": {func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusFound, "text/html", "<a/>") },
			`status 302 Found without SOAP, but 4 bytes of type "text/html"`, soap.Server},
		"elsewhere, without a word": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusFound, "", "")
		}, `status 302 Found without SOAP, but 0 bytes of type ""`, soap.Server},
		"busy": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusServiceUnavailable, "text/xml", "")
		}, `status 503 Service Unavailable without SOAP, but 0 bytes of type "text/xml"`, soap.Server},
		"busy, and no fault": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusServiceUnavailable, "text/xml", envelope11)
		}, fmt.Sprintf(`status 503 Service Unavailable without SOAP, but %d bytes of type "text/xml"`, len(envelope11)),
			soap.Server},
		"without words": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusInternalServerError, "", "oh")
		}, "oh", soap.Server},
		"no words": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusBadGateway, "text/plain", "\xff")
		}, `status 502 Bad Gateway without SOAP, but 1 bytes of type "text/plain"`, soap.Server},
		"a fault of another status": {func(w http.ResponseWriter, _ *http.Request) {
			b, err := soap.BuildFault(soap.V12, soap.Fault{Code: soap.Client, Reason: "no such order"})
			require.NoError(t, err)
			reply(w, http.StatusBadRequest, "application/soap+xml", string(b))
		}, "no such order", soap.Client},
		"too long to relay": {func(w http.ResponseWriter, _ *http.Request) {
			if _, err := w.Write(make([]byte, maxMessage+1)); err != nil {
				panic(http.ErrAbortHandler)
			}
		}, "the reply is longer than 67108864 bytes", soap.Server},
		"too long": {func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 1<<20))
			}
		}, "the reply is longer than 67108864 bytes", soap.Server},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := start(t, RequesterConfig{}, c.handler)
			defer e.end()
			status, text, err := e.call(envelope11)
			require.NoError(t, err, name)
			assert.Equal(t, http.StatusInternalServerError, status, name)
			parsed, err := soap.Parse([]byte(text), soap.Limits{})
			require.NoError(t, err, name)
			f, ok := parsed.Fault()
			require.True(t, ok, name)
			assert.Equal(t, c.says, f.Reason, name)
			assert.Equal(t, c.code, f.Code, name)
		})
	}
}

func TestOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan string, 1)
		e := start(t, RequesterConfig{OneWay: true}, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			heard <- string(b)
			w.WriteHeader(http.StatusAccepted)
		})
		defer e.end()
		status, _, err := e.call(envelope11)
		require.NoError(t, err)
		assert.Equal(t, http.StatusAccepted, status)
		assert.Equal(t, envelope11, <-heard)
	})
}

// What cannot be handled and has nobody to tell is with the dead letters, each with the reason.
func TestDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, RequesterConfig{}, echo)
		defer e.end()
		wrong := jmsRequest(classBytes, envelope11, map[string]any{propContentType: nil})
		wrong.Properties.ReplyTo = nil
		e.broker.put("q", wrong)
		poison := jmsRequest(classBytes, envelope11, nil)
		poison.Header.DeliveryCount = maxDeliveries
		e.broker.put("q", poison)
		bare := &amqp.Message{Properties: &amqp.MessageProperties{}, ApplicationProperties: map[string]any{}}
		e.broker.put("q", bare)
		synctest.Wait()
		var why []any
		for _, m := range e.broker.dead {
			why = append(why, m.ApplicationProperties["why"])
		}
		assert.ElementsMatch(t, []any{"the request has no property SOAPJMS_contentType",
			"the request has no property SOAPJMS_contentType", "begun 5 times without an answer"}, why)
		assert.Contains(t, e.log.String(), "a request cannot be handled")
	})
}

// A broker that is gone for a while: requests that it has not acknowledged are handled again, and
// replies to a queue with a name are had over the next link.
func TestBrokerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, times := make(chan struct{}, 9), 0
		e := start(t, RequesterConfig{Address: Address{Queue: "q", ReplyTo: "answers"}},
			func(w http.ResponseWriter, r *http.Request) {
				times++
				begun <- struct{}{}
				time.Sleep(time.Second)
				echo(w, r)
			})
		defer e.end()
		go func() {
			<-begun
			e.broker.breaks(errors.New("it starts"))
			time.Sleep(5 * time.Second)
			e.broker.breaks(nil)
		}()
		from := time.Now()
		status, text, err := e.call(envelope11)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, envelope11, text)
		assert.Equal(t, 2, times, "at least once")
		assert.Greater(t, time.Since(from), 6*time.Second)
		assert.Contains(t, e.log.String(), "the broker is there again")
	})
}

// The queue of a connection is gone with it, and so is the reply.
func TestRepliesAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, RequesterConfig{}, nil)
		defer e.end()
		go func() {
			time.Sleep(time.Second)
			e.broker.breaks(nil)
		}()
		_, _, err := e.call(envelope11)
		require.ErrorIs(t, err, &Error{Code: NoReply})
		assert.ErrorContains(t, err, "the connection to the broker ended")
		assert.ErrorContains(t, err, "the request may have been handled")
		assert.Len(t, e.broker.queues["q"], 1, "it was not sent again")
		assert.True(t, e.left.Load())
	})
}

// A broker that had the request, or may have, and is gone until the time is over: that it cannot be
// reached says nothing of the request.
func TestBrokerHasIt(t *testing.T) {
	for name, c := range map[string]struct {
		refusing error // the first attempt, with which the broker goes
		then     error // why there is no other link, and otherwise why messages are not taken
	}{
		"accepted":        {nil, errors.New("connection refused")},
		"sent":            {&amqp.LinkError{}, errors.New("connection refused")},
		"sent, then full": {&amqp.LinkError{}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := start(t, RequesterConfig{Address: Address{Queue: "q", ReplyTo: "answers"}}, nil)
			defer e.end()
			e.broker.refusing, e.broker.refuses = c.refusing, 1
			go func() {
				time.Sleep(time.Millisecond)
				if c.then != nil {
					e.broker.breaks(c.then)
					return
				}
				e.broker.mu.Lock()
				defer e.broker.mu.Unlock()
				e.broker.refusing, e.broker.refuses = &amqp.Error{Description: "full"}, 0
			}()
			_, _, err := e.call(envelope11)
			require.ErrorIs(t, err, &Error{Code: NoReply}, name)
			require.NotErrorIs(t, err, &Error{Code: Unreachable}, name)
			assert.ErrorContains(t, err, "the request may have been handled", name)
			assert.True(t, e.left.Load(), name)
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, RequesterConfig{Address: Address{Queue: "q", TimeToLive: 3 * time.Second}}, nil)
		defer e.end()
		from := time.Now()
		_, _, err := e.call(envelope11)
		require.ErrorIs(t, err, &Error{Code: NoReply})
		assert.ErrorContains(t, err, "within 3s from jms:queue:q?timeToLive=3000")
		assert.Equal(t, 3*time.Second, time.Since(from))
		m := e.broker.queues["q"][0]
		assert.Equal(t, 3*time.Second, m.Header.TTL)
		e.broker.put(*m.Properties.ReplyTo, answer(m, classBytes, "text/xml", "", []byte(envelope11), false))
		synctest.Wait()
		assert.Empty(t, e.broker.queues[*m.Properties.ReplyTo], "a late reply is taken")
	})
}

func TestNoBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, RequesterConfig{}, nil)
		defer e.end()
		e.broker.down = errors.New("connection refused")
		from := time.Now()
		_, _, err := e.call(envelope11)
		require.ErrorIs(t, err, &Error{Code: Unreachable})
		assert.Zero(t, time.Since(from), "an address may be wrong: at once")
		assert.False(t, e.left.Load())
		_, err = NewConsumer(t.Context(), ConsumerConfig{Queues: e.broker, Queue: "q"})
		require.ErrorIs(t, err, &Error{Code: Unreachable})
	})
}

// A queue that is full, say: the broker says so, and it is told at once.
func TestBrokerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, RequesterConfig{}, nil)
		defer e.end()
		e.broker.refusing = &amqp.Error{Condition: amqp.ErrCondResourceLimitExceeded, Description: "the queue is full"}
		from := time.Now()
		_, _, err := e.call(envelope11)
		require.ErrorIs(t, err, &Error{Code: Refused})
		assert.ErrorContains(t, err, "the queue is full")
		assert.False(t, e.left.Load())
		assert.Zero(t, time.Since(from))
	})
}

func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, RequesterConfig{}, nil)
		defer e.end()
		_, _, err := e.call(strings.Repeat(" ", maxMessage+1))
		require.ErrorIs(t, err, &Error{Code: TooLarge})
		assert.ErrorContains(t, err, "67108865 bytes, and a queue takes at most 67108864: send it over a stream")
	})
}

// What a server has begun when it ends is answered.
func TestRunEndsWhatIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		e := start(t, RequesterConfig{}, func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			time.Sleep(time.Second)
			echo(w, r)
		})
		defer e.end()
		go func() {
			<-begun
			e.stop()
		}()
		_, text, err := e.call(envelope11)
		require.NoError(t, err)
		assert.Equal(t, envelope11, text)
	})
}

// A broker that gives messages back has them again later, of either end.
func TestGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *ends
		e = start(t, RequesterConfig{}, func(w http.ResponseWriter, r *http.Request) {
			e.broker.mu.Lock()
			e.broker.refusing, e.broker.refuses = errNotNow, 3
			e.broker.mu.Unlock()
			echo(w, r)
		})
		defer e.end()
		e.broker.refusing, e.broker.refuses = errNotNow, 2
		status, text, err := e.call(envelope11)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, status)
		assert.Equal(t, envelope11, text)
		assert.Equal(t, 2, e.broker.opened, "the links stay")
	})
}

// A reply that the broker never takes is not forgotten: its request is with the dead letters.
func TestReplyNeverTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *ends
		e = start(t, RequesterConfig{}, func(w http.ResponseWriter, r *http.Request) {
			e.broker.mu.Lock()
			e.broker.refusing = errNotNow
			e.broker.mu.Unlock()
			echo(w, r)
		})
		defer e.end()
		_, _, err := e.call(envelope11)
		require.ErrorIs(t, err, &Error{Code: NoReply})
		synctest.Wait()
		require.Len(t, e.broker.dead, 1)
		assert.Contains(t, e.broker.dead[0].ApplicationProperties["why"],
			"handled, but the broker does not take the reply to")
	})
}

// A link that sends no more while it still receives is given up: what it has not settled would stay
// with it, and in the end nothing would come.
func TestHalfALinkIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, RequesterConfig{}, echo)
		defer e.end()
		for i := range 20 {
			m := jmsRequest(classBytes, envelope11, nil)
			m.Properties.MessageID = i
			e.broker.put("q", m)
		}
		e.broker.mu.Lock()
		e.broker.refusing, e.broker.refuses = &amqp.LinkError{RemoteErr: &amqp.Error{Description: "detached"}}, 3
		e.broker.mu.Unlock()
		for range 100 {
			time.Sleep(time.Second)
			if e.broker.answered() == 20 {
				break
			}
		}
		assert.Equal(t, 20, e.broker.answered(), "all are, in the end")
		synctest.Wait()
		assert.Greater(t, e.broker.opened, 1)
		assert.Contains(t, e.log.String(), "a request may come again")
	})
}

// A handler that cannot now gives the request back, and it is there again.
func TestNotNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := 0
		e := start(t, RequesterConfig{Paths: true}, func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, "/q", r.URL.Path, "/ names no service")
			if times++; times < 9 {
				time.Sleep(time.Second)
				panic(ErrNotNow)
			}
			echo(w, r)
		})
		defer e.end()
		_, text, err := e.call(envelope11)
		require.NoError(t, err)
		assert.Equal(t, envelope11, text)
		assert.Equal(t, 9, times)
		assert.Empty(t, e.broker.dead)
	})
}
