package streamer_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	codec "github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// What an idle stream may take: its reader; in bytes what it may have when it was opened, and once
// it was used and is idle again.
const (
	idleGoroutines = 1
	idleOpen       = 12 << 9
	idleUsed       = 18 << 9
)

// Streams that do nothing take few goroutines and little memory, from the start, and again when
// they were used and have been idle for a minute.
func TestIdleStreamsTakeLittle(t *testing.T) {
	// Enough that what all streams have in common, in pools that one collection does not empty, is
	// little for each: 0.5 MB for each window coder, of which there are a few.
	const pairs = 1000
	synctest.Test(t, func(t *testing.T) {
		books := [2]*codec.Book{}
		for i := range books {
			books[i] = codec.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})})
		}
		begin := func() *pair {
			return connect(t, pairing{buffer: 512, codera: books[0].Coder(codec.Options{}),
				coderb: books[1].Coder(codec.Options{}), handlerb: echo})
		}
		use := func(a *streamer.Stream) {
			for i := range 21 {
				callWith(t, a, 1, event(i, fmt.Sprintf("%064x", i*i)))
			}
		}
		all := []*pair{begin()}
		use(all[0].a) // has the books learn, and pools fill
		synctest.Wait()
		before, heap := goroutines(), heapInUse(2)
		took := func(collections int) (inBubble, heapOfEach int) {
			return goroutines() - before, (int(heapInUse(collections)) - int(heap)) / (2 * pairs)
		}
		for range pairs {
			all = append(all, begin())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		n, open := took(2)
		assert.LessOrEqual(t, n, idleGoroutines*2*pairs)
		assert.Less(t, open, idleOpen)
		for _, p := range all[1:] {
			use(p.a)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		n, used := took(1)
		assert.LessOrEqual(t, n, idleGoroutines*2*pairs)
		assert.Less(t, used, idleUsed)
		for _, p := range all {
			callWith(t, p.a, 1, event(1, "goes on"))
			require.NoError(t, p.a.Close())
			require.NoError(t, p.b.Close())
		}
	})
}

// heapInUse is what so many collections leave. Two empty all pools. An idle process runs few, so
// that one has to be enough for what all streams gave back.
func heapInUse(collections int) uint64 {
	for range collections {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
