package udp

import "time"

// deadline is a moment until which something may wait. The conn's mutex guards it.
type deadline struct {
	timer *time.Timer
	done  chan struct{} // closed when it is over
}

func newDeadline() deadline { return deadline{done: make(chan struct{})} }

// set moves it; a zero t: there is none.
func (d *deadline) set(t time.Time) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	// A timer that fired a moment ago closes the channel of the deadline before.
	done := make(chan struct{})
	d.done = done
	if t.IsZero() {
		return
	}
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(done) })
		return
	}
	close(done)
}

func (d *deadline) over() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}
