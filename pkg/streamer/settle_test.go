package streamer

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
)

// Flushes cost their sender no credit: of any number of them, for a message that nobody reads, one
// is kept behind each fragment.
func TestFlushesThatNobodyReadsAreBounded(t *testing.T) {
	in := &inbound{s: &Stream{cfg: lastingConfig{commonConfig: &commonConfig{Limits: Limits{Window: 32 << 10}}}}}
	in.credit = in.s.cfg.Limits.Window
	fragment := &wire.Event{Body: wire.Part{There: true, First: true, Program: new(program.Program),
		Content: []byte("x")}}
	for range 3 {
		assert.False(t, in.deliver(fragment))
		for n := range uint64(10_000) {
			in.settle(n + 1)
		}
	}
	assert.Equal(t, 6, in.segs.len())
	assert.EqualValues(t, 10_000, in.segs.items[len(in.segs.items)-1].settled)
}
