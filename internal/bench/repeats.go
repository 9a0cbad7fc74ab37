package bench

import "github.com/hhfr/hhfr/internal/experiment"

// Repeated is a session by all of its repeats.
type Repeated struct {
	Cell              // of the median time, and with the median of the time before the first message
	Low, High float64 // interval of the median, 95 %, in milliseconds
	Count     int     // of repeats
	Bad       int     // how many of them are not good
}

// minInterval is from how many repeats on there is an interval of 95 % (experiment.Median).
const minInterval = 6

// HasInterval reports whether the median of so many repeats has an interval.
func HasInterval(repeats int) bool { return repeats >= minInterval }

// repeatedSession is what repeats have in common.
type repeatedSession struct {
	service string
	way     SessionWay
	size, n int
}

// Repeats puts the repeats of each session together, in the order of the first ones.
func Repeats(cells []Cell) (list []Repeated) {
	at := map[repeatedSession]int{}
	var all [][]Cell
	for _, c := range cells {
		key := repeatedSession{c.Service, c.Way, c.Size, c.N}
		i, known := at[key]
		if !known {
			i = len(all)
			at[key], all = i, append(all, nil)
		}
		all[i] = append(all[i], c)
	}
	for _, repeats := range all {
		r := Repeated{Cell: repeats[0], Count: len(repeats)}
		var times, setups []float64
		for _, c := range repeats {
			times, setups = append(times, c.Millis), append(setups, c.Setup)
			if !c.Good() {
				r.Bad++
			}
		}
		r.Millis, r.Low, r.High = experiment.Median(times)
		r.Setup, _, _ = experiment.Median(setups)
		list = append(list, r)
	}
	return list
}

// typical has one cell for each session.
func typical(cells []Cell) (list []Cell) {
	for _, r := range Repeats(cells) {
		list = append(list, r.Cell)
	}
	return list
}
