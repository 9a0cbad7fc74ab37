//go:build soak

package proxy_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
)

// soakFor is the duration of random runs.
const soakFor = 2 * time.Minute

// TestSoakCallsThroughFailures: random runs, as in TestRandomCallsThroughFailures, with ever new
// seeds.
func TestSoakCallsThroughFailures(t *testing.T) {
	runs, calls := 0, int64(0)
	for end := time.Now().Add(soakFor); time.Now().Before(end) && !t.Failed(); runs++ {
		s := storm{t: t, seed: uint64(time.Now().UnixNano())}
		s.run(10)
		calls += s.through.Load()
	}
	goleak.VerifyNone(t)
	t.Logf("%d runs, %d calls through", runs, calls)
}

// TestSoakCallsWhileRoutesChange: a million calls of 200 kinds by 1,000 clients that come and go,
// and ten changes of routes among them; what is held after the last fifth of them is what was held
// after the first. HHFR_CALLS is another number of calls.
func TestSoakCallsWhileRoutesChange(t *testing.T) {
	calls := 1_000_000
	if n, err := strconv.Atoi(os.Getenv("HHFR_CALLS")); err == nil {
		calls = n
	}
	seed := uint64(time.Now().UnixNano())
	(&crowd{t: t, seed: seed, calls: calls, kinds: 200, clients: 1000, laps: 5, reroutes: 10}).run()
}

// TestSoakLinkStandsStill: a link that carries nothing for 10 s, twice, delays the calls, and
// loses none.
func TestSoakLinkStandsStill(t *testing.T) {
	thin := newStillLink()
	seed := uint64(time.Now().UnixNano())
	c := &crowd{t: t, seed: seed, calls: 20_000, kinds: 200, clients: 200, laps: 2, reroutes: 4}
	c.wrap = thin.wrap
	c.cut = func() {
		thin.stop()
		time.Sleep(10 * time.Second)
		thin.goOn()
	}
	c.run()
}

// TestSoakEchoes: echoes of 100 MB of text, which the server returns while it reads, with a length
// and in chunks: one, whose time is printed beside that through one proxy, and 20 at once.
func TestSoakEchoes(t *testing.T) {
	for _, chunks := range []bool{false, true} {
		upstream := echoing(t)
		near, far := pair(t, upstream, nil)
		assert.NoError(t, near.Linked(t.Context()))
		one := echoes(t, far.url(), 1, 100e6, chunks)
		t.Logf("chunks %v: one proxy %v, the pair %v", chunks, one, echoes(t, near.url(), 1, 100e6, chunks))
		t.Logf("chunks %v: 20 at once %v", chunks, echoes(t, near.url(), 20, 100e6, chunks))
	}
}

// TestSoakClientsThatReadNothing: 40 clients that never read cost each half at most 128 MB, and
// others are not affected.
func TestSoakClientsThatReadNothing(t *testing.T) {
	for _, media := range []string{"text/plain", "text/xml"} {
		held := unread(t, 40, 100<<20, media)
		t.Logf("%s: %d MB in both halves", media, held>>20)
		assert.Less(t, held, int64(2*128<<20), media)
	}
}
