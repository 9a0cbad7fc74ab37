package bench

import "math"

// Sweep is the time of sessions over the size of their messages, as paper 1 writes it: y = P1 x +
// P2 with hhfr, y = P3 x + P4 with plain SOAP, by least squares; y is in milliseconds, x in items.
type Sweep struct {
	Service string     `json:"service"` // as in the cells
	N       int        `json:"n"`       // messages
	Way     SessionWay `json:"way"`     // with hhfr, as in the cells
	Against SessionWay `json:"against"` // the plain SOAP beside it
	P1      float64    `json:"p1_ms"`
	P2      float64    `json:"p2_ms"`
	P3      float64    `json:"p3_ms"`
	P4      float64    `json:"p4_ms"`
	// Crossing is the size from which on hhfr is at least as fast, by the lines; -1: there is none
	Crossing float64 `json:"crossing"`
}

// sweeps compares hhfr with plain SOAP, over the sizes of one service.
func sweeps(cells []Cell, counts []int) (list []Sweep) {
	for _, n := range counts {
		for _, ours := range ways {
			p1, p2, ok := overSize(cells, ours.name, n)
			if !ok {
				continue
			}
			for _, theirs := range ways {
				p3, p4, ok := overSize(cells, theirs.name, n)
				if !ok || !ours.rival(theirs.manner) {
					continue
				}
				list = append(list, Sweep{Service: cells[0].Service, N: n, Way: ours.name, Against: theirs.name,
					P1: p1, P2: p2, P3: p3, P4: p4, Crossing: crossing(p1, p2, p3, p4)})
			}
		}
	}
	return list
}

// crossing is the size from which on p1 x + p2 is at most p3 x + p4; -1: from none on.
func crossing(p1, p2, p3, p4 float64) float64 {
	switch {
	case p1 > p3, p1 == p3 && p2 > p4:
		return -1
	case p2 <= p4:
		return 0
	}
	return (p2 - p4) / (p3 - p1)
}

// overSize is the line through the sessions of one kind and number of messages; ok: there are some
// of at least two sizes.
func overSize(cells []Cell, way SessionWay, n int) (slope, at0 float64, ok bool) {
	return line(cells, func(c Cell) (float64, bool) { return float64(c.Size), c.Way == way && c.N == n })
}

// line is the one closest to the times of some cells over x, in milliseconds (least squares); ok:
// there are cells with two x at least.
func line(cells []Cell, x func(Cell) (at float64, of bool)) (slope, at0 float64, ok bool) {
	var n, meanX, meanY float64
	for _, c := range cells {
		if at, of := x(c); of {
			n, meanX, meanY = n+1, meanX+at, meanY+c.Millis
		}
	}
	meanX, meanY = meanX/n, meanY/n
	var together, apart float64
	for _, c := range cells {
		if at, of := x(c); of {
			d := at - meanX
			together, apart = together+d*(c.Millis-meanY), apart+d*d
		}
	}
	if math.IsNaN(apart) || apart == 0 {
		return 0, 0, false
	}
	slope = together / apart
	return slope, meanY - slope*meanX, true
}
