package screen

import (
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/inspector"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// form is how a message is shown.
type messageForm int

const (
	document messageForm = iota
	asTree
	asHex
	asCarried
)

// detail is the message that is shown.
type detail struct {
	form messageForm
	head bool

	of      int // of the log; -1: none
	state   string
	made    [3]int // of form, head and width: lines are made again if they change
	entry   inspector.Logged
	lines   []string
	nodes   []inspector.TreeRow // of lines from before on, in a tree
	before  int
	folded  map[int]bool
	rows    []detailRow
	top     int
	at      int // row of the cursor, in a tree
	found   []textPlace
	place   int // that is shown; -1: none
	problem error
}

// detailRow is a part of a line that fits the width.
type detailRow struct{ line, from, to int }

// place is where a text was found: bytes of a line.
type textPlace struct{ line, from, to int }

// load has the detail be that of the message at the cursor.
func (m *screenModel) load() {
	d := &m.detail
	n, ok := m.list.current(m.log.Len())
	if !ok {
		*d = detail{form: d.form, head: d.head, of: -1}
		return
	}
	width, rows := m.detailSize()
	head := 0
	if d.head {
		head = 1
	}
	as := [3]int{int(d.form), head, width}
	if n != d.of || !m.ended {
		e, err := m.log.At(n)
		if d.entry, d.problem = e, err; n != d.of || e.State != d.state {
			if n != d.of {
				d.top, d.at, d.folded = 0, 0, nil
			}
			d.of, d.state, d.made = n, e.State, [3]int{-1}
		}
	}
	if as != d.made {
		if as[0] != d.made[0] || as[1] != d.made[1] {
			d.make(m.log)
		}
		d.made = as
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

// make makes the lines of a message.
func (d *detail) make(messages *inspector.Log) {
	e := &d.entry
	d.lines, d.nodes = nil, nil
	if d.problem != nil {
		d.lines = []string{safe(d.problem.Error())}
		return
	}
	if d.head && d.form != asCarried {
		head := []byte("(the default head)")
		if len(e.Head) > 0 {
			head = e.Head
		}
		d.lines = append(safeLines(head), "")
	}
	d.before = len(d.lines)
	switch d.form {
	case asCarried:
		d.lines = carriedLines(e, messages.Shape)
		return
	case document:
		d.lines = append(d.lines, safeLines(xmltext.Indented(e.Body))...)
	case asHex:
		d.lines = append(append(d.lines, frameLines(e)...), inspector.Hex(e.Body)...)
	case asTree:
		var err error
		d.nodes, err = inspector.Tree(e.Body)
		for _, n := range d.nodes {
			d.lines = append(d.lines, safe(strings.ReplaceAll(n.Text, "\n", " ")))
		}
		if err != nil {
			d.lines = append(d.lines, safe("("+err.Error()+")"))
		}
	}
	if short := int64(len(e.Body)); short < e.BodyOctets {
		d.lines = append(d.lines, fmt.Sprintf("(the first %s of %s; s saves all of them)", printing.BytesText(short),
			printing.BytesText(e.BodyOctets)))
	}
}

// indent is how far the row of a line is moved to the right, and its mark, in a tree.
func (d *detail) indent(line int) string {
	const step = 2
	k := line - d.before
	if k < 0 || k >= len(d.nodes) {
		return ""
	}
	n := d.nodes[k]
	sign := "  "
	switch {
	case n.End == k+1:
	case d.folded[k]:
		sign = "+ "
	default:
		sign = "- "
	}
	return strings.Repeat(" ", min(step*n.Depth, d.made[2]/2)) + sign
}

// wrap cuts lines into rows of a width, without those that are folded away.
func (d *detail) wrap(width int) {
	d.rows = d.rows[:0]
	for i := 0; i < len(d.lines); i++ {
		line := d.lines[i]
		room := max(1, width-len(d.indent(i)))
		for from := 0; from == 0 || from < len(line); {
			n := cutAt(line[from:], room)
			d.rows = append(d.rows, detailRow{i, from, from + n})
			if from += n; n == 0 {
				break
			}
		}
		if k := i - d.before; k >= 0 && k < len(d.nodes) && d.folded[k] {
			i = d.before + d.nodes[k].End - 1
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

// toggle folds or unfolds the element at the cursor.
func (d *detail) toggle() {
	if d.at < len(d.rows) {
		d.fold(!d.folded[d.rows[d.at].line-d.before])
	}
}

// fold folds the element at the cursor, or the one around it.
func (d *detail) fold(closed bool) {
	if d.at >= len(d.rows) {
		return
	}
	k := d.rows[d.at].line - d.before
	if k < 0 || k >= len(d.nodes) {
		return
	}
	for closed && (d.nodes[k].End == k+1 || d.folded[k]) && d.nodes[k].Depth > 0 {
		depth := d.nodes[k].Depth
		for k--; k > 0 && d.nodes[k].Depth >= depth; k-- {
		}
	}
	if d.nodes[k].End == k+1 {
		return
	}
	if d.folded == nil {
		d.folded = map[int]bool{}
	}
	d.folded[k] = closed
	d.wrap(d.made[2])
	for i, r := range d.rows {
		if r.line == d.before+k {
			d.at = i
			break
		}
	}
}

func (m *screenModel) foldHere(closed bool) {
	if m.screen == both && m.reading && m.detail.form == asTree {
		m.detail.fold(closed)
	}
}

// find finds a text in the lines.
func (d *detail) find(text string) {
	d.found, d.place = d.found[:0], -1
	if text == "" {
		return
	}
	for i, line := range d.lines {
		for _, at := range newNeedle(text).all([]byte(line), mostPlaces-len(d.found)) {
			d.found = append(d.found, textPlace{i, at, at + len(text)})
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
	return -1
}
