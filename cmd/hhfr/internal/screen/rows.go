package screen

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/inspector"
)

// column is one of the list. Those of a narrow screen are dropped by their order: highest first.
type screenColumn struct {
	title string
	width int // 0: it is made to fit
	right bool
	order int // 0: it is never dropped
	text  func(*inspector.Logged) string
}

var listColumns = []screenColumn{
	{"NUMBER", 6, true, 0, func(e *inspector.Logged) string { return printing.OrDash(e.Number > 0, "%d", e.Number) }},
	{"TIME", 12, false, 2, func(e *inspector.Logged) string {
		if e.Time.IsZero() {
			return "-"
		}
		return e.Time.UTC().Format("15:04:05.000")
	}},
	{"CLIENT", 21, false, 7, func(e *inspector.Logged) string {
		return printing.OrDash(e.Client.IsValid(), "%s", e.Client)
	}},
	{"", 2, false, 6, func(e *inspector.Logged) string {
		if e.Source == e.Client {
			return "->"
		}
		return "<-"
	}},
	{"SERVER", 21, false, 8, func(e *inspector.Logged) string {
		return printing.OrDash(e.Server.IsValid(), "%s", e.Server)
	}},
	{"SESSION", 8, false, 9, func(e *inspector.Logged) string { return e.Session[:min(8, len(e.Session))] }},
	{"MESSAGE", 7, false, 0, func(e *inspector.Logged) string { return e.Kind }},
	{"OPERATION", 0, false, 0, func(e *inspector.Logged) string { return cmp.Or(e.Operation, "-") }},
	{"WIRE", 7, true, 5, func(e *inspector.Logged) string { return strconv.FormatInt(e.WireOctets, 10) }},
	{"SOAP", 7, true, 1, func(e *inspector.Logged) string { return strconv.FormatInt(e.BodyOctets, 10) }},
	{"HTTP", 4, true, 4, func(e *inspector.Logged) string {
		if e.Status == 0 {
			return ""
		}
		return strconv.Itoa(e.Status)
	}},
	{"DURATION", 8, true, 3, func(e *inspector.Logged) string { return durationText(e.Duration) }},
	{"STATE", 0, false, 0, stateText},
}

// How wide the columns without a width are, at least, and that of operations at most.
const (
	leastRest       = 14
	leastState      = 10
	mostOfOperation = 32
)

// fitting are the columns that fit a width, with their widths.
func fitting(width int) []screenColumn {
	for drop := len(listColumns); ; drop-- {
		var all []screenColumn
		left := width - 1 // beside the cursor's mark, and with the space behind the last one
		for _, c := range listColumns {
			if c.order <= drop {
				all = append(all, c)
				left -= c.width + 1
			}
		}
		if left < leastRest+leastState && drop > 0 {
			continue
		}
		operation := max(1, min(left-leastState, mostOfOperation))
		for i := range all {
			switch all[i].title {
			case "OPERATION":
				all[i].width = operation
			case "STATE":
				all[i].width = max(1, left-operation)
			}
		}
		return all
	}
}

// listRow is a message in columns.
func listRow(all []screenColumn, text func(screenColumn) string) string {
	var b strings.Builder
	for i, c := range all {
		if i > 0 {
			b.WriteByte(' ')
		}
		t := safe(text(c))
		if c.right {
			t = strings.Repeat(" ", max(0, c.width-columns(t))) + t
		}
		b.WriteString(fit(t, c.width))
	}
	return b.String()
}

// durationText is how long a reply took.
func durationText(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Millisecond:
		return fmt.Sprintf("%d us", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// stateText is a fault, or the state.
func stateText(e *inspector.Logged) string {
	text := e.State
	if e.Why != "" {
		text += ": " + e.Why
	}
	if e.Fault != "" {
		return "fault " + e.Fault + ", " + text
	}
	return text
}

// rowStyle is how a message looks in the list.
func rowStyle(e *inspector.Logged) style {
	switch {
	case e.Fault != "" || e.Status >= 400 || !e.Whole:
		return bad
	case e.Kind == "reply":
		return faint
	}
	return plain
}
