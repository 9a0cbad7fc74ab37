package capture_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/workload"
)

// pair is a request with its reply.
type pair struct{ request, reply []byte }

// trades are messages with large headers, and their replies.
func trades() iter.Seq[pair] {
	return func(yield func(pair) bool) {
		next, stop := iter.Pull(workload.Headers(7))
		defer stop()
		for {
			request, _ := next()
			request = bytes.Clone(request)
			reply, _ := next()
			if !yield(pair{request, bytes.Clone(reply)}) {
				return
			}
		}
	}
}

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times   = regexp.MustCompile(`2026-03-14T09:2\d:\d\d(\.\d{3})?Z`)
	secrets = regexp.MustCompile(`Xk2vO8m1R5eJwq7FhYpLzS0nTcA=|c2l4dGVlbi1ieXRlcy0wMQ==`)
)

// polls are what a camera is asked all day: identifiers, times, digests and nonces change, and
// sometimes the events.
func polls(t *testing.T, every time.Duration) iter.Seq[pair] {
	request := shared.Read(t, shared.Testdata(t, "soap", "onvif-pullmessages-request.xml"))
	reply := shared.Read(t, shared.Testdata(t, "soap", "onvif-pullmessages-response.xml"))
	return func(yield func(pair) bool) {
		rnd := rand.New(rand.NewPCG(5, 6))
		random := func(n int) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			return b
		}
		at := time.Date(2026, 3, 14, 9, 27, 3, 0, time.UTC)
		for {
			id := random(16)
			fresh := func(m []byte) []byte {
				m = uuids.ReplaceAll(m, fmt.Appendf(nil, "%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
				m = times.ReplaceAllFunc(m, func(old []byte) []byte {
					moment := at.Add(time.Duration(rnd.IntN(4000)) * time.Millisecond)
					if len(old) == len("2026-03-14T09:27:03Z") {
						return moment.AppendFormat(nil, "2006-01-02T15:04:05Z")
					}
					return moment.AppendFormat(nil, "2006-01-02T15:04:05.000Z")
				})
				return secrets.ReplaceAllFunc(m, func(old []byte) []byte {
					n := base64.StdEncoding.DecodedLen(len(old))
					return base64.StdEncoding.AppendEncode(nil, random(n-bytes.Count(old, []byte("="))))
				})
			}
			if !yield(pair{fresh(request), fresh(reply)}) {
				return
			}
			at = at.Add(every)
		}
	}
}

// slowStream is a conversation with calls at an interval.
type slowStream struct {
	octets int64
	// Of both directions: the bytes written, and when the bytes from an offset on were written.
	tapes [2][]byte
	clock [2][]moment
	store ctxstore.Store
}

type moment struct {
	offset int
	at     time.Duration
}

// timed is a taped connection that records when bytes were written.
type timed struct {
	*taped
	began time.Time
	clock []moment
}

func (c *timed) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.clock = append(c.clock, moment{len(c.tape), time.Since(c.began)})
	c.mu.Unlock()
	return c.taped.Write(p)
}

// slowly makes calls for so long, in fast motion, over a stream without some stages, whose ends
// send syncs after an interval.
func slowly(
	t *testing.T, messages iter.Seq[pair], every, long time.Duration, syncs streamer.Config, without uint64,
) (s slowStream) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		here, there := inproc.Pipe(1 << 20)
		began := time.Now()
		a, b := &timed{taped: &taped{Conn: here}, began: began}, &timed{taped: &taped{Conn: there}, began: began}
		s.store = memory.New(memory.Config{})
		book := [2]*binary.Book{binary.NewBook(ctxstore.Shapes{Store: s.store}),
			binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})})}
		with := binary.Options{Without: without}
		var answer []byte
		initiator, responder := syncs, syncs
		responder.Accept = func(context.Context, frame.Hello) (streamer.Admission, error) {
			return streamer.Admission{
				Coder: book[1].Coder(with),
				Handler: func(ctx context.Context, x *streamer.Exchange) {
					_, err := io.Copy(io.Discard, x.Message().Body)
					assert.NoError(t, err)
					assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, answer)))
				},
			}, nil
		}
		var server *streamer.Stream
		var met sync.WaitGroup
		met.Go(func() {
			var err error
			server, err = streamer.Over(t.Context(), b, responder)
			assert.NoError(t, err)
		})
		initiator.Initiator, initiator.Session, initiator.Token = true, [16]byte{3}, make([]byte, frame.TokenLen)
		initiator.Representation, initiator.Coder = frame.Binary, book[0].Coder(with)
		client, err := streamer.Over(t.Context(), a, initiator)
		require.NoError(t, err)
		met.Wait()
		for m := range messages {
			if time.Since(began) >= long {
				break
			}
			answer = m.reply
			r, err := client.Lane(0).Call(t.Context(), streamer.NewMessage(nil, m.request))
			require.NoError(t, err)
			body, err := r.ReadAll(1 << 20)
			require.NoError(t, err)
			require.Equal(t, string(m.reply), string(body))
			time.Sleep(every)
		}
		s.octets = client.Stats().Sent.Octets() + server.Stats().Sent.Octets()
		require.NoError(t, client.Close())
		require.NoError(t, server.Close())
		s.tapes, s.clock = [2][]byte{a.tape, b.tape}, [2][]moment{a.clock, b.clock}
	})
	return s
}

// joined returns how long a decoder that begins at a moment waits for the first message of a
// direction that it reads.
func (s *slowStream) joined(t *testing.T, direction int, from time.Duration) time.Duration {
	t.Helper()
	clock := s.clock[direction]
	i, _ := slices.BinarySearchFunc(clock, from, func(m moment, d time.Duration) int { return int(m.at - d) })
	wait := func(octets int) bool {
		r, err := decodeStreams(t, []run{{"x-1000.bin", s.tapes[direction][clock[i].offset:octets]}},
			capture.DecodeConfig{Store: s.store})
		require.NoError(t, err)
		return slices.ContainsFunc(r.Messages, func(m *capture.Decoded) bool { return m.Whole() })
	}
	n, _ := slices.BinarySearchFunc(clock[i:], true, func(m moment, _ bool) int {
		if wait(m.offset) {
			return 1
		}
		return -1
	})
	require.Less(t, i+n, len(clock), "it never reads anything")
	return clock[i+n-1].at - from
}

// slow are the measured conversations: the interval of the calls, and the duration.
func slow(
	t *testing.T, day bool, measure func(name string, every, long time.Duration, messages func() iter.Seq[pair]),
) {
	all := []struct{ every, long time.Duration }{{time.Minute, 6 * time.Hour}, {5 * time.Second, 2 * time.Hour},
		{time.Second, 30 * time.Minute}} // fewest calls first
	for _, c := range all[:shared.Some(len(all))] {
		if day {
			c.long = 24 * time.Hour
		}
		measure(fmt.Sprintf("trades each %v", c.every), c.every, c.long, trades)
		measure(fmt.Sprintf("polls each %v", c.every), c.every, c.long,
			func() iter.Seq[pair] { return polls(t, c.every) })
	}
}

// Syncs by time let a decoder that begins anywhere read within a quarter of an hour. They add at
// most a twentieth to the bytes of a conversation, unless its calls are too rare for that. Over a
// day it is at most a fifth: a lane that is never emptied goes on learning, and a quarter of an
// hour is the limit, whatever that costs. That is measured where every shape is announced: a text
// that is first of its kind helps until the first sync, and what ends with that is no cost of
// syncs. With such texts, and syncs, nothing takes more than without.
func TestSlowConversationsHaveSyncs(t *testing.T) { slowConversations(t, false) }

func slowConversations(t *testing.T, day bool) {
	slow(t, day, func(name string, every, long time.Duration, messages func() iter.Seq[pair]) {
		t.Run(name, func(t *testing.T) {
			without := slowly(t, messages(), every, long, streamer.Config{SyncInterval: -1}, wire.Plain)
			with := slowly(t, messages(), every, long, streamer.Config{}, wire.Plain)
			texts := slowly(t, messages(), every, long, streamer.Config{}, 0)
			calls := float64(long / every)
			t.Logf("%.0f calls: %.1f bytes a call without syncs by time, %.1f with, %.1f %% more; "+
				"%.1f where texts are first", calls, float64(without.octets)/calls, float64(with.octets)/calls,
				100*(float64(with.octets)/float64(without.octets)-1), float64(texts.octets)/calls)
			assert.LessOrEqual(t, texts.octets, with.octets)
			most := 1.05
			if day {
				most = 1.20
			}
			if every < time.Minute {
				assert.LessOrEqual(t, float64(with.octets), most*float64(without.octets))
			} else {
				each := slowly(t, messages(), every, long, streamer.Config{SyncMessages: 1}, wire.Plain)
				t.Logf("%.1f bytes a call with a sync after each message", float64(each.octets)/calls)
				assert.Less(t, with.octets, each.octets)
			}
			for _, s := range []*slowStream{&with, &texts} {
				longest := s.longestWait(t, long-20*time.Minute)
				t.Logf("a decoder reads after %v at the latest", longest)
				assert.LessOrEqual(t, longest, 15*time.Minute)
			}
		})
	})
}

// longestWait returns how long a decoder waits at most for the first message that it reads, of some
// that begin before a moment.
func (s *slowStream) longestWait(t *testing.T, before time.Duration) (longest time.Duration) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 6 {
		from := time.Duration(rnd.Int64N(int64(before)))
		longest = max(longest, s.joined(t, rnd.IntN(2), from))
	}
	return longest
}

// Calls that are rare have a sync after some of them, or after four hours: with one in each quarter
// of an hour, lanes would remember nothing from one call to the next.
func TestRareCallsHaveFewSyncs(t *testing.T) {
	for every, latest := range map[time.Duration]time.Duration{
		5 * time.Minute: 40 * time.Minute, 20 * time.Minute: 160 * time.Minute, time.Hour: 4 * time.Hour,
	} {
		t.Run(every.String(), func(t *testing.T) {
			const long = 48 * time.Hour
			with := slowly(t, polls(t, every), every, long, streamer.Config{}, 0)
			each := slowly(t, polls(t, every), every, long, streamer.Config{SyncMessages: 1}, 0)
			calls := float64(long / every)
			t.Logf("%.1f bytes a call, %.1f with a sync before each", float64(with.octets)/calls,
				float64(each.octets)/calls)
			assert.Less(t, 2*with.octets, each.octets)
			longest := with.longestWait(t, long-5*time.Hour)
			t.Logf("a decoder reads after %v at the latest", longest)
			assert.LessOrEqual(t, longest, latest+every)
		})
	}
}
