package call

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/envelope"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// printer prints replies.
type printer struct {
	g        *command.Global
	o        *callOptions
	op       *calledOperation
	lines    bool
	expected []expectation
	calls    int
	failed   int // faults, HTTP errors and what is not as expected
}

// WholeExchange is what call --full prints of a call.
type WholeExchange struct {
	Version   int     `json:"version"`   // 1
	Operation string  `json:"operation"` // its name
	URL       string  `json:"url"`       // where the service is
	Stream    bool    `json:"stream"`    // the call was on a stream
	Status    int     `json:"status"`    // HTTP status of the reply
	Fault     bool    `json:"fault"`     // the reply is a fault
	Millis    float64 `json:"ms"`        // until the reply was there, in milliseconds
	// envelopes sent and received, in bytes
	Sent     int `json:"sent_bytes"`
	Received int `json:"received_bytes"`
	// what streams took for both, in bytes, what belongs to none of the messages included; 0 if the
	// call was on none
	Wire   int64               `json:"wire_bytes"`
	Header map[string][]string `json:"header"` // HTTP fields of the reply
	// values of the request
	Request *values.JSON `json:"request"`
	// values of the reply; null if it has none
	Reply *values.JSON `json:"reply"`
}

// exchange prints a reply.
func (p *printer) exchange(x *madeCall) error {
	p.calls++
	v, fault, err := p.op.read(x)
	if err != nil {
		return err
	}
	why := p.op.failure(x, v, fault)
	wrong := why != ""
	if wrong {
		p.g.Say("%s", why)
	}
	if err := p.print(x, v, fault); err != nil && (!wrong || !errors.Is(err, errExtract)) {
		return err
	}
	p.deviations(x)
	for _, e := range p.expected {
		if err := e.check(v); err != nil {
			p.g.Say("%v", err)
			wrong = true
		}
	}
	if wrong {
		p.failed++
	}
	return nil
}

// errExtract: what is to be extracted is not there, as in a fault.
var errExtract = errors.New("--extract")

// failure says why a call has not brought a reply; empty: it has.
func (op *calledOperation) failure(x *madeCall, v *values.JSON, fault bool) string {
	status := fmt.Sprintf("HTTP status %d %s", x.status, http.StatusText(x.status))
	switch {
	case fault:
		return "fault: " + reasonOf(v)
	case x.status >= http.StatusMultipleChoices:
		if to := x.header.Get("Location"); to != "" {
			status += ", to " + to + ": --to calls there"
		}
		return status
	case x.tree == nil && op.Output != nil:
		return "the reply is empty: " + status
	}
	return ""
}

// maxDeviations is how many places of a reply are said that are not as described.
const maxDeviations = 3

// deviations says where a reply is not as described: its values there may be another thing.
func (p *printer) deviations(x *madeCall) {
	if x.tree == nil {
		return
	}
	found := x.of.Misfits(x.tree.Body)
	for _, one := range found[:min(len(found), maxDeviations)] {
		p.g.Note("the reply is not as described: %s: %s", one.Path, one.What)
	}
	if more := len(found) - maxDeviations; more > 0 {
		p.g.Note("and in %s; hhfr schema check has all", printing.Count(more, "more place"))
	}
}

func (p *printer) print(x *madeCall, v *values.JSON, fault bool) error {
	switch {
	case p.o.full:
		return p.g.JSON(WholeExchange{
			Version: 1, Operation: p.op.Name, URL: p.op.url.String(), Stream: x.onStream, Status: x.status,
			Fault: fault, Millis: float64(x.took.Microseconds()) / 1000, Sent: len(x.sent),
			Received: len(x.reply), Wire: x.wire, Header: x.header, Request: x.request, Reply: v,
		})
	case p.o.extract != "":
		found, err := v.At(p.o.extract)
		if err != nil {
			return exit.Withf(exit.Failed, "", "%w: %w", errExtract, err)
		}
		return printing.Line(p.g.Out, "%s\n", found.Plain())
	case p.o.output == "xml":
		_, err := fmt.Fprintf(p.g.Out, "%s\n", x.reply)
		return err
	case p.o.output == "values":
		for _, line := range v.Lines() {
			if err := printing.Line(p.g.Out, "%s\n", line); err != nil {
				return err
			}
		}
		return nil
	case p.lines:
		return p.g.JSON(v)
	}
	text, err := v.Indented()
	if err == nil {
		_, err = io.WriteString(p.g.Out, text+"\n")
	}
	return err
}

func (p *printer) end() error {
	if p.lines {
		p.g.Note("%s, %d failed", printing.Count(p.calls, "call"), p.failed)
	}
	if p.failed > 0 {
		return exit.Quiet(exit.Failed)
	}
	return nil
}

// read is the values of a reply; those of a fault are an object with Fault alone. A reply that is
// no envelope is an error, but for an empty one.
func (op *calledOperation) read(x *madeCall) (v *values.JSON, fault bool, err error) {
	if len(strings.TrimSpace(string(x.reply))) == 0 {
		return &values.JSON{Kind: values.Null}, false, nil
	}
	if x.tree, err = envelope.Parse("the reply", x.header.Get("Content-Type"), x.reply); err != nil {
		return nil, false, exit.Withf(exit.Failed, "is the URL that of the service? --to names another one",
			"HTTP status %d, and the reply is no envelope (%w) but %s: %.200q", x.status, err,
			x.header.Get("Content-Type"), x.reply)
	}
	switch x.of = op.output; {
	case x.tree.Fault:
		x.of = values.New(op.d.Set(), wsdl.FaultContents(x.tree.SOAP, nil), x.tree.SOAP)
		v = &values.JSON{Kind: values.Object, Members: []values.Member{{Name: "Fault", Value: x.of.Read(x.tree.Body)}}}
		return v, true, nil
	case x.of == nil:
		x.of = values.New(op.d.Set(), &xsd.Contents{}, op.SOAP)
	}
	return x.of.Read(x.tree.Body), false, nil
}

// reasonOf is the text of a fault.
func reasonOf(v *values.JSON) string {
	for _, path := range []string{"Fault/faultstring", "Fault/Reason/Text/0/$"} {
		if reason, err := v.At(path); err == nil {
			return reason.Plain()
		}
	}
	return "without a reason"
}
