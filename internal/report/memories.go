package report

import (
	"cmp"
	"fmt"

	"github.com/hhfr/hhfr/internal/experiment"
)

// Memories are what messages of floats take, and the largest that fit.
func Memories(rows []experiment.MemoryRow) []Section {
	if len(rows) == 0 {
		return nil
	}
	t := &Grid{Head: []string{"by", "server", "floats", "MB", "limit MB"}}
	for _, r := range rows {
		limit := ""
		if r.LimitOctets > 0 {
			limit = Figure(float64(r.LimitOctets) / 1e6)
		}
		t.Rows = append(t.Rows, []string{
			r.Way, cmp.Or(r.Peer, "in this process"), fmt.Sprint(r.Size), Figure(float64(r.PeakOctets) / 1e6), limit,
		})
	}
	return []Section{{
		Title: "Memory of a message", Table: t,
		Text: "The most on the heap, beyond what was there before, from an array of floats, of 4 bytes each, to the " +
			"reply. With hhfr its text is made as it leaves, in plain SOAP before, as its length comes first. With a " +
			"limit: the largest array that fits. The papers' phone has 24 MB for applications.",
	}}
}
