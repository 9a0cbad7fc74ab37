package streamer_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	codec "github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// learning is a coder that packs, with a store of its own; it takes the peer to have some shapes.
func learning(t testing.TB, peerKnows ...[]byte) *codec.Coder {
	t.Helper()
	book := codec.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})})
	for _, m := range peerKnows {
		require.NoError(t, book.Coder(codec.Options{}).Split(0, 16000, drop).All(m))
	}
	return book.Coder(codec.Options{PeerKnows: book.Known(100)})
}

func drop(bool, wire.Part) error { return nil }

// event is a message of a kind whose shape a coder learns from the first one.
func event(n int, text string) []byte {
	return fmt.Appendf(nil,
		`<e:Event xmlns:e="urn:events"><e:Number>%d</e:Number>`+
			`<e:Station>north-%d</e:Station><e:Text>%s</e:Text></e:Event>`, n, n%7, text)
}

func callWith(t testing.TB, s *streamer.Stream, lane uint64, m []byte) {
	t.Helper()
	reply, err := s.Lane(lane).Call(t.Context(), streamer.NewMessage(nil, m))
	if assert.NoError(t, err) {
		assert.Equal(t, string(m), body(t, reply))
	}
}

// What lanes remember follows the order of the frames, whoever sends, and whatever syncs come
// between.
func TestMemoryFollowsTheOrderOfFrames(t *testing.T) {
	p := connect(t, pairing{a: streamer.Config{SyncMessages: 7}, codera: learning(t), coderb: learning(t),
		handlerb: echo})
	var wg sync.WaitGroup
	for lane := range uint64(4) {
		for range 2 {
			wg.Go(func() {
				for i := range 60 {
					callWith(t, p.a, lane, event(i, strings.Repeat("x", i%3*i*i*9)))
				}
			})
		}
	}
	wg.Wait()
	assert.Positive(t, p.a.Stats().Sent.Sync.Frames)
}

// Messages that wait for a shape which the peer lacks go on in order, and those behind them.
func TestMemoryOfHeldMessages(t *testing.T) {
	p := connect(t, pairing{a: streamer.Config{SyncMessages: 3}, codera: learning(t, event(1, "a")),
		coderb: learning(t), handlerb: echo})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { callWith(t, p.a, uint64(i%2), event(i, "held")) })
	}
	wg.Wait()
}

// After messages were given up unread, the lane goes on once its sender has heard of it.
func TestMessagesGivenUpLoseTheMemory(t *testing.T) {
	p := connect(t, pairing{codera: learning(t, event(1, "a")), coderb: learning(t), handlerb: echo,
		b: streamer.Config{Limits: streamer.Limits{MaxHeld: 100}}})
	refused := 0
	var text strings.Builder // that gets no shorter
	for i := range 10 {
		fmt.Fprintf(&text, "%x ", sha256.Sum256([]byte{byte(i)}))
	}
	long := event(1, text.String())
	for range 50 {
		reply, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, long))
		if err == nil {
			assert.Len(t, body(t, reply), len(long))
			break
		}
		require.ErrorIs(t, err, &streamer.Error{Code: streamer.Unprocessed})
		refused++
	}
	assert.Positive(t, refused)
	require.Less(t, refused, 50)
	for i := range 5 {
		callWith(t, p.a, 1, event(i, "again"))
	}
}

// Messages that the receiver refuses change the memory of their lane all the same.
func TestRefusedMessagesCountForTheMemory(t *testing.T) {
	p := connect(t, pairing{codera: learning(t), coderb: learning(t)}) // nobody serves
	for i := range 20 {
		_, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, event(i, "refused")))
		require.ErrorIs(t, err, &streamer.Error{Code: streamer.Unserved})
	}
	assert.NoError(t, p.b.Err())
}

// Streams that are idle for long, again and again, say nothing of it where their memories are
// small, and go on in step.
func TestIdleStreamsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, pairing{codera: learning(t), coderb: learning(t), handlerb: echo})
		for i := range 3 {
			callWith(t, p.a, 1, event(i, "call"))
			time.Sleep(14 * time.Second)
		}
		for i := range 3 {
			said := p.a.Stats().Sent.Octets()
			time.Sleep(time.Hour)
			synctest.Wait()
			assert.Equal(t, said, p.a.Stats().Sent.Octets())
			callWith(t, p.a, 1, event(i, "call"))
		}
		require.NoError(t, p.a.Close())
		require.NoError(t, p.b.Close())
		synctest.Wait()
	})
}

// Lanes that are idle and whose memories are too large to keep give them back: those that are idle
// at about the same time share a frame, another lane that is never silent keeps its own, and all go
// on in step.
func TestIdleLanesGiveTheirMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, pairing{codera: learning(t), coderb: learning(t), handlerb: echo})
		long := func(lane int) []byte {
			var b strings.Builder
			for i := range 200 {
				fmt.Fprintf(&b, "<v%d>%.32x</v%d>", i, sha256.Sum256(fmt.Append(nil, lane, i)), i)
			}
			return []byte("<all>" + b.String() + "</all>")
		}
		const lanes = 6 // which have less than what a sync comes after
		for lane := range lanes {
			callWith(t, p.a, uint64(lane+1), long(lane))
			time.Sleep(time.Millisecond)
		}
		idle := func(s *streamer.Stream) int64 { return s.Stats().Sent.Other.Frames }
		busy := func(d time.Duration) {
			for began := time.Now(); time.Since(began) < d; time.Sleep(time.Second) {
				callWith(t, p.a, lanes+1, event(1, "busy"))
			}
		}
		busy(28 * time.Second)
		assert.Zero(t, idle(p.a)+idle(p.b))
		busy(3 * time.Second)
		synctest.Wait()
		for _, s := range []*streamer.Stream{p.a, p.b} {
			assert.Positive(t, idle(s))
			assert.LessOrEqual(t, idle(s), int64(2))
		}
		for lane := range lanes {
			callWith(t, p.a, uint64(lane+1), long(lane))
		}
		require.NoError(t, p.a.Close())
		require.NoError(t, p.b.Close())
		synctest.Wait()
	})
}
