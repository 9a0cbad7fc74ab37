package listing

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// SequenceReport is a sequence of WS-ReliableMessaging, in plain SOAP or in streams.
type SequenceReport struct {
	// of the sequence; empty: faults that name none
	Identifier string `json:"identifier"`
	Version    string `json:"version"`  // 1.0 or 1.1; 1.1 also stands for 1.2
	Messages   uint64 `json:"messages"` // different message numbers in the capture
	Highest    uint64 `json:"highest"`  // the highest of them
	Missing    uint64 `json:"missing"`  // numbers below it that are not in the capture
	// these numbers, first and last of each run
	Gaps   [][2]uint64 `json:"gaps,omitempty"`
	Resent int         `json:"resent"` // messages that were sent again on the same hop
	Hops   int         `json:"hops"`   // how many hops, as before and behind a proxy, the messages were seen on
	// the number up to which all are acknowledged
	AcknowledgedTo uint64 `json:"acknowledged_to"`
	// all numbers that are acknowledged, first and last of each run
	Acknowledged [][2]uint64 `json:"acknowledged,omitempty"`
	Nacks        int         `json:"nacks,omitempty"` // requests to send a message again
	// terminated, closed, open, or seen: how it began is not in the capture
	State  string         `json:"state"`
	Last   uint64         `json:"last,omitempty"`   // number that its source said to be the last one
	Faults map[string]int `json:"faults,omitempty"` // faults about it, by code
}

func newSequenceReport(s *capture.SequenceSeen) SequenceReport {
	return SequenceReport{Identifier: s.Identifier, Version: s.Version, Messages: s.Messages, Highest: s.Highest,
		Missing: s.Missing, Gaps: s.Gaps, Resent: s.Resent, Hops: s.Hops, AcknowledgedTo: s.AcknowledgedTo,
		Acknowledged: s.Acknowledged, Nacks: s.Nacks, State: sequenceState(s), Last: s.Last, Faults: s.Faults}
}

// SequenceLine is a sequence as a line of its own, after all messages.
type SequenceLine struct {
	Sequence SequenceReport `json:"reliable_sequence"` // as in `sequences` of the one object
}

func newSequenceLine(s *capture.SequenceSeen) SequenceLine { return SequenceLine{newSequenceReport(s)} }

func sequenceState(s *capture.SequenceSeen) string {
	switch {
	case s.Terminated:
		return "terminated"
	case s.Closed:
		return "closed"
	case s.Created:
		return "open"
	}
	return "seen"
}

// shortSequence is the part of an identifier that tells it from others, in a few columns: the
// beginning of a UUID, or the end of anything else.
func shortSequence(id string) string {
	const long = 8
	if uuid, ok := strings.CutPrefix(strings.TrimPrefix(id, "urn:"), "uuid:"); ok {
		return printing.Printable(uuid[:min(long, len(uuid))])
	}
	r := []rune(id)
	return printing.Printable(string(r[max(0, len(r)-long):]))
}

// sequenceText is what a message says of sequences, behind its state; empty if nothing.
func sequenceText(m *ListedMessage) string {
	b := m.Reliable
	if b == nil {
		return ""
	}
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	switch {
	case b.Number > 0:
		say("message %d of %s%s%s", b.Number, shortSequence(b.Sequence), earlierText(m.Earlier),
			lastText(b))
	case b.Rollover:
		say("a number beyond the greatest one in %s", shortSequence(b.Sequence))
	case b.Sequence != "":
		say("sequence %s", shortSequence(b.Sequence))
	}
	if b.Terms != nil && b.Terms.Offer != nil {
		say("offers %s", shortSequence(b.Terms.Offer.Sequence))
	}
	for i := range b.Acknowledgements {
		said = append(said, ackText(&b.Acknowledgements[i]))
	}
	for _, id := range b.AckRequested {
		say("asks what of %s arrived", shortSequence(id))
	}
	if b.Fault != "" {
		say("fault %s", printing.Printable(b.Fault))
	}
	for _, why := range b.Broken {
		say("%s", printing.Printable(why))
	}
	if len(said) == 0 {
		return ""
	}
	return ", " + strings.Join(said, ", ")
}

func lastText(b *header.Blocks) string {
	if b.Last {
		return ", the last one"
	}
	return ""
}

func earlierText(e *capture.EarlierSending) string {
	switch {
	case e == nil:
		return ""
	case e.Number > 0 && e.Packet > 0:
		return fmt.Sprintf(" again (first %d, packet %d)", e.Number, e.Packet)
	case e.Number > 0:
		return fmt.Sprintf(" again (first %d)", e.Number)
	}
	return " again"
}

func ackText(a *header.Acknowledgement) string {
	text := "acknowledges " + runsText(a.Ranges)
	switch {
	case len(a.Nacks) > 0:
		var runs [][2]uint64
		for _, n := range a.Nacks {
			runs = append(runs, [2]uint64{n, n})
		}
		text = "lacks " + runsText(runs)
	case a.None:
		text = "acknowledges nothing"
	}
	if text += " of " + shortSequence(a.Sequence); a.Final {
		text += " and takes no more"
	}
	return text
}

// mostRuns is how many runs of numbers a line has.
const mostRuns = 4

// runsText lists runs of numbers, the first ones if there are many.
func runsText(runs [][2]uint64) string {
	var list []string
	for _, r := range runs[:min(len(runs), mostRuns)] {
		if r[0] == r[1] {
			list = append(list, fmt.Sprint(r[0]))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", r[0], r[1]))
		}
	}
	if len(runs) > mostRuns {
		list = append(list, "…")
	}
	return strings.Join(list, " ")
}

// sequences prints the table of sequences behind the rows, if there are any.
func (l *Rows) sequences(w io.Writer, list []capture.SequenceSeen, dropped int) error {
	if len(list) == 0 {
		return nil
	}
	lines := []string{"", fmt.Sprintf("%-8s %3s %8s %6s %8s %8s %-10s %s", "SEQUENCE", "RM", "MESSAGES", "RESENT",
		"MISSING", "ACKED TO", "STATE", "IDENTIFIER")}
	for i := range list {
		s := &list[i]
		lines = append(lines, fmt.Sprintf("%-8s %3s %8d %6d %8d %8d %-10s %s", printing.OrDash(s.Identifier != "", "%s",
			shortSequence(s.Identifier)), s.Version, s.Messages, s.Resent, s.Missing, s.AcknowledgedTo,
			sequenceState(s), printing.OrDash(s.Identifier != "", "%s", printing.Printable(s.Identifier))))
		for _, more := range sequenceDetails(s) {
			lines = append(lines, "         "+more)
		}
	}
	if dropped > 0 {
		lines = append(lines, fmt.Sprintf("and %s that ended or paused before", printing.Count(dropped, "sequence")))
	}
	for _, line := range lines {
		if l.width > 0 {
			line = printing.Shorten(line, l.width)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// sequenceDetails is what does not fit a row of every sequence.
func sequenceDetails(s *capture.SequenceSeen) (lines []string) {
	if len(s.Gaps) > 0 {
		lines = append(lines, "numbers missing: "+runsText(s.Gaps))
	}
	if n := len(s.Acknowledged); n > 1 || n == 1 && s.AcknowledgedTo == 0 {
		lines = append(lines, "acknowledged: "+runsText(s.Acknowledged))
	}
	if s.Nacks > 0 {
		lines = append(lines, "asked for again: "+printing.Count(s.Nacks, "message"))
	}
	if s.Last > 0 && s.Last != s.Highest {
		lines = append(lines, fmt.Sprintf("said to end with %d, seen up to %d", s.Last, s.Highest))
	}
	for _, code := range slices.Sorted(maps.Keys(s.Faults)) {
		lines = append(lines, "fault "+printing.Printable(code)+": "+printing.Count(s.Faults[code], "time"))
	}
	return lines
}
