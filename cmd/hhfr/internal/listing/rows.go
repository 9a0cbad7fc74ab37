package listing

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Rows is the layout of rows of messages.
type Rows struct {
	width int        // of the terminal, in columns; 0: as wide as it takes
	all   bool       // also idle messages
	ends  func() int // length of addresses, as far as it is known

	choice *chosen.Choice
	paint  bool     // with colors
	drop   []string // columns of which a narrow terminal has none, in this order
	state  int      // least width of states

	columns []listColumn // set by the first row
	text    []byte       // of the last row, whose memory the next one takes
}

// listColumn is one column of a list of messages.
type listColumn struct {
	title string
	width int // 0: the last one
	right bool
	text  func(*ListedMessage) string
}

// leastOperation is the minimum width of operation names; below it another column is dropped first.
const leastOperation = 14

// expendable are the columns that are dropped on a narrow terminal, in this order.
var expendable = []string{"STATUS", "DURATION", "EXCHANGE", "SERVER", "", "CLIENT", "WIRE", "TIME", "SESSION"}

// besideMessage is the order where the message at hand is shown with all of that.
var besideMessage = []string{
	"EXCHANGE", "SERVER", "", "CLIENT", "SESSION", "WIRE", "STATUS", "DURATION", "TIME", "SOAP",
}

// NewRows are rows of a width, in columns, for a screen with a message beside them; ends is as of
// [ListForm].
func NewRows(width int, ends func() int, choice *chosen.Choice) *Rows {
	return &Rows{width: width, ends: ends, choice: choice, drop: besideMessage, state: len("unchecked")}
}

// row prints a message on one line, and the titles before the first one.
func (l *Rows) row(w io.Writer, m *ListedMessage) error {
	if l.columns == nil {
		if err := l.painted(w, l.Titles(m), bold); err != nil {
			return err
		}
	}
	return l.painted(w, l.Text(m), ColorOf(m))
}

// Titles are those of the columns, which are chosen by the first message.
func (l *Rows) Titles(first *ListedMessage) []byte {
	if l.columns == nil {
		l.columns = l.fit(l.columnsFor(first))
	}
	titles := make([]string, len(l.columns))
	for i, col := range l.columns {
		titles[i] = col.title
	}
	return l.line(titles)
}

// Text is the row of a message, with its end, behind [Rows.Titles]. The next row takes its memory.
func (l *Rows) Text(m *ListedMessage) []byte {
	texts := make([]string, len(l.columns))
	for i, col := range l.columns {
		texts[i] = col.text(m)
	}
	return l.line(texts)
}

// check prints the result of a check of messages that were listed before.
func (l *Rows) check(w io.Writer, c *capture.Check) error {
	n, first, last := 0, 0, 0
	var from *ListedMessage
	for _, m := range c.Messages {
		if m.State != c.State {
			continue
		}
		if n++; first == 0 || m.Number < first {
			first = m.Number
		}
		last = max(last, m.Number)
		from = &ListedMessage{Asked: facts.Asked{Decoded: m}}
	}
	if n == 0 {
		return nil
	}
	of := "session " + sessionText(from)
	if from.Src.IsValid() {
		of = from.Src.String()
	}
	text := fmt.Sprintf("%v: %s of %s, number %d", c.State, printing.Count(n, "message"), of, first)
	if last > first {
		text = fmt.Sprintf("%v: %s of %s, numbers %d to %d", c.State, printing.Count(n, "message"), of, first, last)
	}
	if l.width > 0 {
		text = printing.Shorten(text, l.width)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// columnsFor returns all columns, chosen by the first message; those of endpoints only if a capture
// has them.
func (l *Rows) columnsFor(first *ListedMessage) []listColumn {
	ends := 0
	if first.Src.IsValid() {
		const port = 5 // digits
		ends = max(l.ends(), len(first.Src.Addr().String())+1+port)
		if known := l.ends(); known > 0 {
			ends = known
		}
	}
	all := []listColumn{
		{"NUMBER", 6, true, func(m *ListedMessage) string {
			if m.Number == 0 {
				return "-"
			}
			return strconv.Itoa(m.Number)
		}},
		{"TIME", 15, false, func(m *ListedMessage) string { return l.choice.Time(m.First) }},
		{"CLIENT", ends, false, func(m *ListedMessage) string { return addressText(m.Client()) }},
		{"", 2, false, directionText},
		{"SERVER", ends, false, func(m *ListedMessage) string { return addressText(m.Server()) }},
		{"SESSION", 8, false, sessionText},
		{"EXCHANGE", 9, true, exchangeText},
		{"MESSAGE", 7, false, func(m *ListedMessage) string { return m.Kind }},
		{"OPERATION", 28, false, operationText},
		{"WIRE", 7, true, func(m *ListedMessage) string { return strconv.FormatInt(m.Wire, 10) }},
		{"SOAP", 7, true, func(m *ListedMessage) string { return strconv.FormatInt(m.BodyOctets, 10) }},
		{"STATUS", 6, true, statusText},
		{"DURATION", 8, true, durationText},
		{"STATE", 0, false, stateText},
	}
	if ends == 0 {
		all = slices.DeleteFunc(all, func(c listColumn) bool {
			return slices.Contains([]string{"CLIENT", "", "SERVER"}, c.title)
		})
	}
	return all
}

// fit drops columns until the rest fits the width, and makes operation names as wide as that
// allows.
func (l *Rows) fit(columns []listColumn) []listColumn {
	if l.width == 0 {
		return columns
	}
	room := func() int {
		left := l.width - l.state
		for _, c := range columns {
			if left -= c.width + 1; c.title == "OPERATION" {
				left += c.width
			}
		}
		return left
	}
	for _, title := range l.drop {
		if room() >= leastOperation {
			break
		}
		columns = slices.DeleteFunc(columns, func(c listColumn) bool { return c.title == title })
	}
	for i := range columns {
		if columns[i].title == "OPERATION" {
			columns[i].width = max(min(columns[i].width, room()), leastOperation)
		}
	}
	return columns
}

func (l *Rows) line(texts []string) []byte {
	b := l.text[:0]
	for i, c := range l.columns {
		text := texts[i]
		if l.width > 0 && c.width > 0 {
			text = printing.Shorten(text, c.width)
		}
		pad := max(c.width-utf8.RuneCountInString(text), 0)
		switch {
		case c.width == 0:
			b = append(append(b, ' '), text...)
		case c.right:
			b = append(append(appendSpaces(b, pad), text...), ' ')
		default:
			b = appendSpaces(append(b, text...), pad+1)
		}
	}
	b = bytes.TrimRight(b, " ")
	if l.width > 0 {
		b = append(b[:0], printing.Shorten(string(b), l.width)...)
	}
	l.text = append(b, '\n')
	return l.text
}

func appendSpaces(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}

func addressText(a netip.AddrPort) string {
	if !a.IsValid() {
		return "-"
	}
	return a.String()
}

// directionText is an arrow to the endpoint that receives a message.
func directionText(m *ListedMessage) string {
	if m.Src == m.Client() {
		return "->"
	}
	return "<-"
}

func sessionText(m *ListedMessage) string {
	name := m.SessionString()
	return name[:min(8, len(name))]
}

func exchangeText(m *ListedMessage) string {
	if m.HHFR && m.Lane > 0 {
		return fmt.Sprintf("%d.%d", m.Lane, m.Exchange)
	}
	return strconv.FormatUint(m.Exchange, 10)
}

// operationText is the operation that a message requests: of the service, or, in brackets, of the
// other proxy.
func operationText(m *ListedMessage) string {
	if m.Control != "" {
		return "(" + m.Control + ")"
	}
	return cmp.Or(printing.Printable(m.Operation.Local), "-")
}

// statusText is the status of a reply in HTTP.
func statusText(m *ListedMessage) string {
	if code := m.Status(); code > 0 && m.Control == "" {
		return strconv.Itoa(code)
	}
	return ""
}

// durationText is how long a reply took.
func durationText(m *ListedMessage) string {
	switch d := m.Took; {
	case d <= 0:
		return ""
	case d < time.Millisecond:
		return fmt.Sprintf("%d us", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

func stateText(m *ListedMessage) string {
	why := m.Why
	if m.LacksContract {
		why = "the WSDL of its service is missing"
	} else if m.Lacks != "" && !m.Unread {
		why = "shape " + shapeName(m.Lacks) + " is missing"
	}
	if why != "" {
		why = ": " + printing.Printable(why)
	}
	if fault := m.Fault(); fault != "" {
		why += ", fault " + printing.Printable(fault)
	}
	return m.State.String() + why + placeText(m.Place) + sequenceText(m)
}

// placeText is the place of a message, printed after its state; empty if it has none.
func placeText(p streamer.Place) string {
	switch {
	case p.Number == 0:
		return ""
	case p.Unknown:
		return fmt.Sprintf(", number %d says that the fate of %d is unknown", p.Number, p.Answers)
	case p.Answers != 0:
		return fmt.Sprintf(", number %d answers %d%s", p.Number, p.Answers, longText(p))
	}
	return fmt.Sprintf(", number %d%s", p.Number, longText(p))
}

// longText says from where on a long message is continued; empty for one that begins here.
func longText(p streamer.Place) string {
	if p.From == 0 {
		return ""
	}
	return fmt.Sprintf(", from byte %d of %d on", p.From, p.Length)
}

// shapeName is the short name of a missing shape: the beginning of its fingerprint. Some streams
// carry no more of it.
func shapeName(uri string) string {
	const digits = 16
	name := strings.TrimPrefix(uri, shape.URIPrefix)
	return name[:min(len(name), digits)]
}
