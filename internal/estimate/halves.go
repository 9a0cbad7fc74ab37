package estimate

import "math"

// halves knows what the calls took up to the middle of them, however many they become.
type halves struct {
	every int             // so many calls from one of the marks to the next one
	marks [][ways]traffic // what they had taken then
}

const mostMarks = 128

// note takes what so many calls have taken.
func (h *halves) note(calls int, sum *[ways]traffic) {
	h.every = max(h.every, 1)
	if calls%h.every > 0 {
		return
	}
	if len(h.marks) == mostMarks {
		for i := range mostMarks / 2 {
			h.marks[i] = h.marks[2*i+1]
		}
		h.marks, h.every = h.marks[:mostMarks/2], 2*h.every
		if calls%h.every > 0 {
			return
		}
	}
	h.marks = append(h.marks, *sum)
}

// steady returns what all calls would take if they were as those of the second half are.
func (h *halves) steady(calls int, sum *[ways]traffic) (all [ways]traffic) {
	at := h.marks[max(calls/2/h.every-1, 0)]
	factor := float64(sum[plain].Bytes) / float64(max(sum[plain].Bytes-at[plain].Bytes, 1))
	for w := range all {
		late := traffic{sum[w].Bytes - at[w].Bytes, sum[w].Packets - at[w].Packets}
		of := func(n int64) int64 { return int64(math.Round(float64(n) * factor)) }
		all[w] = traffic{of(late.Bytes), of(late.Packets)}
	}
	return all
}
