package bench

import "fmt"

// Model is the papers' cost model for the cells of one service and size (paper 2, section 5.1): t1
// and t2 are milliseconds per message with hhfr and with SOAP, over all lengths of sessions, Setup
// is Oa + Ob, and the rest is the number of messages until hhfr is faster. A cost is 0 if it is not
// known: the sessions are all of one length, or do not take longer with more messages.
type Model struct {
	Service string `json:"service"` // as in the cells
	Size    int    `json:"size"`    // items in a message
	// cost of a message with hhfr; 0, here and below: not known, because the sessions have one
	// length or their times do not grow with the messages
	T1       float64 `json:"t1_ms"`
	T1Queued float64 `json:"t1_queued_ms"` // hhfr that does not wait for replies
	T2New    float64 `json:"t2_new_ms"`    // SOAP on new connections
	T2Kept   float64 `json:"t2_kept_ms"`   // SOAP on one
	Setup    float64 `json:"oa_ob_ms"`     // negotiation, and opening the stream
	// messages until hhfr is faster than SOAP on new connections; 0: never, or a cost is not known
	BreakEvenNew float64 `json:"break_even_new"`
	// messages until hhfr that does not wait is faster than SOAP on new connections, as in the
	// papers
	BreakEvenQueued float64 `json:"break_even_queued"`
	BreakEvenKept   float64 `json:"break_even_kept"` // the same for SOAP on one
	Oa              float64 `json:"oa_ms,omitempty"` // a context set in a context store
	Oc              float64 `json:"oc_ms,omitempty"` // what the first message with a shape takes more
	// messages until hhfr that does not wait is faster than SOAP on new connections, as in the
	// papers, if Oa and Oc are to be made up for as well
	BreakEvenAll float64 `json:"break_even_all,omitempty"`
	// what the papers have for these, with SOAP on new connections
	PaperT1        float64  `json:"paper_t1_ms,omitempty"`
	PaperT2        float64  `json:"paper_t2_ms,omitempty"`      // likewise
	PaperSetup     float64  `json:"paper_oa_ob_ms,omitempty"`   // likewise
	PaperBreakEven float64  `json:"paper_break_even,omitempty"` // likewise
	Doubts         []string `json:"doubts,omitempty"`           // costs that are not used, and why
}

// model fits the cost model to the cells of one service and size.
func model(cells []Cell, paper costs) Model {
	m := Model{Service: cells[0].Service, Size: cells[0].Size, PaperT1: paper.t1, PaperT2: paper.t2,
		PaperSetup: paper.setup, PaperBreakEven: breakEven(paper.setup, paper.t1, paper.t2)}
	for _, w := range []struct {
		way  SessionWay
		cost *float64
	}{{Explicit, &m.T1}, {ExplicitQueued, &m.T1Queued}, {SOAPNew, &m.T2New}, {SOAPKept, &m.T2Kept}} {
		ms, ok := perMessage(cells, w.way)
		switch {
		case ok && ms > 0:
			*w.cost = ms
		case ok:
			doubt := fmt.Sprintf("%s(%d): the times of %s do not grow with the messages (%.1f ms a message); they "+
				"are not used",
				m.Service, m.Size, w.way, ms)
			m.Doubts = append(m.Doubts, doubt)
		}
	}
	for _, c := range cells {
		if c.Way == Explicit {
			m.Setup = c.Setup
		}
	}
	m.BreakEvenQueued = breakEven(m.Setup, m.T1Queued, m.T2New)
	m.BreakEvenNew, m.BreakEvenKept = breakEven(m.Setup, m.T1, m.T2New), breakEven(m.Setup, m.T1, m.T2Kept)
	return m
}

// add completes the model with the costs beside the messages.
func (m *Model) add(list []Overhead, link string) {
	for _, o := range list {
		switch {
		case o.Link != link:
		case o.Name == "Oa-set":
			m.Oa = o.Millis
		case o.Name == "Oc":
			m.Oc = o.Millis
		}
	}
	if m.Oa > 0 {
		m.BreakEvenAll = breakEven(m.Oa+m.Setup+m.Oc, m.T1Queued, m.T2New)
	}
}

// perMessage is the additional time of a session for each further message, in milliseconds: the
// slope of the line through all sessions of one way that is closest to them (least squares). ok:
// there are sessions of at least two lengths.
func perMessage(cells []Cell, way SessionWay) (ms float64, ok bool) {
	ms, _, ok = line(cells, func(c Cell) (float64, bool) { return float64(c.N), c.Way == way })
	return ms, ok
}

// breakEven is (Oa + Ob) / (t2 - t1), 0 if hhfr never is faster, or one of them is not known.
func breakEven(setup, t1, t2 float64) float64 {
	if t1 <= 0 || t2 <= t1 {
		return 0
	}
	return setup / (t2 - t1)
}
