package capture

import (
	"io"
	"math"

	"github.com/hhfr/hhfr/internal/spool"
)

// tape is the bytes of a direction with their offsets, as passed to [DecodeConfig.Octets]. The
// length of a gap between datagrams is not known until a sync after it states an offset; bytes
// before that wait.
type tape struct {
	out   func(offset int64, b []byte) error // nil: they are not needed, or not yet
	held  []reel
	next  int64 // offset of the next bytes
	float bool  // that offset is not known
	end   int64 // offset of the end before the gap
	begun bool  // some bytes have come

	gaps    int
	missing int64
}

// reel is a run that waits for its offset, or for a receiver.
type reel struct {
	offset int64
	octets *spool.Spooled
}

// gap reports that bytes are missing, -1 if the number is not known.
func (t *tape) gap(missing int64) {
	t.place(0)
	if missing >= 0 {
		t.next += missing
		return
	}
	if t.end, t.float = t.next, true; t.begun {
		t.next++ // the least possible number
	}
}

// place states the offset of the first byte after the gap; an impossible offset is ignored.
func (t *tape) place(offset int64) {
	if !t.float {
		return
	}
	t.float = false
	first := t.end
	if t.begun {
		first++
	}
	if offset > first && offset < maxOffset {
		for i := range t.held {
			if t.held[i].offset >= first {
				t.held[i].offset += offset - first
			}
		}
		t.next += offset - first
		first = offset
	}
	if t.begun {
		t.gaps++
		t.missing += first - t.end
	}
	t.begun = true
}

// write takes bytes. keep: they wait until there is an out.
func (t *tape) write(b []byte, keep bool, bodies *spool.Spool) (err error) {
	t.begun = t.begun || !t.float
	switch {
	case t.out != nil && !t.float:
		if err = t.flush(); err == nil {
			err = t.out(t.next, b)
		}
	case keep:
		if n := len(t.held); n == 0 || t.held[n-1].offset+t.held[n-1].octets.Len() != t.next {
			t.held = append(t.held, reel{t.next, bodies.Body()})
		}
		_, err = t.held[len(t.held)-1].octets.Write(b)
	}
	t.next += int64(len(b))
	return err
}

// drop forgets the bytes that wait.
func (t *tape) drop() {
	for _, r := range t.held {
		r.octets.Free()
	}
	t.held = nil
}

// flush passes on the bytes that wait.
func (t *tape) flush() error {
	if t.out == nil || t.float {
		return nil
	}
	for _, r := range t.held {
		if _, err := io.Copy(&reelWriter{t, r.offset}, r.octets.Reader()); err != nil {
			return err
		}
	}
	t.drop()
	return nil
}

// reelWriter passes on a run.
type reelWriter struct {
	*tape
	at int64
}

func (w *reelWriter) Write(b []byte) (int, error) {
	if err := w.out(w.at, b); err != nil {
		return 0, err
	}
	w.at += int64(len(b))
	return len(b), nil
}

// maxOffset keeps sums of offsets within 63 bits.
const maxOffset = math.MaxInt64 / 4
