package replay

import "fmt"

// excerptOctets is how much of a reply an excerpt shows on each side of the first difference: a
// value with its tags, on one line.
const excerptOctets = 32

// Difference is where two replies first differ.
type Difference struct {
	// What is "status" or "body".
	What string `json:"what"`
	// Offset is that of the first octet of the body that differs; 0 for a status.
	Offset int `json:"offset"`
	// Recorded and Now are what stands there in the recorded reply and in the new one; of bodies an
	// excerpt, quoted as Go does, with the octets around.
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
	// RecordedOctets and NowOctets are the lengths of the bodies.
	RecordedOctets int `json:"recorded_octets"`
	NowOctets      int `json:"now_octets"`
}

// Compare tells how a reply differs from the recorded one: nil if status and body are the same. A
// status that differs goes before a body that does.
func Compare(recordedStatus int, recorded []byte, status int, now []byte) *Difference {
	d := &Difference{RecordedOctets: len(recorded), NowOctets: len(now)}
	if recordedStatus != status {
		d.What, d.Recorded, d.Now = "status", fmt.Sprint(recordedStatus), fmt.Sprint(status)
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

// excerpt shows the octets around an offset.
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
