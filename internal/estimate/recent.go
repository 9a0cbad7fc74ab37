package estimate

import "time"

// lastReplies are the last replies of a client.
type lastReplies struct {
	ends    [64]time.Time
	serials [64]int
	n       int
}

func (r *lastReplies) add(end time.Time, serial int) {
	at := r.n % len(r.ends)
	r.ends[at], r.serials[at] = end, serial
	r.n++
}

// before returns the serial number of the last call that was over at a time; 0: there is none.
func (r *lastReplies) before(at time.Time) int {
	for i := r.n - 1; i >= max(0, r.n-len(r.ends)); i-- {
		if k := i % len(r.ends); !r.ends[k].After(at) {
			return r.serials[k]
		}
	}
	return 0
}
