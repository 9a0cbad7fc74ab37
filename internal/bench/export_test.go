package bench

// Paper is the papers' measurement.
func Paper(service string, way SessionWay, size, n int) float64 {
	return papers[service].time(way, size, n)
}

// PaperCosts are the papers' t1, t2, and Oa + Ob.
func PaperCosts(service string, size int) [3]float64 {
	c := papers[service].costs[size]
	return [3]float64{c.t1, c.t2, c.setup}
}

// ModelOf fits the cost model, without the papers' figures.
func ModelOf(cells []Cell) Model { return model(cells, costs{}) }

// Samples are the header and the schema that overheads are measured with.
func Samples() (header, schema string) { return sampleHeader, sampleSchema }
