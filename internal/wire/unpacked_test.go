package wire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/wire"
)

// rowsOf is an envelope with rows, each of a text, a number and a truth value.
func rowsOf(texts []string, number func() int) string {
	var b strings.Builder
	b.WriteString(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><m xmlns="urn:x">`)
	for _, text := range texts {
		fmt.Fprintf(&b, "<row><text>%s</text><number>%d</number><ok>%t</ok></row>", text, number(), number()%2 == 0)
	}
	return b.String() + "</m></s:Body></s:Envelope>"
}

// log is a column of what people put into one field: a name, a time, a person, a decimal.
func log(rnd *rand.Rand, call int) string {
	at := time.Date(2026, 3, 14, 9, 27, 0, 0, time.UTC).Add(time.Duration(call)*30*time.Second +
		time.Duration(rnd.IntN(20_000))*time.Millisecond)
	return rowsOf([]string{
		[]string{"pump-07", "pump-11", "valve-3", "boiler-2", "meter-4410", "fan-1", "gate-12"}[rnd.IntN(7)],
		at.Format("2006-01-02T15:04:05.000Z"),
		[]string{"Anna Berg", "M. Okafor", "Wei Chen", "Lena Voss", "D. Novak"}[rnd.IntN(5)],
		fmt.Sprintf("%d.%02d", 7+rnd.IntN(2), rnd.IntN(100)),
	}, func() int { return rnd.IntN(100) })
}

// readings have a list of names, and numbers that walk.
func readings(rnd *rand.Rand, call int) string {
	var names []string
	for range 3 + rnd.IntN(3) {
		names = append(names, []string{"pump-07", "pump-11", "valve-3", "boiler-2", "fan-1"}[rnd.IntN(5)])
	}
	return rowsOf(names, func() int { return 2000 + call + rnd.IntN(20) })
}

// sentBy is what so many messages take on a lane that calls now and then, behind the first ones.
func sentBy(t *testing.T, stages uint64, message func(*rand.Rand, int) string) (octets int) {
	p, rnd := newPair(t, wire.EncoderConfig{}, stages), rand.New(rand.NewPCG(1, 1))
	by := p.learn(message(rnd, 0))
	for call := range 60 {
		p.now = p.now.Add(10 * time.Second)
		n := len(p.send(1, by, message(rnd, call))[0])
		if call >= 10 {
			octets += n
		}
	}
	return octets
}

// TestColumnsThatAlternate: content goes as it is, by the window of its lane, where that takes less
// than packed, and packed where it does not.
func TestColumnsThatAlternate(t *testing.T) {
	const packed = wire.Columns | wire.Memory
	assert.Less(t, float64(sentBy(t, allStages, log)), 0.75*float64(sentBy(t, packed, log)))
	assert.LessOrEqual(t, sentBy(t, allStages, readings), sentBy(t, packed, readings))
}

// TestColumnsOfBusyLanes: a lane that sends much has no time for windows.
func TestColumnsOfBusyLanes(t *testing.T) {
	p, rnd := newPair(t, wire.EncoderConfig{}, allStages), rand.New(rand.NewPCG(1, 1))
	by := p.learn(log(rnd, 0))
	byWindow := [2]int{}
	for call := range 1000 { // no sync is due
		if p.send(1, by, log(rnd, call))[0][0] == 0xf6 {
			byWindow[call/700]++
		}
	}
	assert.Greater(t, byWindow[0], 100)
	assert.Zero(t, byWindow[1])
}
