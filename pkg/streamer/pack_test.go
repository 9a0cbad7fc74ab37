package streamer_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// countPacker packs a segment of a message in one frame by writing before it how many there were on its lane since the last sync or reset, and refuses any other number: both ends must see the same
// messages in the same order. Segments of other messages have a mark.
type countPacker struct {
	*rawCoder
	sent, received map[uint64]int
	epochs         map[uint64]uint64
	given          map[uint64]bool
	large          bool // memories are too large to keep while they are idle

	mu     sync.Mutex
	lost   []uint64
	rested [2]int // memories made small: of what is sent, of what is received
	used   map[uint64]bool
}

// mark is what segments of messages in several frames are packed with; no count is 0.
const mark = 0

var errLost = errors.New("lost")

func newCountPacker() *countPacker {
	return &countPacker{rawCoder: newRawCoder(), sent: map[uint64]int{}, received: map[uint64]int{}, epochs: map[uint64]uint64{}, given: map[uint64]bool{}, used: map[uint64]bool{}}
}

func (c *countPacker) Stages() uint64        { return 1 }
func (c *countPacker) Agree(uint64)          {}
func (c *countPacker) IsLost(err error) bool { return errors.Is(err, errLost) }

func (c *countPacker) Epoch(open map[uint64]int, yield func(uint64, [32]byte)) {
	clear(c.sent)
	c.rawCoder.Epoch(open, yield)
}

func (c *countPacker) Restart(lane uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = append(c.lost, lane)
}

func (c *countPacker) NewPack(lane, number uint64, alone bool) func(dst, segment []byte, text, last bool, most int) []byte {
	if number == 0 {
		return nil
	}
	return func(dst, segment []byte, text, _ bool, _ int) []byte {
		if text {
			return append(dst, segment...)
		}
		if !alone {
			return append(append(dst, mark), segment...)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if i := slices.Index(c.lost, lane); i >= 0 {
			c.lost = slices.Delete(c.lost, i, i+1)
			c.sent[lane] = 0
		}
		c.sent[lane] = c.sent[lane]%255 + 1
		return append(append(dst, byte(c.sent[lane])), segment...)
	}
}

func (c *countPacker) NewUnpack(number uint64) func(lane uint64, alone bool, epoch uint64) func(dst, packed []byte, text, last bool, most int) ([]byte, error) {
	if number == 0 {
		return nil
	}
	return c.begin
}

func (c *countPacker) begin(lane uint64, alone bool, epoch uint64) func(dst, packed []byte, text, last bool, most int) ([]byte, error) {
	return func(dst, packed []byte, text, _ bool, _ int) ([]byte, error) {
		if text {
			return append(dst, packed...), nil
		}
		if len(packed) == 0 || (packed[0] == mark) == alone {
			return dst, errors.New("not packed")
		}
		if alone {
			if c.epochs[lane] != epoch || packed[0] == 1 {
				c.epochs[lane], c.received[lane], c.given[lane] = epoch, 0, false
			}
			if c.given[lane] {
				return dst, errLost
			}
			c.mu.Lock()
			c.used[lane] = true
			c.mu.Unlock()
			if c.received[lane] = c.received[lane]%255 + 1; int(packed[0]) != c.received[lane] {
				return dst, fmt.Errorf("message %d of lane %d, after %d", packed[0], lane, c.received[lane]-1)
			}
		}
		return append(dst, packed[1:]...), nil
	}
}

func (c *countPacker) Rest(lane uint64) (given bool) {
	if _, had := c.sent[lane]; had && c.large {
		delete(c.sent, lane)
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rested[0]++
	return false
}

func (c *countPacker) Rested() (left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if left = len(c.used) > 0; !left {
		c.rested[1]++
	}
	clear(c.used)
	return left
}

// small is how many memories were made small.
func (c *countPacker) small() [2]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rested
}

func (c *countPacker) Idled(lane uint64) { delete(c.received, lane) }

func (c *countPacker) GiveUp(lane, epoch uint64) { c.epochs[lane], c.given[lane] = epoch, true }

func (c *countPacker) Synced(keep func(lane uint64) bool) {
	for lane := range c.received {
		if !keep(lane) {
			delete(c.received, lane)
		}
	}
}

func TestPackingFollowsTheOrderOfFrames(t *testing.T) {
	a, b := newCountPacker(), newCountPacker()
	a.shapes[1], b.shapes[1] = []byte("shape"), []byte("shape")
	p := connect(t, pairing{a: streamer.Config{SyncMessages: 7}, packera: a, packerb: b, handlerb: echo})
	var wg sync.WaitGroup
	for lane := range uint64(4) {
		for range 2 {
			wg.Go(func() {
				for i := range 60 {
					m := fmt.Sprintf("#1 %d %s", i, strings.Repeat("x", i%3*i*i*9))
					reply, err := p.a.Lane(lane).Call(t.Context(), streamer.NewMessage(nil, []byte(m)))
					if assert.NoError(t, err) {
						assert.Equal(t, m, body(t, reply))
					}
				}
			})
		}
	}
	wg.Wait()
	assert.Positive(t, p.a.Stats().Sent.Sync.Frames)
}

func TestPackedAndHeldFramesGoOnInOrder(t *testing.T) {
	a, b := newCountPacker(), newCountPacker()
	a.shapes[1], a.refer[1] = []byte("unknown to the other end"), true
	b.shapes[1] = []byte("shape")
	p := connect(t, pairing{a: streamer.Config{SyncMessages: 3}, packera: a, packerb: b, handlerb: echo})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			m := fmt.Sprintf("#1 %d", i)
			reply, err := p.a.Lane(uint64(i%2)).Call(t.Context(), streamer.NewMessage(nil, []byte(m)))
			if assert.NoError(t, err) {
				assert.Equal(t, m, body(t, reply))
			}
		})
	}
	wg.Wait()
}

// TestPackedMessagesGivenUpLoseTheMemory: after messages were given up unread, the lane goes on once the other end has heard of it.
func TestPackedMessagesGivenUpLoseTheMemory(t *testing.T) {
	a, b := newCountPacker(), newCountPacker()
	a.shapes[1], a.refer[1] = []byte("unknown to the other end"), true
	b.shapes[1] = []byte("shape")
	p := connect(t, pairing{b: streamer.Config{Limits: streamer.Limits{MaxHeld: 100}}, packera: a, packerb: b, handlerb: echo})
	refused := 0
	for range 50 {
		reply, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte("#1"+strings.Repeat("y", 300))))
		if err == nil {
			assert.Len(t, body(t, reply), 302)
			break
		}
		require.ErrorIs(t, err, &streamer.Error{Code: streamer.Unprocessed})
		refused++
	}
	assert.Positive(t, refused)
	require.Less(t, refused, 50)
	for range 5 {
		reply, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte("#1 again")))
		require.NoError(t, err)
		assert.Equal(t, "#1 again", body(t, reply))
	}
}

// TestPackedRefusedMessagesCount: messages that the receiver refuses change the memory of their lane all the same.
func TestPackedRefusedMessagesCount(t *testing.T) {
	a, b := newCountPacker(), newCountPacker()
	a.shapes[1] = []byte("shape")
	p := connect(t, pairing{packera: a, packerb: b}) // nobody serves
	for range 20 {
		_, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte("#1 refused")))
		require.ErrorIs(t, err, &streamer.Error{Code: streamer.Unserved})
	}
	assert.NoError(t, p.b.Err())
}

// After 30 s of silence each end has made the memories small of what it sends and of what it receives, once, without a word to
// the peer; then messages go on in step.
func TestIdleStreamsMakeTheirMemorySmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newCountPacker(), newCountPacker()
		a.shapes[1], b.shapes[1] = []byte("shape"), []byte("shape")
		p := connect(t, pairing{packera: a, packerb: b, handlerb: echo})
		call := func() {
			reply, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte("#1 call")))
			require.NoError(t, err)
			assert.Equal(t, "#1 call", body(t, reply))
		}
		for range 3 {
			call()
			time.Sleep(14 * time.Second)
		}
		assert.Equal(t, [2]int{}, a.small())
		said := p.a.Stats().Sent.Octets()
		for n := range 3 {
			time.Sleep(45 * time.Second)
			synctest.Wait()
			assert.Equal(t, [2]int{n + 1, n + 1}, a.small())
			assert.Equal(t, [2]int{n + 1, n + 1}, b.small())
			assert.Equal(t, said, p.a.Stats().Sent.Octets())
			time.Sleep(time.Hour)
			assert.Equal(t, [2]int{n + 1, n + 1}, a.small(), "once")
			call()
			said = p.a.Stats().Sent.Octets()
		}
		require.NoError(t, p.a.Close())
		require.NoError(t, p.b.Close())
		synctest.Wait()
	})
}

// TestIdleLanesGiveTheirMemoryBack: of many lanes that are used once, none has memory at either end 30 s later if that is too large to keep, though another lane is never silent for long. They go on in step.
func TestIdleLanesGiveTheirMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newCountPacker(), newCountPacker()
		a.large, b.large = true, true
		a.shapes[1], b.shapes[1] = []byte("shape"), []byte("shape")
		p := connect(t, pairing{packera: a, packerb: b, handlerb: echo})
		call := func(lane uint64) {
			reply, err := p.a.Lane(lane).Call(t.Context(), streamer.NewMessage(nil, []byte("#1 call")))
			require.NoError(t, err)
			assert.Equal(t, "#1 call", body(t, reply))
		}
		const lanes = 900 // with the calls of the busy one less than 1 024 messages, after which a sync would end all memory
		for lane := range uint64(lanes) {
			call(lane + 1)
			time.Sleep(time.Millisecond)
		}
		call(lanes + 1)
		synctest.Wait()
		assert.Len(t, a.sent, lanes+1)
		assert.Len(t, b.received, lanes+1)
		busy := func(d time.Duration) {
			for began := time.Now(); time.Since(began) < d; time.Sleep(time.Second) {
				call(lanes + 1)
			}
		}
		busy(28 * time.Second)
		assert.Len(t, a.sent, lanes+1)
		busy(3 * time.Second)
		synctest.Wait()
		for _, c := range []*countPacker{a, b} {
			assert.Equal(t, []uint64{lanes + 1}, slices.Collect(maps.Keys(c.sent)))
			assert.Equal(t, []uint64{lanes + 1}, slices.Collect(maps.Keys(c.received)))
		}
		for _, s := range []*streamer.Stream{p.a, p.b} {
			assert.Zero(t, s.Stats().Sent.Sync.Frames)
			assert.LessOrEqual(t, s.Stats().Sent.Other.Frames, int64(2), "lanes that are idle at about the same time share a frame")
			assert.Less(t, s.Stats().Sent.Other.Octets, int64(2*lanes+20))
		}
		for lane := range uint64(lanes) {
			call(lane)
		}
		require.NoError(t, p.a.Close())
		require.NoError(t, p.b.Close())
		synctest.Wait()
	})
}
