package sequence_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/pkg/streamer/sequence"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

func exactly(ordered bool) sequence.Config {
	return sequence.Config{Assurance: wsrm.ExactlyOnce, Ordered: ordered}
}

// A connection that breaks behind any octet, of either direction: each message has its effect once, and its reply comes.
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

// The power of either end fails at each change of its store in turn, before or after that is made: number, reply and effect of each message are one.
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
						t.Fatal(fmt.Sprintf("end %d fails at %d, written %v", end, failAt, written))
					}
				}
				assert.Greater(t, failed, 4, "the last run was one with fewer changes")
			}
		}
	}
}
