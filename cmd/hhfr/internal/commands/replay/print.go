package replay

import (
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/replay"
)

// ReplayLine is a line of `hhfr replay -o json` for one exchange; the last line has the summary.
type ReplayLine struct {
	Number     int                `json:"number"`               // of the exchange, in decode's numbering
	Operation  string             `json:"operation,omitempty"`  // local name of the first element in the Body
	Status     int                `json:"status"`               // HTTP status of the new reply; 0: none arrived
	Millis     float64            `json:"ms"`                   // milliseconds until the whole reply had arrived
	Recorded   bool               `json:"reply_recorded"`       // there is a recorded reply to compare with
	Difference *replay.Difference `json:"difference,omitempty"` // where the replies differ
	Error      string             `json:"error,omitempty"`      // why there is no reply
}

type replaySummary struct {
	Version     int  `json:"version"`                // 1
	HHFR        bool `json:"hhfr"`                   // a stream was agreed
	Sent        int  `json:"sent"`                   // requests sent
	Differences int  `json:"differences"`            // replies that differ
	Unanswered  int  `json:"unanswered"`             // requests without a reply
	Unrecorded  int  `json:"without_recorded_reply"` // replies without a recorded one to compare with
	Skipped     int  `json:"left_out"`               // messages of the capture that cannot be sent again
	Partial     bool `json:"partial"`                // the capture lacks something: packets, its end, shapes
}

// ReplayEnd is the last line of `hhfr replay -o json`.
type ReplayEnd struct {
	Summary replaySummary `json:"summary"` // of the run
}

func printReplay(g *command.Global, o replayOptions, r replay.Outcome, sum *replaySummary) error {
	x, line := r.Exchange, ReplayLine{
		Number:     r.Exchange.Number,
		Operation:  r.Exchange.Operation,
		Millis:     printing.Millis(r.Took),
		Recorded:   r.Exchange.Answered,
		Difference: r.Difference,
	}
	sum.Sent++
	switch {
	case r.Err != nil:
		sum.Unanswered++
		line.Error = g.Message(r.Err)
	default:
		line.Status = r.Status()
		if !x.Answered {
			sum.Unrecorded++
		}
	}
	if r.Difference != nil {
		sum.Differences++
	}
	if o.output == "json" {
		return g.JSON(line)
	}
	name := printing.Shorten(x.Operation, 28)
	if name == "" {
		name = "-"
	}
	var err error
	switch d := r.Difference; {
	case r.Err != nil:
		err = printing.Line(g.Out, "exchange %d (%s): no reply: %s\n", x.Number, name, line.Error)
	case d == nil && !x.Answered:
		err = printing.Line(g.Out, "exchange %d (%s): no reply is recorded; status %d now\n", x.Number, name,
			line.Status)
	case d != nil && d.What == "status":
		err = printing.Line(g.Out, "exchange %d (%s): status differs\n  recorded  %s\n  now       %s\n", x.Number, name,
			withFault(d.Recorded, d.RecordedFault), withFault(d.Now, d.NowFault))
	case d != nil && d.What == "content":
		err = printChanges(g, x.Number, name, d)
	case d != nil:
		err = printing.Line(g.Out, "exchange %d (%s): reply differs at offset %d; %s recorded, %d now\n"+
			"  recorded  %s\n  now       %s\n", x.Number, name, d.Offset,
			printing.Count(d.RecordedOctets, "octet"), d.NowOctets, d.Recorded, d.Now)
	}
	return err
}

// withFault is a status with the fault that came with it, if one did.
func withFault(status, fault string) string {
	if fault == "" {
		return status
	}
	return status + ", fault " + printing.Shorten(fault, maxFaultShown)
}

// maxFaultShown is how much of a fault stands in a line, in characters.
const maxFaultShown = 200

// printChanges lists the places in which a reply differs.
func printChanges(g *command.Global, number int, name string, d *replay.Difference) error {
	err := printing.Line(g.Out, "exchange %d (%s): reply differs at %s\n", number, name,
		printing.Count(len(d.Changes), "place"))
	for _, c := range d.Changes {
		if err != nil {
			return err
		}
		what := c.Path
		switch c.What {
		case "missing", "added":
			what += ": " + c.What
		}
		err = printing.Line(g.Out, "  %s\n", what)
		if c.What != "added" && err == nil {
			err = printing.Line(g.Out, "    recorded  %s\n", c.Recorded)
		}
		if c.What != "missing" && err == nil {
			err = printing.Line(g.Out, "    now       %s\n", c.Now)
		}
	}
	return err
}

// endReplay prints the summary; its error says what differs, or is missing.
func endReplay(g *command.Global, o replayOptions, sum replaySummary) error {
	if o.output == "json" {
		if err := g.JSON(ReplayEnd{sum}); err != nil {
			return err
		}
	} else {
		differ := "differ"
		if sum.Differences == 1 {
			differ = "differs"
		}
		g.Note("%s sent, %s %s, %d unanswered; %d without a recorded reply, %s left out",
			printing.Count(sum.Sent, "request"),
			printing.Count(sum.Differences,
				"reply"), differ, sum.Unanswered, sum.Unrecorded, printing.Count(sum.Skipped, "message"))
	}
	switch {
	case sum.Differences > 0:
		return exit.Quiet(exit.Failed)
	case sum.Unanswered+sum.Unrecorded+sum.Skipped > 0 || sum.Partial:
		return exit.Quiet(exit.Partial)
	}
	return nil
}
