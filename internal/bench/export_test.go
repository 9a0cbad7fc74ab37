package bench

import (
	"context"
	"io"
	"net/url"
)

// Paper is the papers' measurement.
func Paper(service string, way SessionWay, size, n int) float64 {
	return paperTime(service, way, size, n)
}

// PaperCosts are the papers' t1, t2, and Oa + Ob.
func PaperCosts(service string, size int) [3]float64 {
	c := experiments[service].costs[size]
	return [3]float64{c.t1, c.t2, c.setup}
}

// ModelOf fits the cost model, without the papers' figures.
func ModelOf(cells []Cell) Model { return model(cells, costs{}) }

// Samples are the header and the schema that overheads are measured with.
func Samples() (header, schema string) { return sampleHeader, sampleSchema }

// TextOf is the message of an array.
func TextOf(array []float32) io.Reader { return textOf(array) }

// Sweeps fits lines over sizes.
func Sweeps(cells []Cell, counts []int) []Sweep { return sweeps(cells, counts) }

// ToPeer runs one session to a server, without a warm-up.
func ToPeer(ctx context.Context, u *url.URL, way SessionWay, n int) (Cell, error) {
	cfg := SessionConfig{Peer: u, Ways: []SessionWay{way}}
	cfg.complete()
	s, err := cfg.trial("sum", way, echoFloats, n, known{})
	if err != nil {
		return Cell{}, err
	}
	return s.lived(ctx)
}
