package window

import (
	"errors"

	"github.com/hhfr/hhfr/internal/bin"
)

var (
	errFlags    = errors.New("flags that do not exist, or do not go together")
	errNumbers  = errors.New("numbers beyond the limit, out of order or empty")
	errTrailing = errors.New("bytes after the end")
)

// Parse reads b into p, whose slices it uses again; payloads alias b. It takes work and memory in
// proportion to b. Errors: Malformed.
func (p *Packet) Parse(b []byte) error {
	p.Clear()
	r := bin.NewCursor(b, 0)
	flags := r.U8()
	lacks := flags&(flagNumber|flagAck) == 0 || flags&flagNumber == 0 && flags&^flagAck != 0
	if r.Err() == nil && (flags&^knownFlags != 0 || lacks) {
		r.Fail(errFlags)
	}
	if flags&flagNumber != 0 {
		parseHead(&r, flags, p)
	}
	if flags&flagAck != 0 {
		p.HasAck = true
		parseAck(&r, &p.Ack)
	}
	if p.Number != 0 {
		parseUnits(&r, p)
	}
	if r.Err() == nil && r.Len() > 0 {
		r.Fail(errTrailing)
	}
	if err := r.Err(); err != nil {
		return &Error{Code: Malformed, Err: err}
	}
	return nil
}

func parseNumber(r *bin.Cursor, later bool) uint64 {
	var sequence uint64
	if later {
		sequence = r.Uvarint()
	}
	number, ok := join(sequence, r.Uvarint())
	if !ok || later && sequence == 0 {
		r.Fail(errNumbers)
	}
	return number
}

func parseHead(r *bin.Cursor, flags byte, p *Packet) {
	p.Number = r.Uvarint()
	p.Floor = parseNumber(r, flags&flagSequence != 0)
	p.Request, p.Closing, p.Terminate = flags&flagRequest != 0, flags&flagClosing != 0, flags&flagTerminate != 0
	if p.Number == 0 || p.Floor == 0 {
		r.Fail(errNumbers)
		return
	}
	if p.Closing {
		ahead := r.Uvarint()
		if ahead > MaxNumber-p.Floor {
			r.Fail(errNumbers)
		}
		p.Last = p.Floor - 1 + ahead
	}
}

func parseAck(r *bin.Cursor, a *AckPacket) {
	flags := r.U8()
	if flags&^knownAckFlags != 0 {
		r.Fail(errFlags)
	}
	a.Final, a.Terminated, a.Unknown = flags&ackFinal != 0, flags&ackTerminated != 0, flags&ackUnknown != 0
	a.Instance = r.Uvarint()
	a.Done = parseNumber(r, flags&ackSequence != 0)
	a.Echo = r.Uvarint()
	if flags&ackRanges != 0 {
		a.Ranges = parseRanges(r, a.Done, a.Ranges)
	}
	if flags&ackNacks != 0 {
		a.Nacks = parseRanges(r, a.Done, a.Nacks)
	}
}

func parseRanges(r *bin.Cursor, done uint64, ranges []Range) []Range {
	n := r.Count(MaxRanges)
	if n == 0 {
		r.Fail(errNumbers)
	}
	for range n {
		gap, more := r.Uvarint(), r.Uvarint()
		touches := len(ranges) > 0 && gap == 0
		if r.Err() != nil || gap >= MaxNumber-done || more >= MaxNumber-done-gap || touches {
			r.Fail(errNumbers)
			return ranges
		}
		first := done + gap + 1
		ranges = append(ranges, Range{first, first + more})
		done = first + more
	}
	return ranges
}

func parseUnits(r *bin.Cursor, p *Packet) {
	next := p.Floor
	for run := 0; r.Len() > 0; run++ {
		ahead, n := r.Uvarint(), r.Uvarint()
		// Each unit takes a byte at least, so that a run is no longer than what is left.
		if r.Err() != nil || n == 0 || n > uint64(r.Len()) || next+n > MaxNumber ||
			ahead > MaxNumber-next-n || run > 0 && ahead == 0 {
			r.Fail(errNumbers)
			return
		}
		next += ahead
		for range n {
			if !parseUnit(r, p, next) {
				return
			}
			next++
		}
	}
}

func parseUnit(r *bin.Cursor, p *Packet, number uint64) bool {
	size := r.Uvarint()
	u := Unit{Number: number, First: true, Last: true}
	if size&1 != 0 {
		fragment := r.U8()
		u.First, u.Last = fragment&1 != 0, fragment&2 != 0
		if fragment >= 3 { // both: a whole message, which has the shorter form
			r.Fail(errFlags)
		}
	}
	if size>>1 > uint64(r.Len()) {
		r.Fail(errNumbers)
		return false
	}
	u.Payload = r.Take(int(size >> 1))
	p.Units = append(p.Units, u)
	return true
}
