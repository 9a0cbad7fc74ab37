package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/peer"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// unknownReport is a line of `hhfr stream -o json` about a message that was written and not answered.
type unknownReport struct {
	Number    int    `json:"number"`              // in sending order, from 1
	Name      string `json:"name"`                // the file, or - for stdin
	Operation string `json:"operation,omitempty"` // local name of the first element in the Body
	Fate      string `json:"fate"`                // "unknown": it may have been processed, and was not sent again
	Why       string `json:"why"`                 // what happened
}

// isUnknown tells errors that leave open whether a message was processed: nothing was answered, the reply broke off, or this end gave up waiting.
func isUnknown(err error) bool {
	var s *streamer.Error
	if errors.As(err, &s) && s.Code == streamer.Aborted && !s.Remote {
		return true
	}
	return errors.Is(err, &negotiate.Error{Code: negotiate.FateUnknown}) || errors.Is(err, &streamer.Error{Code: streamer.FateUnknown})
}

// unknown lists a message of unknown fate; the run goes on.
func (p *printer) unknown(in *peer.Incoming) error {
	p.sum.Unknown = append(p.sum.Unknown, in.Number)
	operation := soap.Recognize(in.Sent.Body).Operation.Local
	switch p.o.output {
	case "json":
		return writeJSON(p.env.Out, unknownReport{in.Number, in.Sent.Name, operation, "unknown", in.Err.Error()})
	case "xml":
		fmt.Fprintf(p.env.Err, "hhfr: message %d (%s): fate unknown\n", in.Number, in.Sent.Name)
		return nil
	}
	if operation == "" {
		operation = "-"
	}
	_, err := fmt.Fprintf(p.env.Out, "%6d    ?  %-28s %8d octets, fate unknown  %s\n", in.Number, shorten(operation, 28), len(in.Sent.Body), shortName(in.Sent.Name))
	return err
}

// unknownProblem tells at the end which messages those were.
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
	if len(numbers) == 1 {
		what = "message " + list[0]
	}
	return &problem{exitPartial, fmt.Errorf("the fate of %s is unknown: written, not answered, and not sent again", what), "look at the other end whether they were processed, and send those again that were not"}
}
