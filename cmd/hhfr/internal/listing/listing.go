// Package listing shows messages that are decoded: as rows, whole, as JSON, or counted.
package listing

import (
	"bytes"
	"encoding/base64"
	"io"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/export"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/statistics"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/proxy"
)

// ListedMessage is a message as it is listed.
type ListedMessage struct {
	facts.Asked
	// Control is its purpose between two proxies, if it is no HTTP message.
	Control string
}

// Idle reports whether a message concerns the proxies alone: it carries nothing of a client or a
// server.
func (m *ListedMessage) Idle() bool { return m.Control != "" && m.BodyOctets == 0 }

// Seen is what messages need to know of those before them, as far as that is remembered. The zero
// value is ready.
type Seen struct {
	requests facts.SeenRequests
	waiting  map[int]bool // exchanges of two proxies, for an empty reply
	order    []int
}

// mostControls bounds the exchanges that are remembered.
const mostControls = 4096

// Of is a message with what is known of it.
func (s *Seen) Of(m *capture.Decoded) ListedMessage {
	l := ListedMessage{Asked: facts.Asked{Decoded: m, Kind: facts.KindOf(m)}}
	l.Took, l.Call = s.requests.Of(m)
	if m.HHFR {
		l.Control = proxy.Control(m.Head)
	}
	switch {
	case l.Control != "" && !m.Reply:
		if s.waiting == nil {
			s.waiting = map[int]bool{}
		}
		s.waiting[m.Number] = true
		if s.order = append(s.order, m.Number); len(s.order) > mostControls {
			delete(s.waiting, s.order[0])
			s.order = s.order[1:]
		}
	case m.Reply && len(m.Head) == 0 && m.BodyOctets == 0 && s.waiting[m.Number]:
		l.Control = "taken"
		delete(s.waiting, m.Number)
	}
	return l
}

// ListForm is how messages are shown.
type ListForm struct {
	// Output is text, json, jsonl or xml.
	Output string
	// Width is that of the terminal, in columns; 0: it is none.
	Width  int
	Colors bool
	// All: also messages that concern two proxies alone.
	All bool
	// Ends is the length of addresses, as far as it is known.
	Ends func() int
	// SaveDir is the folder to which messages are saved; empty: none.
	SaveDir string
	// Statistics: messages are counted in place of being shown.
	Statistics bool
	// Export is one of [export.Forms], in place of the output; empty: none.
	Export string
	// Service is that of the stream of a message, as far as it is known.
	Service func(*capture.Decoded) capture.Endpoint
}

// Findings are what was found, and what is missing.
type Findings struct {
	// Messages, and how many of them were printed, or concern proxies alone.
	Messages, Printed, Idle int
	// Lacking, LackingContexts, LackingContracts and Unread are messages that need what is missing:
	// shapes, contexts, the description of a service, what a store could not be read for.
	Lacking, LackingContexts, LackingContracts, Unread int
	// Shapes is how many shapes are missing; Contexts are the missing contexts.
	Shapes   int
	Contexts []string
}

// Listing prints messages and the results of checks, and counts what a summary needs.
type Listing struct {
	w      io.Writer
	form   ListForm
	layout Rows
	choice *chosen.Choice
	seen   Seen
	stats  *statistics.Statistics // nil: messages are shown
	export export.Export          // nil: likewise

	found            Findings
	shapes, contexts map[string]bool
}

// New returns a listing of chosen messages.
func New(w io.Writer, choice *chosen.Choice, f ListForm) *Listing {
	l := &Listing{w: w, form: f, choice: choice, shapes: map[string]bool{}, contexts: map[string]bool{},
		layout: Rows{width: f.Width, all: f.All, ends: f.Ends, choice: choice, paint: f.Colors,
			drop: expendable, state: len("verified")}}
	if f.Statistics {
		l.stats = statistics.New()
	}
	if f.Export != "" {
		l.export = export.New(w, f.Export, f.Service)
	}
	return l
}

// Found is what was found so far.
func (l *Listing) Found() Findings {
	f := l.found
	f.Shapes, f.Contexts = len(l.shapes), slices.Sorted(maps.Keys(l.contexts))
	return f
}

// Full reports whether as much is printed as is wanted.
func (l *Listing) Full() bool { return l.choice.Limit > 0 && l.found.Printed >= l.choice.Limit }

// mostNames bounds the names of missing things that are remembered.
const mostNames = 4096

// Event takes what was decoded.
func (l *Listing) Event(ev capture.Event) error {
	switch {
	case ev.Check != nil:
		if l.form.SaveDir != "" {
			if err := ev.Check.Withdraw(l.form.SaveDir); err != nil {
				return err
			}
		}
		return l.check(ev.Check)
	case ev.Frame != nil:
		if l.form.Output == "text" && l.choice.All() {
			return l.frame(ev.Frame)
		}
		return nil
	}
	m := ev.Message
	one := l.seen.Of(m)
	takes := l.choice.Takes(one.Asked)
	if l.form.SaveDir != "" && takes {
		if err := m.Save(l.form.SaveDir); err != nil {
			return err
		}
	}
	l.count(&one)
	switch {
	case l.export != nil && one.Control == "":
		written, err := l.export.Add(one.Asked, takes)
		if written {
			l.found.Printed++
		}
		return err
	case !takes || l.export != nil:
		return nil
	}
	return l.message(&one)
}

// count counts a message, and what it lacks.
func (l *Listing) count(m *ListedMessage) {
	f := &l.found
	f.Messages++
	if m.Unread {
		f.Unread++
	} else if m.LacksContract {
		f.LackingContracts++
	} else if m.Lacks != "" {
		if f.Lacking++; len(l.shapes) < mostNames {
			l.shapes[shapeName(m.Lacks)] = true
		}
	}
	if m.LacksContext != "" && !m.Unread {
		if f.LackingContexts++; len(l.contexts) < mostNames {
			l.contexts[m.LacksContext] = true
		}
	}
	if m.Idle() {
		f.Idle++
	}
}

func (l *Listing) message(m *ListedMessage) error {
	if l.stats != nil {
		if m.Control == "" {
			l.found.Printed++
			l.stats.Add(m.Asked)
		}
		return nil
	}
	switch l.form.Output {
	case "json":
		sep := ","
		if l.found.Printed++; l.found.Printed == 1 {
			sep = reportBegin
		}
		if _, err := io.WriteString(l.w, sep); err != nil {
			return err
		}
		return writeMessage(l.w, m, "")
	case "jsonl":
		l.found.Printed++
		return writeMessage(l.w, m, "\n")
	case "xml":
		l.found.Printed++
		return writeXML(l.w, m)
	}
	if m.Idle() && !l.layout.all {
		return nil
	}
	l.found.Printed++
	if l.choice.Whole() {
		return l.show(m)
	}
	return l.layout.row(l.w, m)
}

func (l *Listing) check(c *capture.Check) error {
	switch {
	case l.stats != nil || l.export != nil:
		return nil
	case l.form.Output == "jsonl":
		return printing.JSON(l.w, newCheckReport(c))
	case l.form.Output == "text":
		return l.layout.check(l.w, c)
	}
	return nil
}

// End prints what follows the messages.
func (l *Listing) End(s *capture.Summary) error {
	switch {
	case l.export != nil:
		return l.export.Close()
	case l.stats != nil && l.form.Output == "json":
		return printing.JSON(l.w, l.stats.Report())
	case l.stats != nil:
		return l.stats.Write(l.w)
	}
	list, dropped := s.Sequences()
	switch l.form.Output {
	case "text":
		return l.layout.sequences(l.w, list, dropped)
	case "jsonl":
		for i := range list {
			if err := printing.JSON(l.w, newSequenceLine(&list[i])); err != nil {
				return err
			}
		}
		return nil
	case "xml":
		return nil
	}
	if l.found.Printed == 0 {
		if _, err := io.WriteString(l.w, reportBegin); err != nil {
			return err
		}
	}
	return writeReportEnd(l.w, s)
}

// writeMessage writes a message as an object. A long envelope is written as it is read.
func writeMessage(w io.Writer, m *ListedMessage, end string) error {
	var b bytes.Buffer
	if err := printing.JSON(&b, newMessageReport(m)); err != nil {
		return err
	}
	line := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if int64(len(m.Body)) == m.BodyOctets {
		_, err := w.Write(append(line, end...))
		return err
	}
	if _, err := w.Write(append(bytes.TrimSuffix(line, []byte("}")), `,"body_base64":"`...)); err != nil {
		return err
	}
	coded := base64.NewEncoder(base64.StdEncoding, w)
	if err := m.WriteBody(coded); err != nil {
		return err
	}
	if err := coded.Close(); err != nil {
		return err
	}
	_, err := io.WriteString(w, `"}`+end)
	return err
}

// writeXML writes the envelope of a whole message, and ends its line.
func writeXML(w io.Writer, m *ListedMessage) error {
	if m.BodyOctets == 0 || !m.Whole() {
		return nil
	}
	last := &lastOctet{w: w}
	if err := m.WriteBody(last); err != nil || last.octet == '\n' {
		return err
	}
	_, err := w.Write([]byte{'\n'})
	return err
}

// lastOctet remembers the last byte that was written.
type lastOctet struct {
	w     io.Writer
	octet byte
}

func (l *lastOctet) Write(b []byte) (int, error) {
	if len(b) > 0 {
		l.octet = b[len(b)-1]
	}
	return l.w.Write(b)
}
