package wire

import (
	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/shape/recall"
)

// receivedLanes are the lanes of a direction that comes in.
type receivedLanes struct {
	epoch    uint64 // syncs so far
	gotFar   int    // windows that got far since the last of these
	memories few.Map[uint64, *receivedLane]
}

type receivedLane struct {
	memory laneMemory
	window recall.History
	epoch  uint64
	lost   bool // of the memory: what came before was given up
	gap    bool // of the window, likewise
	used   bool // since the last Rest
}

// lose notes that something that came on the lane was not read.
func (r *receivedLane) lose() {
	if r != nil {
		r.lost, r.gap = true, true
	}
}

// of gives a lane as it is behind so many syncs.
func (l *receivedLanes) of(lane, epoch uint64) *receivedLane {
	r := l.memories.Get(lane)
	if r == nil {
		r = &receivedLane{epoch: epoch}
		l.memories.Put(lane, r)
	}
	if r.epoch != epoch {
		*r = receivedLane{epoch: epoch}
	}
	r.used = true
	return r
}

// next ends the memory of all lanes, but of those of which messages from before are still held.
func (l *receivedLanes) next(h *blockedLanes) {
	l.epoch++
	l.gotFar = 0
	for lane := range l.memories.All {
		if !h.lane(lane) {
			l.memories.Delete(lane)
		}
	}
}

// idle gives back what the peer will reset.
func (l *receivedLanes) idle(lanes []uint64, h *blockedLanes) {
	for _, lane := range lanes {
		if !h.lane(lane) {
			l.memories.Delete(lane)
		}
	}
}

// recall gives the window of a lane for the frame at an offset; it fails where the window lacks
// what was given up.
func (l *receivedLanes) recall(r *receivedLane, anew bool, at int64) (*recall.History, error) {
	if anew {
		r.window, r.gap = recall.History{}, false
	}
	if r.gap {
		return nil, &Error{Code: Forgotten, At: at}
	}
	if r.window.GotFar = &l.gotFar; r.epoch != l.epoch { // what came before the last sync was blocked until now
		r.window.GotFar = new(int)
	}
	return &r.window, nil
}
