package results

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// UnknownReport is a line of `hhfr stream -o json` about a message that was written and not
// answered.
type UnknownReport struct {
	Number    int    `json:"number"`              // in sending order, from 1
	Name      string `json:"name"`                // the file, or - for stdin
	Operation string `json:"operation,omitempty"` // local name of the first element in the Body
	Fate      string `json:"fate"`                // "unknown": it may have been processed, and was not sent again
	Why       string `json:"why"`                 // what happened
}

// IsUnknown reports whether an error leaves open whether a message was processed: there was no
// answer, the reply broke off, or this side stopped waiting.
func IsUnknown(err error) bool {
	var s *streamer.Error
	if errors.As(err, &s) && s.Code == streamer.Aborted && !s.Remote {
		return true
	}
	return errors.Is(err, &negotiate.Error{Code: negotiate.FateUnknown}) ||
		errors.Is(err, &streamer.Error{Code: streamer.FateUnknown})
}

// unknownMessage is an entry in the list of messages of unknown fate.
type unknownMessage struct {
	number          int
	name, operation string
	octets          int64
}

func sentOf(in *sender.Incoming) unknownMessage {
	return unknownMessage{in.Number, in.Sent.Name, soap.Recognize(in.Sent.Body).Operation.Local, in.Sent.Length()}
}

// posted is a one-way message whose fate is not known yet.
type posted struct {
	unknownMessage
	on *session.PostedMessage
}

// Settle determines the fate of one-way messages, once the session is over. Errors name those of
// which nothing was sent, or that the peer refused.
func (p *ResultPrinter) Settle() (err error) {
	for _, m := range p.posted {
		switch lost := m.on.Err(); {
		case lost == nil:
		case IsUnknown(lost):
			err = errors.Join(err, p.unknown(m.unknownMessage, lost))
		default:
			p.Sum.Failed++
			err = errors.Join(err, fmt.Errorf("message %d (%s): %w", m.number, m.name, lost))
		}
	}
	return err
}

// Unknown lists a message of unknown fate; the run continues.
func (p *ResultPrinter) Unknown(in *sender.Incoming, why error) error {
	return p.unknown(sentOf(in), why)
}

func (p *ResultPrinter) unknown(m unknownMessage, why error) error {
	p.Sum.Unknown = append(p.Sum.Unknown, m.number)
	switch p.Output {
	case "json":
		return p.JSON(UnknownReport{m.number, m.name, m.operation, "unknown", why.Error()})
	case "xml":
		p.Tell(slog.LevelWarn, "", fmt.Sprintf("message %d (%s): fate unknown", m.number, m.name))
		return nil
	}
	if m.operation == "" {
		m.operation = "-"
	}
	_, err := fmt.Fprintf(p.Out, "%6d    ?  %-28s %8d bytes, fate unknown  %s\n", m.number,
		printing.Shorten(m.operation, 28), m.octets, shortName(m.name))
	return err
}

// unknownProblem returns the final error with the numbers of these messages.
func unknownProblem(numbers []int) error {
	const most = 20
	var list []string
	for _, n := range numbers[:min(len(numbers), most)] {
		list = append(list, fmt.Sprint(n))
	}
	if len(numbers) > most {
		list = append(list, "…")
	}
	what := "messages " + strings.Join(list, ", ")
	hint := "look at the peer whether they were processed, and send those again that were not"
	if len(numbers) == 1 {
		what, hint = "message "+list[0], "look at the peer whether it was processed, and send it again if not"
	}
	err := fmt.Errorf("the fate of %s is unknown: written, not answered, and not sent again", what)
	return exit.With(exit.Partial, err, hint)
}
