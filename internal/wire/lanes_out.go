package wire

import (
	"time"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/recall"
)

// sentLanes are the lanes of a direction that goes out.
type sentLanes struct {
	lanes  few.Map[uint64, *sentLane]
	number uint64    // of last
	last   *sentLane // looked for last; nil: none
	epoch  uint64    // syncs so far
	made   uint64    // sentLanes so far
	gotFar int       // windows that got far since the last sync
	// begun is when the last sync ended what lanes remember, zero before the first; owed is what
	// lanes had spent by then that time has not paid for, if they sent all that came before it.
	begun time.Time
	owed  int
}

type sentLane struct {
	id     uint64      // no other has it, of this lane as well
	texts  int64       // octets that its window made of texts
	memory *laneMemory // nil: what comes next resets that of the peer
	window recall.History
	awake  bool      // the window has room for more
	small  int       // octets that it takes now that it is small
	trials [2]trials // of texts, and of packed segments
	// invests are trials of windows that get what does not get smaller by them.
	invests trials
	used    time.Time
	// unpacked are the trials of bodies, by shape.
	unpacked few.Map[*sentShape, *unpackedTrial]
	// spent are bytes of packed content that the window compressed, less those that time has paid
	// for up to reckoned.
	spent    int
	reckoned time.Time
}

// unpackedTrial finds out, for the bodies of one shape on a lane, whether they take less as they
// are, by the window of the lane, than packed: texts that alternate within a column are unlike
// the one before, and like some that the window has. What one way remembers the other does not
// see; so those that are compared go packed, and a window beside that of the lane has them as
// they are. What is long goes by the window packed, and is not compared.
type unpackedTrial struct {
	beside *recall.History // nil: nothing is compared now
	seen   int
	// packed and unpacked are what the messages that counted took, in octets: the last one whole,
	// each before half of the one behind it.
	packed, unpacked int
	// taken: messages go as they are.
	taken bool
}

// open reports whether what the lane remembers can be made smaller.
func (s *sentLane) open() bool { return s.memory != nil && s.memory.open != nil || s.awake }

// fold makes what the lane remembers small.
func (s *sentLane) fold() {
	size := 0
	if s.memory != nil {
		s.memory.fold()
		size = s.memory.folded.Size()
	}
	s.window.Rest()
	for _, w := range s.unpacked.All {
		if w.beside != nil {
			*w = unpackedTrial{beside: new(recall.History)}
		}
	}
	s.awake, s.small = false, size+s.window.Size()
}

func (l *sentLanes) of(lane uint64) *sentLane {
	if l.last != nil && l.number == lane {
		return l.last
	}
	s := l.lanes.Get(lane)
	if s == nil {
		l.made++
		s = &sentLane{id: l.made, spent: l.owed, reckoned: l.begun}
		l.lanes.Put(lane, s)
	}
	l.number, l.last = lane, s
	return s
}

// forget ends the memory of a lane.
func (l *sentLanes) forget(lane uint64) {
	l.lanes.Delete(lane)
	l.last = nil
}

// memory is what a lane remembers.
func (l *sentLanes) memory(lane uint64) *columns.Memory {
	s := l.of(lane)
	if s.memory == nil {
		s.memory = new(laneMemory)
		s.memory.use().Drop() // whatever the peer remembers
	}
	return s.memory.use()
}

func (s *sentLane) trialsOf(packed bool) *trials {
	if packed {
		return &s.trials[1]
	}
	return &s.trials[0]
}

// onlyPacked reports whether the lane remembers something, and its window is empty: a text that is
// the first in there, and announces its shape, would empty the memory.
func (s *sentLane) onlyPacked() bool {
	return s.memory != nil && s.memory.shapes() > 0 && s.window.Empty()
}

// noted has a lane remember a text that announced the shape of a program, and went as segment.
func (l *sentLanes) noted(lane uint64, p *program.Program, text, segment []byte) {
	memory := l.memory(lane)
	if len(segment) > 0 && segment[0] == markForget {
		memory.Reset()
	}
	if !memory.Dropped() {
		noteText(p, memory, text, true)
	}
}

// begin notes whether a part that begins is to be remembered.
func (l *sentLanes) begin(stages uint64, m *Outgoing, at *partOut, now time.Time) {
	if !at.inLane || stages&Memory == 0 {
		return
	}
	at.remember, at.fresh = true, !l.memory(m.Lane).Knows(at.sent.program)
	l.of(m.Lane).used = now
}

// remembered is of how many shapes lanes remember something, each lane counted.
func (l *sentLanes) remembered() (shapes int) {
	for _, s := range l.lanes.All {
		if s.memory != nil {
			shapes += s.memory.shapes()
		}
	}
	return shapes
}

// texts is what the windows of lanes made of texts, in octets.
func (l *sentLanes) texts() (octets int64) {
	for _, s := range l.lanes.All {
		octets += s.texts
	}
	return octets
}

// next ends the memory of all lanes.
func (l *sentLanes) next(now time.Time) {
	*l = sentLanes{epoch: l.epoch + 1, made: l.made, begun: now, owed: mostSaved - paid(now.Sub(l.begun))}
}

const (
	// mostFolded is how large the memory of a lane may always be while the lane is idle, in octets.
	mostFolded = 8 << 10
	// mostOfStream is the same of all lanes of a stream that has few of them. How many there are
	// may decide what becomes of a lane's memory, but not what others remember.
	mostOfStream = 64 << 10
)

// folded is how large the memory of a lane may be while the lane is idle, in octets.
func (l *sentLanes) folded() int { return max(mostFolded, mostOfStream/max(1, l.lanes.Len())) }

const (
	// recallRate is how many bytes of packed content a lane may have compressed by its window in a
	// second, and mostSaved how many at once after silence: of a client that calls now and then, or
	// whose link is thin, all; to one that sends much more, the time matters.
	recallRate = 1 << 10
	mostSaved  = 32 << 10
)

// affords reports whether a lane may have so many bytes more of packed content compressed by its
// window, and counts them.
func (s *sentLane) affords(size int, now time.Time) bool {
	s.spent, s.reckoned = max(0, s.spent-paid(now.Sub(s.reckoned))), now
	if s.spent+size > mostSaved {
		return false
	}
	s.spent += size
	return true
}

// paid is how many bytes of that a time pays for.
func paid(t time.Duration) int { return int(min(t.Seconds()*recallRate, mostSaved)) }
