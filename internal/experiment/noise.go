package experiment

import (
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

const (
	// tick is how often a [Watcher] looks at the clocks.
	tick = 25 * time.Millisecond
	// longTick is from where on between two looks nothing of the process ran.
	longTick = 100 * time.Millisecond
	// minJump is how far the clock of the day has to differ from the time that passed.
	minJump = 50 * time.Millisecond
)

// Watcher sees what disturbs a measurement: times in which the process did not run, as in the sleep
// of a phone, jumps of the clock, other processes.
type Watcher struct {
	root    fs.FS
	begun   time.Time
	own     time.Duration
	all     float64 // processor time of the machine, in seconds
	stop    chan struct{}
	stopped sync.WaitGroup
	noise   Noise // of the goroutine until it has stopped
}

// Watch begins to watch. End it with [Watcher.End].
func Watch() *Watcher {
	w := &Watcher{root: os.DirFS("/"), begun: time.Now(), own: clock.Processor(), stop: make(chan struct{})}
	w.all, _ = busy(w.root)
	w.stopped.Go(w.watch)
	return w
}

func (w *Watcher) watch() {
	t := time.NewTicker(tick)
	defer t.Stop()
	last := time.Now()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			now := time.Now()
			w.noise.see(now.Sub(last), now.Round(0).Sub(last.Round(0)))
			last = now
		}
	}
}

// see adds what one tick tells: how long it took, and by the clock of the day. A clock that goes on
// in sleep, and one that does not, both tell of it.
func (n *Noise) see(took, byDay time.Duration) {
	jump := byDay - took
	if jump.Abs() >= minJump {
		n.ClockJumpMillis += float64(jump.Microseconds()) / 1000
	} else {
		jump = 0
	}
	if pause := max(took, took+jump); pause >= longTick {
		n.Pauses++
		n.LongestMillis = max(n.LongestMillis, float64(pause.Microseconds())/1000)
	}
}

// End ends watching, and returns what was seen.
func (w *Watcher) End() Noise {
	close(w.stop)
	w.stopped.Wait()
	n := w.noise
	n.OthersShare = -1
	if after, processors := busy(w.root); after > 0 && w.own >= 0 {
		took := time.Since(w.begun).Seconds() * float64(processors)
		// hundredths of a second are counted: more than there was may be in a short time
		n.OthersShare = min(max(0, (after-w.all-(clock.Processor()-w.own).Seconds())/took), 1)
	}
	n.Celsius = hottest(w.root)
	n.MHz, _ = clockOf(w.root)
	return n
}

// busy is the time in which the machine's processors worked, in seconds, and how many they are,
// whichever this process may use; 0: not known.
func busy(root fs.FS) (seconds float64, processors int) {
	const hertz, idle, wait, guest = 100, 3, 4, 8 // of /proc/stat, proc_stat(5)
	all, rest, _ := strings.Cut(text(root, "proc/stat"), "\n")
	for i, s := range strings.Fields(strings.TrimPrefix(all, "cpu ")) {
		if x, ok := number(s); ok && i != idle && i != wait && i < guest {
			seconds += x / hertz
		}
	}
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "cpu") {
			processors++
		}
	}
	return seconds, max(processors, 1)
}
