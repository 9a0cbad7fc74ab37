package bench

// paperTables has paper 2's measurements of one service: tables 2 to 5, session times in
// milliseconds on a phone at 14.4 kbit/s.
type paperTables struct {
	sizes, counts []int
	hhfr, soap    map[int][]float64 // by size, a column for each count
	costs         map[int]costs     // section 5.4
}

// costs are those of the papers' model, in milliseconds: t1 and t2 per message with hhfr and with
// SOAP, setup is Oa + Ob.
type costs struct{ t1, t2, setup float64 }

var papers = map[string]paperTables{
	"concat": {
		sizes: []int{2, 4, 8, 64}, counts: []int{1, 2, 4, 8},
		hhfr: map[int][]float64{2: {5580, 5710, 5730, 6100}, 4: {5660, 6010, 6030, 6470}, 8: {5950, 6310, 6530, 7070},
			64: {11890, 13570, 19730, 29660}},
		soap: map[int][]float64{2: {3440, 6060, 14720, 26040}, 4: {3670, 6710, 15050, 28490},
			8: {4260, 9590, 16390, 30790}, 64: {6510, 15640, 28020, 54200}},
		costs: map[int]costs{4: {t1: 120, t2: 3580, setup: 4500 + 4800}},
	},
	"sum": {
		sizes: []int{5, 10, 15}, counts: []int{1, 5, 10, 100},
		hhfr: map[int][]float64{5: {5440, 5790, 6500, 20360}, 10: {5650, 6210, 7870, 22780},
			15: {5700, 6500, 8790, 24510}},
		soap: map[int][]float64{5: {3260, 17620, 35960, 330750}, 10: {3480, 20890, 37720, 353340},
			15: {3800, 22100, 42790, 387840}},
		// They print a break-even of 2.88, from a t2 of 3480; with the t2 they print it is 2.63.
		costs: map[int]costs{10: {t1: 250, t2: 3780, setup: 4500 + 4800}},
	},
	// Not of the papers, as those below.
	"echo":      {sizes: []int{10}, counts: []int{1, 2, 4, 8, 10, 100}},
	FileService: {counts: []int{1, 2, 4, 8, 10, 100}},
}

// time is the paper's time for a cell, 0 if it has none, beside which all of hhfr without TLS
// stand. Its SOAP opened a connection for each message.
func (e paperTables) time(way SessionWay, size, n int) float64 {
	var table map[int][]float64
	if m, err := way.manner(); err == nil && m.hhfr() && !m.tls {
		table = e.hhfr
	} else if way == SOAPNew {
		table = e.soap
	}
	for i, c := range e.counts {
		if row := table[size]; c == n && len(row) > i {
			return row[i]
		}
	}
	return 0
}
