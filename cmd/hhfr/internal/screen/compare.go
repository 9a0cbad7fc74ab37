package screen

import (
	"fmt"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/inspector"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// comparison is two messages beside each other.
type comparison struct {
	titles      [2]string
	left, right []string
	pairs       []inspector.Pair
	starts      []int // of pairs: where lines begin that differ
	top         int
}

// newComparison compares two documents, line by line.
func newComparison(titles [2]string, left, right []byte) comparison {
	lines := func(doc []byte) []string { return safeLines(string(xmltext.Indented(doc))) }
	c := comparison{titles: titles, left: lines(left), right: lines(right)}
	c.pairs = inspector.Pairs(c.left, c.right)
	for i, p := range c.pairs {
		if !p.Same && (i == 0 || c.pairs[i-1].Same) {
			c.starts = append(c.starts, i)
		}
	}
	return c
}

// compareMarked compares the message with the marked one.
func (m *screenModel) compareMarked() {
	switch {
	case m.marked < 0:
		m.say(bad, "m marks the message to compare with")
		return
	case m.detail.of < 0:
		return
	}
	with, err := m.log.At(m.marked)
	if err != nil {
		m.say(bad, err.Error())
		return
	}
	e := m.detail.entry
	m.compareWith(newComparison([2]string{nameOf(with), nameOf(e)}, with.Body, e.Body))
}

// nameOf is which message it is.
func nameOf(e *inspector.LogEntry) string {
	return safe(fmt.Sprintf("%d %s %s", e.Number, facts.KindOf(&e.Decoded), e.Operation.Local))
}

// compareWith shows a comparison, at its first difference.
func (m *screenModel) compareWith(c comparison) {
	m.compare, m.screen = c, comparing
	if len(c.starts) == 0 {
		m.say(good, "no line differs")
		return
	}
	m.compare.move(c.starts[0]-2, m.height-3)
	m.say(plain, printing.Count(len(c.starts), "place")+" with differences: n and N go to the next one and back")
}

func (c *comparison) move(by, rows int) { c.top = max(0, min(c.top+by, len(c.pairs)-rows)) }

// next goes to the next difference, or the one before.
func (c *comparison) next(by, rows int) {
	for i := range c.starts {
		at := c.starts[i]
		if by < 0 {
			at = c.starts[len(c.starts)-1-i]
		}
		if by > 0 && at > c.top+2 || by < 0 && at < c.top {
			c.top = 0
			c.move(at-2, rows)
			return
		}
	}
}
