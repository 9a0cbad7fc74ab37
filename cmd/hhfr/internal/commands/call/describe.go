package call

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// NewList is hhfr list.
func NewList(g *command.Global) *cobra.Command {
	var o operationSource
	var output string
	c := &cobra.Command{
		Use:   "list FILE|URL",
		Short: "List the operations of a WSDL that hhfr call can call",
		Long: `list prints a line for each operation of a WSDL: its name, the binding that has it, SOAP's version,
style and the URL of the service. FILE is a WSDL 1.1, or a folder with one; URL is one of http or
https.

Exit code 5 means that some operations cannot be called; hhfr schema compile says why.`,
		Example: "  hhfr list service.wsdl\n  hhfr list 'http://127.0.0.1:8080/sum?wsdl' -o json",
		Args:    command.Takes("FILE|URL"),
		RunE:    func(c *cobra.Command, args []string) error { return runList(c.Context(), g, o, output, args[0]) },
	}
	o.flags(c.Flags())
	command.OutputFlag(c, &output)
	return c
}

// OperationList is the JSON of list.
type OperationList struct {
	Version    int               `json:"version"`    // 1
	Operations []listedOperation `json:"operations"` // in the order of the description
}

// listedOperation is an operation in the JSON of list and describe.
type listedOperation struct {
	Name    string `json:"name"`             // its name
	Binding string `json:"binding"`          // the binding that has it
	SOAP    string `json:"soap"`             // the version of SOAP, 1.1 or 1.2
	Style   string `json:"style"`            // document, rpc, or rpc encoded
	Action  string `json:"action,omitempty"` // the SOAP action
	URL     string `json:"url,omitempty"`    // where the service is, if the WSDL says it
	// messages: in and out, in only, or out only
	Messages string `json:"messages"`
}

func listed(d *wsdl.ServiceDescription, op *wsdl.Operation) listedOperation {
	l := listedOperation{
		Name: op.Name, Binding: op.Binding.Local, SOAP: fmt.Sprintf("1.%d", op.SOAP-10), Style: op.Style,
		Action: op.Action, URL: d.LocationOf(op), Messages: "in and out",
	}
	if op.Encoded {
		l.Style += " encoded"
	}
	switch {
	case op.Output == nil:
		l.Messages = "in only"
	case op.Input == nil:
		l.Messages = "out only"
	}
	return l
}

func runList(ctx context.Context, g *command.Global, o operationSource, output, file string) error {
	d, err := o.load(ctx, file, "", nil)
	if err != nil {
		return err
	}
	all := OperationList{1, []listedOperation{}}
	for _, op := range d.Operations {
		if len(op.Problems) == 0 && (o.binding == "" || len(d.Named(op.Name, o.binding)) > 0) {
			all.Operations = append(all.Operations, listed(d, op))
		}
	}
	if there := bindings(d.Operations); o.binding != "" && len(there) > 0 && len(all.Operations) == 0 {
		return exit.Usagef("there are "+strings.Join(there, ", "), "%s has no binding or port %s with operations", file,
			o.binding)
	}
	if output == "json" {
		err = g.JSON(all)
	} else {
		var b strings.Builder
		for _, l := range all.Operations {
			fmt.Fprintf(&b, "%-32s %s  SOAP %s  %s  %s\n", l.Name, l.Binding, l.SOAP, l.Style, l.URL)
		}
		_, err = io.WriteString(g.Out, printing.Lines(b.String()))
	}
	switch refused := description.Refused(d); {
	case err != nil:
		return err
	case refused > 0:
		g.Note("%s cannot be called; hhfr schema compile says why", printing.Count(refused, "operation"))
		return exit.Quiet(exit.Partial)
	case len(all.Operations) == 0:
		g.Note("%s has no operations of SOAP", file)
	}
	return nil
}

// NewDescribe is hhfr describe.
func NewDescribe(g *command.Global) *cobra.Command {
	var o operationSource
	var output string
	c := &cobra.Command{
		Use:   "describe FILE|URL [OPERATION…]",
		Short: "Print what operations take and give, as trees and as JSON",
		Long: `describe prints of operations where they are called, their messages as trees, as hhfr schema show
does, and a sample of the request in JSON, with every optional part, for hhfr call. FILE is a WSDL
1.1, or a folder with one; URL is one of http or https.`,
		Example: "  hhfr describe service.wsdl Add\n" +
			"  hhfr describe 'http://127.0.0.1:8080/sum?wsdl' sum -o json",
		Args: command.Takes("FILE|URL", "[OPERATION…]"),
		RunE: func(c *cobra.Command, args []string) error {
			return runDescribe(c.Context(), g, o, output, args)
		},
		ValidArgsFunction: (&callOptions{}).complete,
	}
	o.flags(c.Flags())
	command.OutputFlag(c, &output)
	return c
}

// DescribedOperations is the JSON of describe.
type DescribedOperations struct {
	Version    int                  `json:"version"`    // 1
	Operations []describedOperation `json:"operations"` // in the order of the arguments, or of the description
}

// describedOperation is an operation in the JSON of describe.
type describedOperation struct {
	listedOperation
	// lines of the trees of its messages, two blanks deeper for each level
	Input  []string `json:"input,omitempty"`
	Output []string `json:"output,omitempty"`
	// values of a request, as hhfr call takes them; not there if no sample was found
	Sample *values.JSON `json:"sample,omitempty"`
}

func runDescribe(ctx context.Context, g *command.Global, o operationSource, output string, args []string) error {
	file, only := args[0], ""
	if len(args) == 2 {
		only = args[1]
	}
	d, err := o.load(ctx, file, only, nil)
	if err != nil {
		return err
	}
	names := args[1:]
	if len(names) == 0 {
		if names = operationNames(d); len(names) == 0 {
			return exit.Withf(exit.Malformed, "hhfr schema compile says why", "%s has no operation that can be called",
				file)
		}
	}
	all := DescribedOperations{1, []describedOperation{}}
	for _, name := range names {
		op, err := o.find(d, file, name)
		if err != nil {
			return err
		}
		all.Operations = append(all.Operations, describe(d, op))
	}
	if output == "json" {
		return g.JSON(all)
	}
	for _, one := range all.Operations {
		text, err := one.text()
		if err != nil {
			return err
		}
		if _, err := io.WriteString(g.Out, printing.Lines(text)); err != nil {
			return err
		}
	}
	return nil
}

func describe(d *wsdl.ServiceDescription, op *wsdl.Operation) describedOperation {
	one := describedOperation{listedOperation: listed(d, op)}
	one.Input, one.Output = tree(op.Input), tree(op.Output)
	if op.Input == nil {
		return one
	}
	t := values.New(d.Set(), op.Input.Contents(), op.SOAP)
	text, err := t.Sample(0)
	if err != nil {
		return one
	}
	if v, err := t.Values(text); err == nil {
		one.Sample = v
	}
	return one
}

func tree(m *wsdl.EnvelopeParts) []string {
	if m == nil {
		return nil
	}
	var b strings.Builder
	if err := m.Contents().Tree(&b); err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// text is the description for people.
func (one *describedOperation) text() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  SOAP %s  %s", one.Name, one.Binding, one.SOAP, one.Style)
	if one.Action != "" {
		fmt.Fprintf(&b, "  action %s", one.Action)
	}
	fmt.Fprintf(&b, "\n%s\n", one.URL)
	for _, part := range []struct {
		name  string
		lines []string
	}{{"takes", one.Input}, {"gives", one.Output}} {
		if part.lines != nil {
			fmt.Fprintf(&b, "\n%s\n  %s\n", part.name, strings.Join(part.lines, "\n  "))
		}
	}
	if one.Sample != nil {
		text, err := one.Sample.Indented()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\nfor example\n  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
	}
	return b.String() + "\n", nil
}
