package bench

// experiment is what paper 2 measured of one service: tables 2 to 5, session times in milliseconds on a phone at 14.4 kbit/s.
type experiment struct {
	sizes, counts []int
	hhfr, soap    map[int][]float64 // by size, a column for each count
	breakEven     map[int]float64   // section 5.1, as recomputed from the printed times
}

var papers = map[string]experiment{
	"concat": {
		sizes: []int{2, 4, 8, 64}, counts: []int{1, 2, 4, 8},
		hhfr: map[int][]float64{2: {5580, 5710, 5730, 6100}, 4: {5660, 6010, 6030, 6470}, 8: {5950, 6310, 6530, 7070}, 64: {11890, 13570, 19730, 29660}},
		soap: map[int][]float64{2: {3440, 6060, 14720, 26040}, 4: {3670, 6710, 15050, 28490}, 8: {4260, 9590, 16390, 30790}, 64: {6510, 15640, 28020, 54200}},
		// Oa + Ob = 4500 + 4800, t1 = 120, t2 = 3580
		breakEven: map[int]float64{4: 2.69},
	},
	"sum": {
		sizes: []int{5, 10, 15}, counts: []int{1, 5, 10, 100},
		hhfr: map[int][]float64{5: {5440, 5790, 6500, 20360}, 10: {5650, 6210, 7870, 22780}, 15: {5700, 6500, 8790, 24510}},
		soap: map[int][]float64{5: {3260, 17620, 35960, 330750}, 10: {3480, 20890, 37720, 353340}, 15: {3800, 22100, 42790, 387840}},
		// printed as 2.88 from t2 = 3480; with the printed t2 = 3780 it is
		breakEven: map[int]float64{10: 2.63},
	},
}

// time is what the paper has for a cell, 0 if nothing. Its SOAP opened a connection for each message.
func (e experiment) time(way Way, size, n int) float64 {
	table := e.hhfr
	if way == SOAPNew {
		table = e.soap
	}
	if way == SOAPKept {
		return 0
	}
	for i, c := range e.counts {
		if row := table[size]; c == n && len(row) > i {
			return row[i]
		}
	}
	return 0
}
