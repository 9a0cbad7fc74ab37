package wire

// receivedLanes are the lanes of a direction that comes in.
type receivedLanes struct {
	epoch    uint64 // syncs so far
	memories map[uint64]*receivedLane
}

type receivedLane struct {
	memory laneMemory
	epoch  uint64
	lost   bool // what came before was given up
	used   bool // since the last Rest
}

// of gives a lane as it is behind so many syncs.
func (l *receivedLanes) of(lane, epoch uint64) *receivedLane {
	r := l.memories[lane]
	if r == nil {
		if l.memories == nil {
			l.memories = map[uint64]*receivedLane{}
		}
		r = &receivedLane{epoch: epoch}
		l.memories[lane] = r
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
	for lane := range l.memories {
		if !h.lane(lane) {
			delete(l.memories, lane)
		}
	}
}

// idle gives back what the peer will reset.
func (l *receivedLanes) idle(lanes []uint64, h *blockedLanes) {
	for _, lane := range lanes {
		if !h.lane(lane) {
			delete(l.memories, lane)
		}
	}
}
