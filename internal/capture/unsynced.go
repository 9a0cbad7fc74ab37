package capture

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/frame"
)

// frames finds out whether unidentified bytes look like frames of a stream: whether one of the
// first packets of a run begins a row of whole frames that continues to the end of the run.
type frames struct {
	buf  []byte // from the first byte on that a row needs
	rows []row
	seen int // packets of this run
	yes  bool
	all  *int // bytes that all connections together keep here
}

// row is a series of consecutive whole frames. next is where in buf the next one begins.
type row struct{ next, frames, messages int }

// write takes the bytes of a packet.
func (f *frames) write(b []byte) {
	const packets = 20
	if f.seen++; f.seen <= packets && !f.yes {
		f.rows = append(f.rows, row{next: len(f.buf)})
	}
	if len(f.rows) == 0 {
		return
	}
	*f.all -= len(f.buf)
	defer func() { *f.all += len(f.buf) }()
	if *f.all+len(f.buf)+len(b) > maxLooks { // it is only a guess
		f.buf, f.rows = nil, nil
		return
	}
	f.buf = append(f.buf, b...)
	kept := f.rows[:0]
	least := len(f.buf)
	for _, r := range f.rows {
		if r.read(f.buf) {
			kept = append(kept, r)
			least = min(least, r.next)
		}
	}
	f.rows = kept
	for i := range f.rows {
		f.rows[i].next -= least
	}
	f.buf = f.buf[:copy(f.buf, f.buf[least:])]
}

// read continues as long as there are whole frames; false: there is something else.
func (r *row) read(b []byte) bool {
	for r.next < len(b) {
		f, n, err := frame.Parse(b[r.next:], int64(r.next), 0)
		if err != nil {
			return false
		}
		if n == 0 {
			return true
		}
		switch f.(type) {
		case frame.Skipped:
			return false // any text would match
		case frame.Data:
			r.messages++
		}
		r.frames++
		r.next += n
	}
	return true
}

// end reports that the run ends.
func (f *frames) end() {
	const least = 3
	for _, r := range f.rows {
		f.yes = f.yes || r.next == len(f.buf) && r.frames >= least && r.messages > 0
	}
	*f.all -= len(f.buf)
	f.buf, f.rows, f.seen = nil, nil, 0
}

// unsynced names connections whose bytes look like frames of a stream, of which neither a hello nor
// a sync was captured. It is a guess, for people.
func unsynced(octets int64) string {
	return fmt.Sprintf("connections with what may be an hhfr stream (no sync frame in %d bytes; "+
		"the next is due 1 MiB, 16,384 messages or 15 minutes after the last)", octets)
}
