package listing

import (
	"bytes"
	"encoding/base64"
	"io"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/proxy"
)

// listed is a message as it is listed. control is its purpose between two proxies, if it is no HTTP
// message.
type listed struct {
	*capture.Decoded
	control string
	took    time.Duration // as of [chosen.Asked]
}

// asked is the message as filters see it.
func (m *listed) asked() chosen.Asked {
	return chosen.Asked{Decoded: m.Decoded, Kind: kindOf(m), Took: m.took}
}

// idle reports whether a message concerns the proxies alone: it carries nothing of a client or a
// server.
func (m *listed) idle() bool { return m.control != "" && m.BodyOctets == 0 }

// controls detects messages between two proxies. It remembers the exchanges that wait for an empty
// reply.
type controls struct {
	waiting map[int]bool
	order   []int
}

// mostControls bounds the exchanges that are remembered.
const mostControls = 4096

func (c *controls) of(m *capture.Decoded) listed {
	l := listed{Decoded: m}
	if m.HHFR {
		l.control = proxy.Control(m.Head)
	}
	switch {
	case l.control != "" && !m.Reply:
		if c.waiting == nil {
			c.waiting = map[int]bool{}
		}
		c.waiting[m.Number] = true
		if c.order = append(c.order, m.Number); len(c.order) > mostControls {
			delete(c.waiting, c.order[0])
			c.order = c.order[1:]
		}
	case m.Reply && len(m.Head) == 0 && m.BodyOctets == 0 && c.waiting[m.Number]:
		l.control = "taken"
		delete(c.waiting, m.Number)
	}
	return l
}

// listing prints messages and the results of checks, and counts what the summary needs.
type listing struct {
	w        io.Writer
	output   string
	layout   rowLayout
	choice   *chosen.Choice
	controls controls
	times    chosen.Times
	printed  int

	messages                 int
	idle                     int
	lacking, lackingContexts int // messages
	lackingContracts         int
	unread                   int // messages that need what the store could not be read for
	shapes, contexts         map[string]bool
}

func newListing(w io.Writer, output string, layout rowLayout, choice *chosen.Choice) *listing {
	return &listing{w: w, output: output, layout: layout, choice: choice,
		shapes: map[string]bool{}, contexts: map[string]bool{}}
}

// full reports whether as much is printed as is wanted.
func (l *listing) full() bool { return l.choice.Limit > 0 && l.printed >= l.choice.Limit }

// mostNames bounds the names of missing things that are remembered.
const mostNames = 4096

func (l *listing) event(ev capture.Event, saveDir string) error {
	if ev.Check != nil {
		if saveDir != "" {
			if err := ev.Check.Withdraw(saveDir); err != nil {
				return err
			}
		}
		return l.check(ev.Check)
	}
	m := ev.Message
	one := l.controls.of(m)
	one.took = l.times.Of(m)
	takes := l.choice.Takes(one.asked())
	if saveDir != "" && takes {
		if err := m.Save(saveDir); err != nil {
			return err
		}
	}
	l.messages++
	if m.Unread {
		l.unread++
	} else if m.LacksContract {
		l.lackingContracts++
	} else if m.Lacks != "" {
		if l.lacking++; len(l.shapes) < mostNames {
			l.shapes[shapeName(m.Lacks)] = true
		}
	}
	if m.LacksContext != "" && !m.Unread {
		if l.lackingContexts++; len(l.contexts) < mostNames {
			l.contexts[m.LacksContext] = true
		}
	}
	if one.idle() {
		l.idle++
	}
	if !takes {
		return nil
	}
	return l.message(&one)
}

func (l *listing) message(m *listed) error {
	switch l.output {
	case "json":
		sep := ","
		if l.printed++; l.printed == 1 {
			sep = reportBegin
		}
		if _, err := io.WriteString(l.w, sep); err != nil {
			return err
		}
		return writeMessage(l.w, m, "")
	case "jsonl":
		l.printed++
		return writeMessage(l.w, m, "\n")
	case "xml":
		l.printed++
		return writeXML(l.w, m)
	}
	if m.idle() && !l.layout.all {
		return nil
	}
	l.printed++
	if l.choice.Whole() {
		return l.show(m)
	}
	return l.layout.row(l.w, m)
}

func (l *listing) check(c *capture.Check) error {
	switch l.output {
	case "jsonl":
		return printing.JSON(l.w, newCheckReport(c))
	case "text":
		return l.layout.check(l.w, c)
	}
	return nil
}

// end prints what follows the messages.
func (l *listing) end(s *capture.Summary) error {
	switch l.output {
	case "text":
		list, dropped := s.Sequences()
		return l.layout.sequences(l.w, list, dropped)
	case "jsonl":
		list, _ := s.Sequences()
		for i := range list {
			if err := printing.JSON(l.w, newSequenceLine(&list[i])); err != nil {
				return err
			}
		}
		return nil
	case "xml":
		return nil
	}
	if l.printed == 0 {
		if _, err := io.WriteString(l.w, reportBegin); err != nil {
			return err
		}
	}
	return writeReportEnd(l.w, s)
}

// writeMessage writes a message as an object. A long envelope is written as it is read.
func writeMessage(w io.Writer, m *listed, end string) error {
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
func writeXML(w io.Writer, m *listed) error {
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
