package soaprm_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// long is a message of more than 4 MiB, and its number.
func long(n int) []byte {
	return bytes.Replace(entry(soap.V11, n), []byte("<add>"), []byte("<add>"+strings.Repeat("x", 4<<20)+"-"), 1)
}

func pieces(t *testing.T, store ctxstore.Store) (n int) {
	for _, err := range store.List(t.Context(), "urn:hhfr:piece:") {
		require.NoError(t, err)
		n++
	}
	return n
}

// Long messages and replies, with both ends restarted from their stores meanwhile: each is handled
// once and in order, gets its own reply, and leaves nothing.
func TestLongMessagesOverCrashes(t *testing.T) {
	for _, w := range append([]way{{"connection", func(e *ends, p pairing) *soaprm.SequenceSource {
		return e.source(p.version, p.space, p.soap)
	}}}, ways...) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			e := newEnds(t, 5, 0)
			e.clock = clock.Scaled(4) // a message takes a while
			e.restart()
			e.within = false // the book would have it all in its transactions
			p := pairings[2]
			s := w.open(e, p)
			_, err := s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: long(0), Action: "urn:add"})
			require.NoError(t, err)
			require.NoError(t, s.Close())
			e.restart()
			s = w.open(e, p)
			var last *soaprm.SentMessage
			for n := 1; n < 2; n++ {
				last, err = s.Send(t.Context(), soaprm.OutgoingEnvelope{Envelope: long(n), Action: "urn:add"})
				require.NoError(t, err)
			}
			reply, err := last.Reply(t.Context())
			require.NoError(t, err)
			assert.True(t, bytes.Contains(reply.Envelope, []byte("x-1</of>")))
			require.NoError(t, s.Finish(t.Context()))
			require.NoError(t, s.Close())
			require.Len(t, e.calls, 2)
			for n, call := range e.calls {
				assert.True(t, strings.HasSuffix(call, fmt.Sprintf("x-%d", n)))
			}
			require.NoError(t, e.served.Close())
			assert.Zero(t, pieces(t, e.mine))
			assert.Zero(t, pieces(t, e.store))
		})
	}
}

// A long message behind a gap in its sequence is not held, and comes again.
func TestLongMessageBehindAGap(t *testing.T) {
	k := &talk{ends: newEnds(t, 1, 0), pairing: pairings[2]}
	k.within = false
	k.create()
	send := func(n uint64) int {
		message := k.make("urn:add", "<add>"+strings.Repeat("x", 4<<20)+"</add>",
			header.Blocks{Sequence: k.id, Number: n})
		r := httptest.NewRequest(http.MethodPost, where, bytes.NewReader(message))
		r.Header.Set("Content-Type", "text/xml")
		w := httptest.NewRecorder()
		k.link.handler.ServeHTTP(w, r)
		return w.Code
	}
	assert.Equal(t, http.StatusServiceUnavailable, send(2))
	assert.Empty(t, k.calls)
	assert.Equal(t, http.StatusOK, send(1))
	assert.Equal(t, http.StatusOK, send(2))
	assert.Len(t, k.calls, 2)
}

// countedBody is a request's body without end that counts what is read of it.
type countedBody struct{ read atomic.Int64 }

func (b *countedBody) Read(p []byte) (int, error) {
	b.read.Add(int64(len(p)))
	clear(p)
	return len(p), nil
}

// Of long requests four are in memory; of others little more than 4 MiB is read until one of those
// is over.
func TestLongMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		service := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-over
			w.WriteHeader(http.StatusNoContent)
		})
		served, err := soaprm.NewDestination(t.Context(), service,
			soaprm.DestinationConfig{Store: memory.New(memory.Config{})})
		require.NoError(t, err)
		defer func() { require.NoError(t, served.Close()) }()
		post := func(body io.Reader) {
			r := httptest.NewRequest(http.MethodPost, "/", body)
			r.Header.Set("Content-Type", "text/xml")
			served.ServeHTTP(httptest.NewRecorder(), r)
		}
		for range 4 {
			go post(bytes.NewReader(long(1)))
		}
		synctest.Wait()
		next := &countedBody{}
		go post(io.LimitReader(next, 8<<20))
		short := make(chan struct{})
		go func() {
			post(bytes.NewReader(entry(soap.V11, 1)))
			close(short)
		}()
		synctest.Wait()
		assert.Less(t, next.read.Load(), int64(6<<20))
		assert.Greater(t, next.read.Load(), int64(4<<20))
		close(over)
		<-short
		synctest.Wait()
		assert.GreaterOrEqual(t, next.read.Load(), int64(8<<20))
	})
}
