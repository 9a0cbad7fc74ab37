package binary_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
)

// blob is a message with n bytes of base64 in it, which is nowhere as a whole.
func blob(n int) (io.Reader, int) {
	unit := make([]byte, 3*1024)
	for i := range unit {
		unit[i] = byte(i * i >> 3)
	}
	text := base64.StdEncoding.EncodeToString(unit)
	readers := []io.Reader{strings.NewReader(`<?xml version="1.0"?>` +
		`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><d>`)}
	octets := 0
	for ; octets < n; octets += len(unit) {
		readers = append(readers, strings.NewReader(text))
	}
	return io.MultiReader(append(readers, strings.NewReader("</d></s:Body></s:Envelope>"))...), octets
}

// wide gives ASCII in UTF-16.
type wide struct{ text io.Reader }

func (w wide) Read(b []byte) (int, error) {
	n, err := w.text.Read(b[:len(b)/2])
	for i := n - 1; i >= 0; i-- {
		b[2*i], b[2*i+1] = b[i], 0
	}
	return 2 * n, err
}

// TestLongValuesTakeNoMemory: 22 MB of base64 in one message travel as their bytes, through
// bounded buffers on both sides; in UTF-16, too.
func TestLongValuesTakeNoMemory(t *testing.T) {
	longValueTakesNoMemory(t, 1, func(r io.Reader) io.Reader { return r })
	longValueTakesNoMemory(t, 2, func(r io.Reader) io.Reader { return wide{r} })
}

func longValueTakesNoMemory(t *testing.T, unit int, encode func(io.Reader) io.Reader) {
	const extra = 4 << 20
	size := shared.Some(22 << 20)
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	d := newDirection(t, binary.Options{})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range 2 {
		body, octets := blob(size)
		before, most := heap(), uint64(0)
		content, joined, pieces := d.content, 0, 0
		m := d.begin(t, 0, 16000)
		m.took = func(body []byte) {
			joined += len(body)
			m.frames = nil
			if pieces++; pieces%100 == 1 {
				most = max(most, heap())
			}
		}
		m.copy(encode(body))
		assert.Less(t, d.content-content, octets+octets/1000+200, "raw octets travel")
		assert.Greater(t, joined, octets*4/3*unit)
		assert.Less(t, most, before+extra)
	}
	assert.Zero(t, d.texts)
}

// TestLearnerMemoryIsBounded: what streams learn from large messages of many kinds, over all of
// them, stays under 32 MB.
func TestLearnerMemoryIsBounded(t *testing.T) {
	const kinds, elements, bound = 200, 1500, 32 << 20
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	e := newEnd(binary.Options{})
	before := heap()
	for i := range kinds {
		var b strings.Builder
		for k := range elements {
			fmt.Fprintf(&b, `<e%d a="x">%d</e%d>`, k, k, k)
			if k%100 == 99 {
				b.WriteString("<deeper>")
			}
		}
		m := enveloped(fmt.Sprintf("<k%d>%s%s</k%d>", i, b.String(), strings.Repeat("</deeper>", elements/100), i))
		coder := e.book.Coder(binary.Options{}) // a stream of its own has an allowance of its own
		require.NoError(t, coder.Split(0, 16000, drop).All(m))
		require.Equal(t, int64(1), coder.Counts().Learned)
		clear(e.store.octets)
	}
	assert.Less(t, heap(), before+bound)
	runtime.KeepAlive(e)
}

// TestStalledBeginningsAreBounded: long messages of kinds that nobody knew, whose first segment
// nobody takes, have 4 MiB each at most, and that only for 4 of a stream at once.
func TestStalledBeginningsAreBounded(t *testing.T) {
	const messages, bound = 12, 20 << 20
	e := newEnd(binary.Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	took, stalled := make(chan struct{}), make(chan struct{})
	var writers sync.WaitGroup
	for i := range messages {
		writers.Go(func() {
			stall := sync.OnceFunc(func() {
				stalled <- struct{}{}
				<-took
			})
			s := e.coder.Split(uint64(i), 16000, func(bool, wire.Part) error {
				stall()
				return nil
			})
			defer s.Free()
			row := strings.Repeat(fmt.Sprintf("<e%d>%d</e%d><f/>", i, i, i), 100)
			assert.NoError(t, s.Write(fmt.Appendf(nil, "<k%d>", i)))
			for n := 0; n < 5<<20; n += len(row) {
				assert.NoError(t, s.Write([]byte(row)))
			}
		})
		<-stalled
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	close(took)
	writers.Wait()
	assert.Less(t, after.HeapAlloc, before.HeapAlloc+bound)
}
