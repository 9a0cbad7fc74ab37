// Package schema is hhfr schema.
package schema

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

type schemaOptions struct {
	fetch           bool
	catalog, output string
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	c := &cobra.Command{
		Use:   "schema",
		Short: "Read descriptions of services: WSDL 1.1 and XML Schema",
		Long: `schema reads WSDL 1.1 and XML Schema 1.0: what messages a service takes and gives, whether all of
them can be compiled, and what changed from one version to the next.`,
		Example: "  hhfr schema compile service.wsdl\n  hhfr schema show service.wsdl Add",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newSchemaCompile(g), newSchemaShow(g), newSchemaDiff(g),
		newSchemaCheck(g), newSchemaHHFR(g), newSchemaSample(g))
	return c
}

// descriptions is what the help texts of these commands say of their inputs.
const descriptions = `FILE is a WSDL 1.1, an XML Schema or an HHFR Schema: a path, an http or https URL of one of the
former two, or a folder that has one WSDL, or no WSDL and one XML Schema. What it imports is read
from where it says, relative to the file that says so, and from files beside FILE that have the
namespace. Documents on other machines are fetched with --fetch only; --catalog names files for
them, by location or namespace. Schemas of SOAP, WS-Addressing, WS-Notification, XOP, MIME types and
the types of Axis 1 are built in.`

func (o *schemaOptions) flags(c *cobra.Command) {
	description.ImportFlags(c.Flags(), &o.fetch, &o.catalog)
}

// load compiles a description.
func (o *schemaOptions) load(ctx context.Context, file string) (*wsdl.ServiceDescription, error) {
	return description.Load(ctx, file, wsdl.SourceOptions{Fetch: o.fetch, Catalog: o.catalog})
}

func newSchemaCompile(g *command.Global) *cobra.Command {
	var o schemaOptions
	c := &cobra.Command{
		Use:   "compile FILE|URL",
		Short: "List operations and messages, with fingerprints, and what is wrong",
		Long: `compile reads the description of a service and lists its operations, or the elements of an
XML Schema, with the fingerprint of each message. Two descriptions of the same messages have the
same fingerprint, however their types are named, ordered or spread over files.

` + descriptions + `

Problems are reported with file, line and column, and all that does not depend on them is compiled.
Exit code 5 means that some operations were refused, 4 that FILE is no description.`,
		Example: `  hhfr schema compile service.wsdl
  hhfr schema compile 'http://127.0.0.1:8080/sum?wsdl' -o json`,
		Args: command.Takes("FILE|URL"),
		RunE: func(c *cobra.Command, args []string) error { return runSchemaCompile(c.Context(), g, o, args[0]) },
	}
	o.flags(c)
	command.OutputFlag(c, &o.output)
	return c
}

// Compiled is an operation or element in the JSON of compile.
type Compiled struct {
	// Name is that of the operation, or of the element of an XML Schema.
	Name string `json:"name"`
	// Binding is the binding that has the operation.
	Binding string `json:"binding,omitempty"`
	// SOAP is the version of SOAP, 1.1 or 1.2.
	SOAP string `json:"soap,omitempty"`
	// Style is document or rpc.
	Style string `json:"style,omitempty"`
	// Encoded: values have the types and references of SOAP's encoding.
	Encoded bool `json:"encoded,omitempty"`
	// Action is the SOAP action.
	Action string `json:"action,omitempty"`
	// Messages are the fingerprints of input, output and faults, or of the element.
	Messages map[string]string `json:"messages,omitempty"`
	// Identifiers are those of Fast SOAP for the same messages, 32 hexadecimal digits each.
	Identifiers map[string]string `json:"identifiers,omitempty"`
	// Problems are the reasons why it was refused, with file, line and column.
	Problems []string `json:"problems,omitempty"`
}

// CompileReport is the JSON of compile.
type CompileReport struct {
	Version  int         `json:"version"`  // 1
	Compiled []*Compiled `json:"compiled"` // operations, or elements of an XML Schema
	Problems []string    `json:"problems"` // those that belong to no operation
}

func runSchemaCompile(ctx context.Context, g *command.Global, o schemaOptions, file string) error {
	d, err := o.load(ctx, file)
	if err != nil {
		return err
	}
	list, refused := compiledOf(d), description.Refused(d)
	general := []string{}
	for _, p := range d.Problems {
		general = append(general, p.Error())
	}
	if o.output == "json" {
		err = g.JSON(CompileReport{1, list, general})
	} else {
		for _, p := range general {
			g.Note("%s", p)
		}
		err = printCompiled(g.Out, g, list)
	}
	if len(list) == 0 {
		g.Note("%s describes no messages: a WSDL does by a binding of SOAP, an XML Schema by an element", file)
	}
	if !o.fetch && slices.ContainsFunc(append(general, problemsOf(list)...), notFetched) {
		g.Note("--fetch fetches documents of other machines")
	}
	if err == nil && refused > 0 {
		g.Note("%s of %d refused", printing.Count(refused, "operation"), len(list))
		return exit.Quiet(exit.Partial)
	}
	return err
}

// compiledOf lists what a description has, with the names of all messages.
func compiledOf(d *wsdl.ServiceDescription) (list []*Compiled) {
	list = []*Compiled{}
	var all []*xsd.Contents
	var of []func(*xsd.Print)
	add := func(c *Compiled, what string, message *xsd.Contents) {
		all = append(all, message)
		of = append(of, func(p *xsd.Print) {
			c.Messages[what], c.Identifiers[what] = p.URI(), hex.EncodeToString(p.Identifier[:])
		})
	}
	for _, op := range d.Operations {
		c := &Compiled{
			Name: op.Name, Binding: op.Binding.Local, SOAP: fmt.Sprintf("1.%d", op.SOAP-10), Style: op.Style,
			Encoded: op.Encoded, Action: op.Action, Problems: texts(op.Problems),
		}
		list = append(list, c)
		if len(op.Problems) > 0 {
			continue
		}
		for what, m := range messagesIn(op) {
			add(c, what, m)
		}
	}
	for _, e := range d.Elements {
		c := &Compiled{Name: e.Element.Name.String(), Problems: texts(e.Problems)}
		list = append(list, c)
		if len(e.Problems) > 0 {
			continue
		}
		add(c, "element", e.Contents())
	}
	for _, c := range list {
		c.Messages, c.Identifiers = map[string]string{}, map[string]string{}
	}
	for i, p := range xsd.Prints(all...) {
		of[i](&p)
	}
	return list
}

// notFetched reports whether a problem is that a document was not asked for.
func notFetched(problem string) bool { return strings.Contains(problem, wsdl.NotFetched) }

func problemsOf(list []*Compiled) (all []string) {
	for _, c := range list {
		all = append(all, c.Problems...)
	}
	return all
}

// messagesIn are the input, the output and the faults of an operation, as far as it has them.
func messagesIn(op *wsdl.Operation) iter.Seq2[string, *xsd.Contents] {
	return func(yield func(string, *xsd.Contents) bool) {
		if op.Input != nil && !yield("input", op.Input.Contents()) ||
			op.Output != nil && !yield("output", op.Output.Contents()) {
			return
		}
		for _, f := range op.Faults {
			if f.Detail != nil && !yield("fault "+f.Name, &xsd.Contents{Body: []*xsd.ElementDecl{f.Detail}}) {
				return
			}
		}
	}
}

func texts[E error](problems []E) (list []string) {
	for _, p := range problems {
		list = append(list, p.Error())
	}
	return list
}

// shortFingerprint is enough of one to tell them apart by eye.
func shortFingerprint(uri string) string {
	if uri == "" {
		return "-"
	}
	return uri[strings.LastIndexByte(uri, ':')+1:][:12]
}

func printCompiled(w io.Writer, g *command.Global, list []*Compiled) error {
	width := len("OPERATION")
	for _, c := range list {
		width = max(width, len(c.Name))
	}
	if _, err := fmt.Fprintf(w, "%-*s  SOAP  %-8s  %-12s  %-12s\n", width, "OPERATION", "STYLE", "INPUT",
		"OUTPUT"); err != nil {
		return err
	}
	for _, c := range list {
		style := c.Style
		if c.Encoded {
			style = "encoded"
		}
		in, out := c.Messages["input"], c.Messages["output"]
		if e := c.Messages["element"]; e != "" {
			in, style = e, "element"
		}
		err := printing.Line(w, "%-*s  %-4s  %-8s  %-12s  %-12s\n", width, c.Name, printing.Dash(c.SOAP),
			printing.Dash(style),
			shortFingerprint(in), shortFingerprint(out))
		if err != nil {
			return err
		}
		for _, p := range slices.Compact(c.Problems) {
			g.Note("%s: %s", c.Name, p)
		}
	}
	return nil
}
