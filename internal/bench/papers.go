package bench

import "github.com/hhfr/hhfr/internal/papers"

// asInPaper is how paper 2 measured one service, whose times internal/papers has.
type asInPaper struct {
	sizes, counts []int
	costs         map[int]costs // section 5.4
}

// costs are those of the papers' model, in milliseconds: t1 and t2 per message with hhfr and with
// SOAP, setup is Oa + Ob.
type costs struct{ t1, t2, setup float64 }

var experiments = map[string]asInPaper{
	"concat": {
		sizes: []int{2, 4, 8, 64}, counts: []int{1, 2, 4, 8},
		costs: map[int]costs{4: {t1: 120, t2: 3580, setup: 4500 + 4800}},
	},
	"sum": {
		sizes: []int{5, 10, 15}, counts: []int{1, 5, 10, 100},
		// They print a break-even of 2.88, from a t2 of 3480; with the t2 they print it is 2.63.
		costs: map[int]costs{10: {t1: 250, t2: 3780, setup: 4500 + 4800}},
	},
	// Not of the papers, as those below.
	"echo":      {sizes: []int{10}, counts: []int{1, 2, 4, 8, 10, 100}},
	FileService: {counts: []int{1, 2, 4, 8, 10, 100}},
}

// paperTime is the paper's time for a cell, 0 if it has none, beside which all of hhfr without TLS
// stand. Its SOAP opened a connection for each message.
func paperTime(service string, way SessionWay, size, n int) float64 {
	m, err := way.manner()
	if err != nil || m.tls || !m.hhfr() && way != SOAPNew {
		return 0
	}
	for _, s := range papers.Sessions() {
		if s.Service == service && s.HHFR == m.hhfr() && s.Size == size && s.N == n {
			return s.Millis
		}
	}
	return 0
}
