package screen

import (
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/inspector"
)

// messageForm is how a message is shown.
type messageForm int

const (
	document messageForm = iota
	asTree
	asHex
	asCarried
)

// madeOf is of what lines are made: they are made again if it changes.
type madeOf struct {
	form  messageForm
	head  bool
	state string
	of    int // of the log; -1: none
}

// detail is the message that is shown.
type detail struct {
	madeOf
	made   madeOf
	width  int // that lines were cut to
	entry  *inspector.LogEntry
	title  string
	lines  []string
	depths []int // of lines, in a tree
	folded map[int]bool
	rows   []detailRow
	top    int
	at     int // row of the cursor, in a tree
	found  []textPlace
	place  int // that is shown; -1: none
}

// detailRow is a part of a line that fits the width.
type detailRow struct{ line, from, to int }

// textPlace is where a text was found: bytes of a line.
type textPlace struct{ line, from, to int }

// listed is a message as decode lists it.
func listed(e *inspector.LogEntry) *listing.ListedMessage {
	return &listing.ListedMessage{Control: e.Control, Asked: facts.Asked{
		Decoded: &e.Decoded, Kind: facts.KindOf(&e.Decoded), Call: e.Call, Took: e.Took,
	}}
}

// load has the detail be that of the message at the cursor.
func (m *screenModel) load() {
	d := &m.detail
	n, ok := m.list.current(m.log.Len())
	if !ok {
		*d = detail{madeOf: madeOf{form: d.form, head: d.head, of: -1}}
		return
	}
	if n != d.of {
		d.top, d.at, d.folded = 0, 0, map[int]bool{}
	}
	if n != d.of || !m.ended {
		e, err := m.log.At(n)
		if err != nil {
			m.say(bad, err.Error())
		}
		d.of, d.entry, d.state = n, e, e.State.String()
	}
	width, rows := m.detailSize()
	if d.madeOf != d.made {
		m.makeLines()
		d.made, d.width = d.madeOf, 0
	}
	if d.width != width {
		d.wrap(width)
		d.find(m.search.text)
	}
	d.settle(rows)
}

func (m *screenModel) show(f messageForm) {
	if m.screen = both; m.detail.form != f {
		m.detail.form, m.detail.top, m.detail.at = f, 0, 0
	}
}

func (m *screenModel) toggleHead() { m.detail.head = !m.detail.head }

// makeLines makes the lines of a message: those that decode shows.
func (m *screenModel) makeLines() {
	d := &m.detail
	e, choice := d.entry, m.source.Choice()
	choice.Head, choice.Pretty, choice.Tree, choice.Hex = d.head, d.form == document, d.form == asTree, d.form == asHex
	choice.Bits = d.form == asCarried
	d.title, d.depths = "", nil
	text := listing.Shown(listed(e), e.Body, &choice)
	d.title, text, _ = strings.Cut(text, "\n")
	d.title = safe(d.title)
	d.lines = safeLines(text)
	if short := int64(len(e.Body)); short < e.BodyOctets {
		d.lines = append(d.lines, fmt.Sprintf("(the first %s of %s; s saves all of them)", printing.BytesText(short),
			printing.BytesText(e.BodyOctets)))
	}
	if d.form != asTree {
		return
	}
	for i, line := range d.lines {
		d.lines[i] = strings.TrimLeft(line, " ")
		d.depths = append(d.depths, len(line)-len(d.lines[i]))
	}
}

// end is the first line behind one of a tree that is not below it.
func (d *detail) end(line int) int {
	end := line + 1
	for end < len(d.depths) && d.depths[end] > d.depths[line] {
		end++
	}
	return end
}

// indent is how far the row of a line is moved to the right, and its mark, in a tree.
func (d *detail) indent(line int) string {
	if d.depths == nil {
		return ""
	}
	sign := "  "
	switch {
	case d.end(line) == line+1:
	case d.folded[line]:
		sign = "+ "
	default:
		sign = "- "
	}
	return strings.Repeat(" ", min(d.depths[line], d.width/2)) + sign
}

// wrap cuts lines into rows of a width, without those that are folded away.
func (d *detail) wrap(width int) {
	d.rows, d.width = d.rows[:0], width
	for i := 0; i < len(d.lines); i++ {
		line, room := d.lines[i], max(1, width-len(d.indent(i)))
		for from := 0; from == 0 || from < len(line); {
			n := cutAt(line[from:], room)
			d.rows = append(d.rows, detailRow{i, from, from + n})
			if from += n; n == 0 {
				break
			}
		}
		if d.folded[i] && d.depths != nil {
			i = d.end(i) - 1
		}
	}
}

// move moves the cursor of a tree, or the rows.
func (d *detail) move(by, rows int) {
	if d.form == asTree {
		d.at = max(0, min(d.at+by, len(d.rows)-1))
		return
	}
	d.top = max(0, min(d.top+by, len(d.rows)-rows))
}

// settle has the rows be some that there are.
func (d *detail) settle(rows int) {
	d.top = max(0, min(d.top, len(d.rows)-rows))
	if d.form == asTree {
		d.at = max(0, min(d.at, len(d.rows)-1))
		d.top = max(0, min(d.at, max(d.top, d.at-rows+1)))
	}
}

// fold folds or unfolds what is below the row at the cursor, or, if there is nothing to fold, below
// the one around it.
func (d *detail) fold(closed bool) {
	if d.form != asTree || d.at >= len(d.rows) {
		return
	}
	k := d.rows[d.at].line
	for depth := d.depths[k]; closed && (d.end(k) == k+1 || d.folded[k]) && depth > 0 && k > 0; {
		for k--; k > 0 && d.depths[k] >= depth; k-- {
		}
		depth = d.depths[k]
	}
	if d.end(k) == k+1 {
		return
	}
	d.folded[k] = closed
	d.wrap(d.width)
	d.at = d.rowOf(textPlace{line: k})
}

func (m *screenModel) foldHere(closed bool) {
	if m.screen == both && m.reading {
		m.detail.fold(closed)
	}
}

// find finds a text in the lines.
func (d *detail) find(text string) {
	d.found, d.place = d.found[:0], -1
	if text == "" {
		return
	}
	needle := needleOf(text)
	for i, line := range d.lines {
		for _, at := range needle.FindAllStringIndex(line, mostPlaces-len(d.found)) {
			d.found = append(d.found, textPlace{i, at[0], at[1]})
		}
	}
}

// rowOf is the row with the beginning of a place.
func (d *detail) rowOf(p textPlace) int {
	for i, r := range d.rows {
		if r.line == p.line && p.from >= r.from && (p.from < r.to || r.to == len(d.lines[r.line])) {
			return i
		}
	}
	return 0
}
