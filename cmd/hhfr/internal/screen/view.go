package screen

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/inspector"
)

const (
	// beside is the width from which on the message is beside the list.
	beside = 140
	// around are the rows that are neither list nor message: title, what was said, keys.
	around = 3
)

// listSize is the width of the list, and how many messages it shows.
func (m *screenModel) listSize() (width, rows int) {
	rows = m.height - around - 1 // its titles
	switch {
	case m.zoomed && !m.reading:
	case m.width >= beside:
		return m.width / 2, max(1, rows)
	default:
		rows = rows * 2 / 5
	}
	return m.width, max(1, rows)
}

// detailSize is the width of the message, and how many rows it has below its own title.
func (m *screenModel) detailSize() (width, rows int) {
	rows = m.height - around - 1
	switch _, above := m.listSize(); {
	case m.zoomed && m.reading:
	case m.width >= beside:
		return m.width - m.width/2 - 1, max(1, rows)
	default:
		rows -= above + 1
	}
	return m.width, max(1, rows)
}

// View implements [tea.Model].
func (m *screenModel) View() tea.View {
	rows := []string{m.titleRow()}
	switch {
	case m.screen == helping:
		rows = append(rows, m.helpRows()...)
	case m.screen == comparing:
		rows = append(rows, m.compareRows()...)
	case m.zoomed && m.reading:
		rows = append(rows, m.detailRows()...)
	case m.zoomed:
		rows = append(rows, m.listRows()...)
	case m.width >= beside:
		left, right := m.listRows(), m.detailRows()
		for i := range left {
			rows = append(rows, left[i]+m.paint(faint, "│")+right[i])
		}
	default:
		rows = append(append(rows, m.listRows()...), m.detailRows()...)
	}
	low, at := m.lowRows()
	if most := max(0, m.height-len(low)); len(rows) > most {
		rows = rows[:most]
	}
	v := tea.NewView(strings.Join(append(rows, low...), "\n"))
	v.AltScreen = true
	if m.prompt != nil {
		v.Cursor = tea.NewCursor(at, m.height-2)
	}
	return v
}

// titleRow says what is shown.
func (m *screenModel) titleRow() string {
	read := m.log.Len()
	text := " hhfr inspect  "
	if m.list.expression != nil {
		text += fmt.Sprintf("%d of ", m.list.length(read))
	}
	text += printing.Count(read, "message")
	switch share := m.source.Share(); {
	case m.ended:
	case share >= 0:
		text += fmt.Sprintf(", %d%% read", share)
	default:
		text += ", reading"
	}
	if m.list.expression != nil {
		text += "  filter: " + safe(m.list.texts.String())
	}
	text += "  " + safe(m.source.Name())
	return m.paint(cursor, fit(text, m.width))
}

// lowRows are what was said or is typed, and the keys; and the column of the cursor.
func (m *screenModel) lowRows() (rows []string, at int) {
	p := m.prompt
	if p == nil {
		return []string{m.paint(m.saidStyle, fit(m.said, m.width)), m.paint(faint, fit(m.keyHints(), m.width))}, 0
	}
	line, at, caret := p.line(m.width)
	below := "enter: go on   esc: leave it"
	switch {
	case caret >= 0 && caret+min(columns(p.problem), m.width/3) < m.width:
		below = strings.Repeat(" ", caret) + "^ " + p.problem
	case caret >= 0:
		below = "column " + fmt.Sprint(p.caret) + ": " + p.problem
	case p.problem != "":
		below = p.problem
	}
	below = fit(below, m.width)
	if p.problem != "" {
		below = m.paint(bad, below)
	}
	return []string{m.paint(title, line), below}, at
}

func (m *screenModel) keyHints() string {
	switch {
	case m.screen == helping:
		return " esc back   q end"
	case m.screen == comparing:
		return " n next difference   N before   esc back   q end"
	case m.reading && m.detail.form == asTree:
		return " enter fold  left right fold, unfold  p envelope  x bytes  esc back  ? keys"
	case m.reading:
		return " [ ] other messages  p envelope  t tree  x bytes  H head  esc back  ? keys"
	}
	return " enter read  / search  Y filter  f follow  m d compare  s save  ? keys  q end"
}

// listRows are the list with its titles.
func (m *screenModel) listRows() []string {
	width, rows := m.listSize()
	read, choice := m.log.Len(), m.source.Choice()
	layout := listing.NewRows(max(1, width-2), func() int { return 0 }, &choice)
	out := []string{strings.Repeat(" ", width)}
	if e, err := m.log.At(0); err == nil {
		out[0] = m.paint(title, rowText("  ", layout.Titles(listed(e)), width))
	}
	return append(out, pane(width, m.list.top, rows, m.list.length(read), func(i int) string {
		n := m.list.nth(i)
		e, err := m.log.At(n)
		if err != nil {
			return fit(safe("  "+err.Error()), width)
		}
		one, sign := listed(e), "  "
		s := map[listing.Color]style{listing.Red: bad, listing.Yellow: unsure}[listing.ColorOf(one)]
		switch {
		case i == m.list.at:
			sign, s = "> ", cursor
		case n == m.marked:
			sign = "* "
		}
		return m.paint(s, rowText(sign, layout.Text(one), width))
	})...)
}

// pane are so many rows of a width, from one of them on; blank where there are no more.
func pane(width, top, rows, length int, row func(int) string) []string {
	out := make([]string, max(0, rows))
	for i := range out {
		if out[i] = strings.Repeat(" ", width); top+i < length {
			out[i] = row(top + i)
		}
	}
	return out
}

// rowText is a row of the list behind its sign.
func rowText(sign string, row []byte, width int) string {
	return fit(sign+safe(strings.TrimSuffix(string(row), "\n")), width)
}

// detailTitle says which message is shown.
func (m *screenModel) detailTitle() string {
	switch d := &m.detail; {
	case d.of >= 0:
		return " " + strings.TrimPrefix(d.title, "# ")
	case m.list.busy || !m.ended:
		return " no message so far"
	case m.list.expression != nil:
		return " no message is chosen: Y changes the filter"
	}
	return " no message"
}

// detailRows are the message below its title.
func (m *screenModel) detailRows() []string {
	width, rows := m.detailSize()
	d := &m.detail
	s := faint
	if m.reading {
		s = title
	}
	text := m.detailTitle()
	if n := len(d.rows); n > rows {
		text = fit(text, width-6) + fmt.Sprintf(" %3d%%", 100*min(d.top+rows, n)/n)
	}
	head := fit(text, width)
	if m.width < beside && !m.zoomed {
		head = strings.ReplaceAll(head, "  ", "──")
	}
	return append([]string{m.paint(s, head)}, pane(width, d.top, rows, len(d.rows), func(i int) string {
		return m.detailRow(i, width)
	})...)
}

// detailRow is a row of the message, with the places that were found.
func (m *screenModel) detailRow(i, width int) string {
	d := &m.detail
	r := d.rows[i]
	line, indent := d.lines[r.line], d.indent(r.line)
	if r.from > 0 {
		indent = strings.Repeat(" ", len(indent))
	}
	if d.form == asTree && m.reading && i == d.at {
		return m.paint(cursor, fit(indent+line[r.from:r.to], width))
	}
	var b strings.Builder
	b.WriteString(indent)
	at := r.from
	for k, p := range d.found {
		from, to := max(p.from, at), min(p.to, r.to)
		if p.line != r.line || from >= to {
			continue
		}
		b.WriteString(line[at:from])
		s := match
		if k == d.place {
			s = cursor
		}
		b.WriteString(m.paint(s, line[from:to]))
		at = to
	}
	b.WriteString(line[at:r.to])
	return b.String() + strings.Repeat(" ", max(0, width-columns(indent+line[r.from:r.to])))
}

// helpRows are the keys, and the flags of decode.
func (m *screenModel) helpRows() []string {
	line := func(key, does, flag string) string {
		return fit(fmt.Sprintf("  %-14s%-48s%s", key, does, flag), m.width)
	}
	return append([]string{m.paint(title, line("KEY", "", "HHFR DECODE"))},
		pane(m.width, m.helpTop, m.height-around-1, len(m.actions), func(i int) string {
			a := m.actions[i]
			return line(strings.Join(a.keys, " "), a.does, a.flag)
		})...)
}

// compareRows are two messages beside each other.
func (m *screenModel) compareRows() []string {
	c := &m.compare
	half := (m.width - 3) / 2
	other := m.width - 3 - half
	return append([]string{m.paint(title, fit(" "+c.titles[0], half)+" │ "+fit(c.titles[1], other))},
		pane(m.width, c.top, m.height-around-1, len(c.pairs), func(i int) string {
			return m.compareRow(c, c.pairs[i], half, other)
		})...)
}

func (m *screenModel) compareRow(c *comparison, p inspector.Pair, half, other int) string {
	var left, right string
	if p.Left >= 0 {
		left = c.left[p.Left]
	}
	if p.Right >= 0 {
		right = c.right[p.Right]
	}
	switch {
	case p.Same:
		return fit(left, half) + " │ " + fit(right, other)
	case p.Left < 0:
		return fit("", half) + m.paint(good, " > ") + m.paint(differs, fit(right, other))
	case p.Right < 0:
		return m.paint(differs, fit(left, half)) + m.paint(bad, " < ") + fit("", other)
	}
	from, leftTo, rightTo := inspector.Span(left, right)
	// what differs is seen, however long the line is
	if from > half/2 {
		skip := cutAt(left, columns(left[:from])-half/4)
		left, right = "…"+left[skip:], "…"+right[skip:]
		from, leftTo, rightTo = from-skip+len("…"), leftTo-skip+len("…"), rightTo-skip+len("…")
	}
	return m.spanned(left, from, leftTo, half) + m.paint(bad, " ≠ ") + m.spanned(right, from, rightTo, other)
}

// spanned is a line of a width in which a part differs.
func (m *screenModel) spanned(line string, from, to, width int) string {
	shown, end := fit(line, width), len(line)
	if cutAt(line, width) < len(line) {
		end = cutAt(line, width-1)
	}
	from, to = min(from, end), min(to, end)
	return shown[:from] + m.paint(differs, shown[from:to]) + shown[to:]
}
