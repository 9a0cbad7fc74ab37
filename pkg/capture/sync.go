package capture

import (
	"fmt"

	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// candidate is a sync frame found by its mark.
type candidate struct {
	at   int64 // in the direction
	sync frame.Sync
}

// syncs finds all frames in the runs that look like syncs.
func syncs(runs []flow.Run) (found []candidate) {
	for i := range runs {
		r := &runs[i]
		for from := 0; len(found) < maxCandidates; {
			at, s, ok := frame.FindSync(r.Data, from)
			if !ok {
				break
			}
			found = append(found, candidate{r.Offset + int64(at), s})
			from = at + 1
		}
	}
	return found
}

// unsynced names connections whose octets look like frames of a stream, of which neither a hello nor a sync was
// captured. A guess, for people; "" for others.
func unsynced(f *flow.Flow) string {
	octets, looks := 0, false
	for _, d := range f.Dirs {
		for i := range d.Runs {
			octets += len(d.Runs[i].Data)
			looks = looks || framed(&d.Runs[i])
		}
	}
	if !looks {
		return ""
	}
	return fmt.Sprintf("connections with what may be an hhfr stream (no sync frame in %d octets; "+
		"the next is due 64 KiB, 1,024 messages or 15 minutes after the last)", octets)
}

// framed reports whether a run is a row of whole frames from the beginning of one of its first packets on.
func framed(r *flow.Run) bool {
	const packets, least = 20, 3
	for _, m := range r.Marks[:min(len(r.Marks), packets)] {
		at, frames, messages := m.At, 0, 0
		for at < len(r.Data) {
			f, n, err := frame.Parse(r.Data[at:], int64(at), 0)
			if err != nil || n == 0 {
				break
			}
			if _, skipped := f.(frame.Skipped); skipped {
				break // any text would do
			}
			if _, ok := f.(frame.Data); ok {
				messages++
			}
			frames++
			at += n
		}
		if at == len(r.Data) && frames >= least && messages > 0 {
			return true
		}
	}
	return false
}
