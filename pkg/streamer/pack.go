package streamer

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Packer is a [Coder] that has stages (docs/wire-format.md, sections 3 and 11): between queue and frame it packs segments, in the order in which they leave, and unpacks them in the
// order in which they come.
type Packer interface {
	// Stages are those that this end can do. An initiator's hello asks for all of them.
	Stages() uint64
	// Agree tells the stages of both hellos, before anything is packed.
	Agree(stages uint64)
	// NewPack begins a part of an outgoing message; the writer calls it. alone tells that the message is in one frame. The function it returns packs segment after segment: it appends
	// at most most octets, or one more than the segment has. text: as Split says it. last: no further segment. nil: the segments are sent as they are.
	NewPack(lane, number uint64, alone bool) func(dst, segment []byte, text, last bool, most int) []byte
	// NewUnpack begins a part of an incoming message when it comes; number means what it stands for now. nil: the segments are as they are. The function it returns is called
	// lane by lane in the order of the frames; alone tells that the message is in one frame, epoch how many syncs came before that frame. What that returns appends the segment, of
	// at most most octets, behind each packed one. Its errors end the stream, but for those that [Packer.IsLost] tells.
	NewUnpack(number uint64) func(lane uint64, alone bool, epoch uint64) func(dst, packed []byte, text, last bool, most int) ([]byte, error)
	// IsLost tells that a segment cannot be unpacked since messages before it on its lane were given up.
	IsLost(err error) bool
	// GiveUp tells that messages of a lane are dropped without being unpacked. Restart has what is sent next on a lane build on
	// nothing sent before: the peer may have dropped messages so, or the lane is another client's now. It is called by anybody.
	GiveUp(lane, epoch uint64)
	Restart(lane uint64)
	// Rest makes the memory of a lane that sends small while the lane is idle. given: it was too large for that, and is given
	// back; the next packed segment on the lane resets that of the peer. Idled tells that the peer has given a memory back.
	Rest(lane uint64) (given bool)
	Idled(lane uint64)
	// Rested does so for lanes on which nothing was received since the last call; left: something was on others.
	Rested() (left bool)
	// Synced tells that a sync came; keep names lanes of which messages from before it are still to be unpacked.
	Synced(keep func(lane uint64) bool)
}

// packing packs the parts of a message on its way out: head and body.
type packing [2]func(dst, segment []byte, text, last bool, most int) []byte

// packRoom is how many octets beyond its own a segment may take when it is packed, where there is room: enough for a memory to get to know what is new.
const packRoom = 64

// use notes that a lane's memory is in use, if it has one.
func (w *writer) use(lane uint64) {
	now := time.Now()
	if len(w.used) == 0 {
		w.idleAt = now.Add(memoryIdle)
	}
	if w.used == nil {
		w.used = map[uint64]time.Time{}
	}
	w.used[lane] = now
}

// rest makes the memories of idle lanes small, or gives them back, on both ends. There are no more of them than messages
// between two syncs, so one frame names them all.
func (w *writer) rest() {
	if len(w.used) == 0 {
		return
	}
	now := time.Now()
	if now.Before(w.idleAt) {
		return
	}
	var lanes []uint64
	first := now
	for lane, at := range w.used {
		if now.Sub(at) >= memoryIdle-memoryRest {
			lanes = append(lanes, lane)
		} else if at.Before(first) {
			first = at
		}
	}
	w.idleAt = first.Add(memoryIdle)
	lanes = slices.DeleteFunc(lanes, func(lane uint64) bool {
		delete(w.used, lane)
		return !w.s.packer.Rest(lane)
	})
	if len(lanes) > 0 {
		slices.Sort(lanes)
		w.append(frame.Idle{Lanes: lanes}, Event{})
	}
}

// pack packs the segments of a frame's payload. The new payload is good until the next call.
func (w *writer) pack(d *frame.Data, p *frame.Parts, out *outgoing) {
	if w.remembers(d) {
		w.use(d.Lane)
	}
	room := max(0, min(packRoom, (w.s.maxPayload-len(d.Payload))/2-2))
	b := w.payload[:0]
	if p.HasHead {
		if p.Head.First {
			b = binary.AppendUvarint(b, p.Head.Shape)
		}
		w.segment = w.packPart(w.segment[:0], 0, p.Head, d, out, room)
		n := 2 * uint64(len(w.segment))
		if !p.Head.Last {
			n++
		}
		b = append(binary.AppendUvarint(b, n), w.segment...)
	}
	if p.HasBody {
		if p.Body.First {
			b = binary.AppendUvarint(b, p.Body.Shape)
		}
		b = w.packPart(b, 1, p.Body, d, out, room)
	}
	w.payload, d.Payload = b, b
}

// remembers tells whether a message may have a memory: it is in one frame, of an ordered stream.
func (w *writer) remembers(d *frame.Data) bool { return d.First && d.Last }

func (w *writer) packPart(dst []byte, i int, p frame.Part, d *frame.Data, out *outgoing, room int) []byte {
	pack := &out.packing[i]
	if p.First {
		*pack = w.s.packer.NewPack(d.Lane, p.Shape, w.remembers(d))
	}
	if *pack == nil {
		return append(dst, p.Segment...)
	}
	return (*pack)(dst, p.Segment, p.Text, p.Last, len(p.Segment)+1+room)
}

// unpack makes the segments of a fragment what they were before they were packed, in memory of their own. lost: they cannot be had any more.
func (r *receiver) unpack(h *heldParts) (lost bool, err error) {
	in, p, most := h.in, &h.parts, frame.MaxPayload
	if in.alone && r.restAt.IsZero() {
		r.restAt = time.Now().Add(memoryIdle / 2)
	}
	buf := make([]byte, 0, 64+2*(len(p.Head.Segment)+len(p.Body.Segment)))
	for i, part := range [...]*frame.Part{&p.Head, &p.Body} {
		if !([...]bool{p.HasHead, p.HasBody}[i]) {
			continue
		}
		f := &in.unpacks[i]
		if begin := h.unpacks[i]; begin != nil {
			*f = begin(in.key.Lane, in.alone, h.epoch)
		}
		from := len(buf)
		if *f == nil {
			buf = append(buf, part.Segment...)
		} else if buf, err = (*f)(buf, part.Segment, part.Text, part.Last, most); err != nil {
			if r.s.packer.IsLost(err) {
				return true, nil
			}
			return false, fmt.Errorf("%s: %w", in.key, err)
		}
		part.Segment = buf[from:len(buf):len(buf)]
	}
	return false, nil
}
