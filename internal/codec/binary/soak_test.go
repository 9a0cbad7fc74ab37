//go:build soak

package binary_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/wire"
)

// TestSoakNeverRepeating: a million messages of kinds that never come again cost little more than
// to pass them on, and no byte beside their frames' heads. The learner's memory is bounded.
func TestSoakNeverRepeating(t *testing.T) {
	const messages = 1_000_000
	filler := strings.Repeat("<line><a>1</a><b>two</b></line>", 20)
	run := func(opt binary.Options, n int) (took time.Duration, added int) {
		e := newEnd(opt)
		for i := range n {
			m := enveloped(fmt.Sprintf("<k%d>%s</k%d>", i, filler, i))
			began := time.Now()
			octets := 0
			s := e.coder.Split(0, 16000, func(_ bool, p wire.Part) error {
				octets += len(p.Content)
				return nil
			})
			err := s.All(m)
			s.Free()
			took += time.Since(began)
			require.NoError(t, err)
			if i > 1000 {
				added = max(added, octets-len(m))
			}
		}
		return took, added
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	learning, added := run(binary.Options{}, messages)
	runtime.GC()
	runtime.ReadMemStats(&after)
	text, _ := run(binary.Options{Text: true}, messages)
	t.Logf("a message: %v with the learner, %v without", learning/messages, text/messages)
	assert.Zero(t, added)
	assert.Less(t, after.HeapAlloc, before.HeapAlloc+32<<20)
}
