package streamer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	codec "github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// What one window of a lane may take that had 256 KiB of text, in bytes, with its share of what
// streams have: at work at least, seconds after, and in the end.
const (
	farAtWork  = 230 << 10
	farResting = 76 << 10
	farIdle    = 8 << 10
)

// TestFarWindowsOfIdleLanesAreSmall: a window of 256 KiB takes while its lane rests what one of 64
// KiB does, and is gone after a minute. Each lane has one at both ends of both directions.
func TestFarWindowsOfIdleLanesAreSmall(t *testing.T) {
	const lanes = 2
	farLanes(t, lanes)
}

func farLanes(t *testing.T, lanes int) {
	const messages, size = 19, 14 << 10
	synctest.Test(t, func(t *testing.T) {
		coder := func() *codec.Coder {
			return codec.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(codec.Options{})
		}
		pairs := make([]*pair, (lanes+2)/3+1) // what comes before the next sync fits
		for i := range pairs {
			pairs[i] = connect(t, pairing{codera: coder(), coderb: coder(), handlerb: echo})
		}
		last := len(pairs) - 1
		callWith(t, pairs[last].a, 0, prose(0, size)) // makes what all share
		before := heapInUse(2)
		took := func() int { return (int(heapInUse(2)) - int(before)) / (4 * lanes) }
		for lane := range lanes {
			for i := range messages {
				callWith(t, pairs[lane/3].a, uint64(lane), prose(1+lane*messages+i, size))
			}
			if lane == 0 {
				assert.Greater(t, (int(heapInUse(2))-int(before))/4, farAtWork, "it reaches as far")
			}
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Less(t, took(), farResting, "resting")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Less(t, took(), farIdle, "idle")
		for lane := range lanes {
			callWith(t, pairs[lane/3].a, uint64(lane), prose(1, size))
		}
	})
}

// prose is text of so many bytes that no shape fits, other for each number.
func prose(number, size int) []byte {
	rnd := rand.New(rand.NewPCG(uint64(number), 3))
	words := strings.Fields("of the order and its items in a list that was sent by somebody to another part of the " +
		"works where it waits for the next delivery as it is said here")
	b := fmt.Appendf(nil, "%d: ", number)
	for len(b) < size {
		name := words[rnd.IntN(len(words))]
		b = fmt.Appendf(b, "<%s><%s>%d</%s></%s>\n", name, words[rnd.IntN(len(words))], rnd.IntN(1000), name, name)
	}
	return b
}
