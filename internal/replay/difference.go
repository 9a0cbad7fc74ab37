package replay

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/capture"
)

// excerptOctets is the length of a reply that an excerpt shows on each side of the first
// difference: a value with its tags, on one line.
const excerptOctets = 32

// Difference is where two replies first differ.
type Difference struct {
	// What is "status", "body" or, of two documents that are compared by their content, "content".
	What string `json:"what"`
	// Offset is that of the first byte of the body that differs; 0 for a status.
	Offset int `json:"offset"`
	// Recorded and Now are the values in the recorded reply and in the new one; for bodies a quoted
	// excerpt, as in Go, with the bytes around.
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
	// RecordedFault and NowFault are code and reason of the fault that a reply is; where a status
	// differs.
	RecordedFault string `json:"recorded_fault,omitempty"`
	NowFault      string `json:"now_fault,omitempty"`
	// RecordedOctets and NowOctets are the lengths of the bodies.
	RecordedOctets int `json:"recorded_octets"`
	NowOctets      int `json:"now_octets"`
	// Changes are, of content, the first places that differ: 100 at most.
	Changes []ContentChange `json:"changes,omitempty"`
}

// Compare returns how a reply differs from the recorded one: nil if status and body are the same. A
// different status takes precedence over a different body.
func Compare(recordedStatus int, recorded []byte, status int, now []byte) *Difference {
	d := &Difference{RecordedOctets: len(recorded), NowOctets: len(now)}
	if recordedStatus != status {
		d.What, d.Recorded, d.Now = "status", fmt.Sprint(recordedStatus), fmt.Sprint(status)
		d.RecordedFault, d.NowFault = capture.FaultText(recorded), capture.FaultText(now)
		return d
	}
	at := 0
	for at < len(recorded) && at < len(now) && recorded[at] == now[at] {
		at++
	}
	if at == len(recorded) && at == len(now) {
		return nil
	}
	d.What, d.Offset, d.Recorded, d.Now = "body", at, excerpt(recorded, at), excerpt(now, at)
	return d
}

// excerpt shows the bytes around an offset.
func excerpt(b []byte, at int) string {
	from, to := max(at-excerptOctets, 0), min(at+excerptOctets, len(b))
	s := fmt.Sprintf("%q", b[from:to])
	if from > 0 {
		s = "…" + s
	}
	if to < len(b) {
		s += "…"
	}
	return s
}
