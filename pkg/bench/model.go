package bench

// Model is what the cells of one service and size say in the papers' cost model (paper 2, section 5.1): t1 and t2 are milliseconds a message with hhfr and with SOAP, Setup is Oa + Ob, and the rest how many messages
// it takes until hhfr is faster.
type Model struct {
	Service         string  `json:"service"`                    // as in the cells
	Size            int     `json:"size"`                       // items in a message
	T1              float64 `json:"t1_ms"`                      // hhfr
	T1Queued        float64 `json:"t1_queued_ms"`               // hhfr that does not wait for replies
	T2New           float64 `json:"t2_new_ms"`                  // SOAP on new connections
	T2Kept          float64 `json:"t2_kept_ms"`                 // SOAP on one
	Setup           float64 `json:"oa_ob_ms"`                   // negotiation, and opening the stream
	BreakEvenNew    float64 `json:"break_even_new"`             // messages until hhfr is faster than SOAP on new connections; 0: never
	BreakEvenQueued float64 `json:"break_even_queued"`          // messages until hhfr that does not wait is faster than SOAP on new connections, as in the papers
	BreakEvenKept   float64 `json:"break_even_kept"`            // the same for SOAP on one
	PaperT1         float64 `json:"paper_t1_ms,omitempty"`      // what the papers have for these, with SOAP on new connections
	PaperT2         float64 `json:"paper_t2_ms,omitempty"`      // likewise
	PaperSetup      float64 `json:"paper_oa_ob_ms,omitempty"`   // likewise
	PaperBreakEven  float64 `json:"paper_break_even,omitempty"` // likewise
}

// model fits the cost model to the cells of one service and size.
func model(cells []Cell, paper costs) Model {
	m := Model{Service: cells[0].Service, Size: cells[0].Size, PaperT1: paper.t1, PaperT2: paper.t2, PaperSetup: paper.setup, PaperBreakEven: breakEven(paper.setup, paper.t1, paper.t2)}
	slope := func(way Way) float64 {
		var first, last Cell
		for _, c := range cells {
			if c.Way != way {
				continue
			}
			if first.N == 0 || c.N < first.N {
				first = c
			}
			if c.N > last.N {
				last = c
			}
		}
		if last.N == first.N {
			return last.Millis / float64(max(last.N, 1))
		}
		return (last.Millis - first.Millis) / float64(last.N-first.N)
	}
	m.T1, m.T1Queued, m.T2New, m.T2Kept = slope(HHFR), slope(HHFRQueued), slope(SOAPNew), slope(SOAPKept)
	for _, c := range cells {
		if c.Way == HHFR {
			m.Setup = c.Setup
		}
	}
	m.BreakEvenQueued = breakEven(m.Setup, m.T1Queued, m.T2New)
	m.BreakEvenNew, m.BreakEvenKept = breakEven(m.Setup, m.T1, m.T2New), breakEven(m.Setup, m.T1, m.T2Kept)
	return m
}

// breakEven is (Oa + Ob) / (t2 - t1), 0 where hhfr never is faster.
func breakEven(setup, t1, t2 float64) float64 {
	if t2 <= t1 {
		return 0
	}
	return setup / (t2 - t1)
}
