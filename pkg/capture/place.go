package capture

import (
	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// claim is the identity that the sync frames of a direction have.
type claim struct {
	word    [8]byte
	session [16]byte
}

// place gives the runs of one direction their offsets, where the gaps before them are of unknown length: a sync frame of the direction says where it lies (docs/wire-format.md, section 6). A run without one keeps its place in the
// order; nothing of it could be decoded. It counts the gaps, and the octets that are missing at least.
func place(runs []flow.Run) (gaps, missing int64) {
	who, known := identity(runs)
	end := int64(0)
	for i := range runs {
		r := &runs[i]
		if r.GapBefore == 0 {
			end = r.End()
			continue
		}
		if i > 0 {
			r.Offset = end + 1
			gaps++
		}
		for from := 0; known; {
			at, s, ok := frame.FindSync(r.Data, from)
			if !ok {
				break
			}
			if s.Word == who.word && s.Session == who.session && s.Offset < maxOffset && int64(s.Offset)-int64(at) >= end {
				r.Offset = int64(s.Offset) - int64(at)
				break
			}
			from = at + 1
		}
		if i > 0 {
			r.GapBefore = r.Offset - end
			missing += r.GapBefore
		}
		end = r.End()
	}
	return gaps, missing
}

// identity is that of the hello, or the one that most sync frames have.
func identity(runs []flow.Run) (who claim, known bool) {
	if len(runs) > 0 && runs[0].GapBefore == 0 {
		if h, ok := frame.Opening(runs[0].Data); ok {
			return claim{h.Word, h.Session}, true
		}
	}
	votes := map[claim]int{}
	for _, c := range syncs(runs) {
		one := claim{c.sync.Word, c.sync.Session}
		if votes[one]++; votes[one] > votes[who] {
			who, known = one, true
		}
	}
	return who, known
}
