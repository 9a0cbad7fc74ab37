package real

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

// seed is that of all values, of all cells.
const seed = 1

var (
	devices = []string{"pump-07", "pump-11", "valve-3", "boiler-2", "meter-4410", "meter-4411", "fan-1", "gate-12"}
	people  = []string{"Anna Berg", "José Ruiz", "M. Okafor", "Wei Chen", "Lena Voss", "D. Novak"}
	alarms  = []string{"pressure low", "pressure high", "no flow", "door open", "battery low"}
)

// record is one of a call.
type record struct {
	text   string
	number int
	flag   bool
}

// conversation has the records of so many calls.
func conversation(content string, calls int) (list [][]record) {
	g := generator{rand.New(rand.NewPCG(seed, seed)), time.Date(2026, 3, 14, 9, 27, 0, 0, time.UTC), 184_220, 730, nil}
	for range devices {
		g.levels = append(g.levels, 2000+g.IntN(1000))
	}
	for range calls {
		list = append(list, map[string]func() []record{Readings: g.readings, Mixed: g.mixed, New: g.random}[content]())
	}
	return list
}

// generator has what the next call goes on from.
type generator struct {
	*rand.Rand
	now    time.Time
	serial int
	flow   int
	levels []int
}

// readings are those of some devices: each field has one kind of values.
func (g *generator) readings() (call []record) {
	for range 3 + g.IntN(3) {
		at := g.IntN(len(devices))
		g.levels[at] += g.IntN(21) - 10
		call = append(call, record{devices[at], g.levels[at], g.IntN(10) > 0})
	}
	return call
}

// mixed has a name, a time, who is on duty, a decimal and now and then an alarm in the same field.
func (g *generator) mixed() []record {
	g.serial++
	g.now = g.now.Add(time.Duration(20_000+g.IntN(20_000)) * time.Millisecond)
	g.levels[0], g.flow = g.levels[0]+g.IntN(21)-10, g.flow+g.IntN(9)-4
	call := []record{
		{devices[g.IntN(len(devices))], g.serial, true},
		{g.now.Format("2006-01-02T15:04:05.000Z"), g.IntN(100), g.IntN(10) > 0},
		{people[g.IntN(len(people))], g.levels[0], g.levels[0] > 2500},
		{fmt.Sprintf("%d.%02d", g.flow/100, g.flow%100), g.flow, false},
	}
	if g.IntN(5) == 0 {
		call = append(call, record{alarms[g.IntN(len(alarms))], g.IntN(1000), true})
	}
	return call
}

// random has nothing that was there before.
func (g *generator) random() (call []record) {
	for range 4 {
		text := make([]byte, 60)
		for i := range text {
			text[i] = byte(g.Uint32())
		}
		call = append(call, record{base64.StdEncoding.EncodeToString(text), int(g.Int32()), g.IntN(2) == 0})
	}
	return call
}

// writeValues writes the file that clients read.
func writeValues(path string, c Cell) error {
	var b strings.Builder
	for _, call := range conversation(c.Content, c.Calls) {
		for _, r := range call {
			fmt.Fprintf(&b, "%s\t%d\t%t\n", r.text, r.number, r.flag)
		}
		b.WriteByte('\n')
	}
	return os.WriteFile(path, []byte(b.String()), 0o600)
}
