//go:build soak

package capture_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/flow"
)

// TestSoakCutAtEveryByte: a recording that ends at any byte gives its whole messages.
func TestSoakCutAtEveryByte(t *testing.T) {
	rec := record(t, append(tree(t), tree(t)...), 1024)
	messages, syncs := layout(t, rec)
	store := copyStore(t, rec.server)
	ends := packetEnds(t, rec.file)
	for cut := range rec.file {
		r, err := capture.Decode(t.Context(), bytes.NewReader(rec.file[:cut]), capture.DecodeConfig{Store: store})
		if err != nil {
			require.True(t, errors.Is(err, &flow.Error{Code: flow.Truncated}) || cut < 4, "cut at %d: %v", cut, err)
			continue
		}
		holes := [2]hole{{0, 1 << 60}, {0, 1 << 60}}
		for _, e := range ends {
			if e.at <= cut && e.dir >= 0 {
				holes[e.dir].from = max(holes[e.dir].from, e.to)
			}
		}
		requireWhatIsThere(t, rec, messages, syncs, r, holes, "cut")
	}
}

// TestSoakPacketsMissing: the same with every run of one to three packets removed.
func TestSoakPacketsMissing(t *testing.T) {
	m := newMissing(t, mixed(t), 1024)
	for n := 1; n <= 3; n++ {
		for from := 4; from+n <= len(m.packets); from++ {
			m.without(t, from, from+n)
		}
	}
}

// TestSoakNothingDamagedIsVerified: every bit of every kind of stream and of the captures in the
// tree.
func TestSoakNothingDamagedIsVerified(t *testing.T) {
	damageStreams(t, func(d *damage) {
		d.flips(t, 1)
		d.random(t, 20000)
	})
	for _, name := range []string{"session.pcapng", "datagrams.pcap", "upgraded.pcapng"} {
		d := damagedCapture(t, name)
		d.flips(t, 1)
		d.random(t, 5000)
	}
	d := damagedIn(t, record(t, withHeaders()[:8], 4096, tenant, replyTo).file)
	d.flips(t, 1)
	d.random(t, 5000)
}

// TestSoakSlowConversations: whole days.
func TestSoakSlowConversations(t *testing.T) { slowConversations(t, true) }
