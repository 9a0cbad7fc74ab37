package capture

import (
	"io"

	"github.com/hhfr/hhfr/internal/spool"
)

// tape is the bytes of a direction with their offsets, as [DecodeConfig.Octets] is given them. How
// long a gap between datagrams is nobody knows until a sync behind it says where it stands; what
// comes before that is held.
type tape struct {
	out   func(offset int64, b []byte) error // nil: nobody wants them, or not yet
	held  []reel
	next  int64 // offset of what comes
	float bool  // that is not known
	end   int64 // of what came before the gap
	begun bool  // something came

	gaps    int
	missing int64
}

// reel is a run that waits for its offset, or for somebody who wants it.
type reel struct {
	offset int64
	octets *spool.Body
}

// gap says that bytes are missing, -1 if nobody knows how many.
func (t *tape) gap(missing int64) {
	t.place(0)
	if missing >= 0 {
		t.next += missing
		return
	}
	if t.end, t.float = t.next, true; t.begun {
		t.next++ // for want of anything better
	}
}

// place says which offset the first byte behind the gap has; one that cannot be is none.
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

// write takes bytes. keep: they are held until there is an out.
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

// drop forgets what is held.
func (t *tape) drop() {
	for _, r := range t.held {
		r.octets.Free()
	}
	t.held = nil
}

// flush gives out what is held.
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

// reelWriter gives out a run.
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
