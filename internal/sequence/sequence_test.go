package sequence_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

func exactly(ordered bool) sequence.Config {
	return sequence.Config{Assurance: wsrm.ExactlyOnce, Ordered: ordered}
}

// A connection that breaks behind any byte, of either direction: each message has its effect once,
// and its reply comes.
func TestCutAnywhere(t *testing.T) {
	const messages = 5
	for _, ordered := range []bool{true, false} {
		for direction := range 2 {
			longest := int64(0)
			for at := int64(1); at == 1 || at <= longest; at++ {
				w := newWorld(t, exactly(ordered), ledger{})
				w.cut[direction] = at
				w.run(messages)
				if at == 1 { // what a whole run takes
					longest = w.streams[direction].Stats().Sent.Octets()
				}
				w.close()
				w.check(messages)
				assert.Len(t, w.replies, messages, "no end was restarted: each reply comes to who waits")
				if t.Failed() {
					t.Fatalf("direction %d cut at %d", direction, at)
				}
			}
		}
	}
}

// The power of either end fails at each change of its store in turn, before or after that is made:
// number, reply and effect of each message are one.
func TestPowerFailsAnywhere(t *testing.T) {
	const messages = 8
	for _, ordered := range []bool{true, false} {
		for end := range 2 {
			for _, written := range []bool{false, true} {
				failed := 0
				for failAt := 1; failed == failAt-1; failAt++ {
					w := newWorld(t, exactly(ordered), ledger{})
					w.disks[end].failAt, w.disks[end].written = failAt, written
					failed += w.run(messages)
					w.close()
					w.check(messages)
					if t.Failed() {
						t.Fatalf("end %d fails at %d, written %v", end, failAt, written)
					}
				}
				assert.Positive(t, failed,
					"the last run was one with fewer changes; their number depends on how many messages share one")
			}
		}
	}
}

// Connections break and the power fails again and again, wherever it happens: with many messages
// under way, all is as it should be in the end.
func TestAnything(t *testing.T) {
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t, exactly(seed%2 == 0), ledger{})
			broken := 0
			w.cuts = func() (cut [2]int64) {
				if broken++; broken < 6 {
					cut[r.IntN(2)] = int64(1 + r.IntN(30_000))
				}
				return cut
			}
			for i, d := range w.disks {
				r := rand.New(rand.NewPCG(seed, uint64(2+i))) // each end has its own chance
				fails := r.IntN(4)
				d.failAt = 1 + r.IntN(10)
				d.next = func() int {
					if fails--; fails < 0 {
						return 1 << 30
					}
					return 1 + r.IntN(10)
				}
			}
			const messages = 400
			w.run(messages)
			w.close()
			w.check(messages)
		})
	}
}
