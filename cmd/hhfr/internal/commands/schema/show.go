package schema

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

func newSchemaShow(g *command.Global) *cobra.Command {
	var o schemaOptions
	var canonical bool
	c := &cobra.Command{
		Use:   "show FILE|URL [OPERATION…]",
		Short: "Print messages as trees",
		Long: `show prints what messages consist of: a line for each element and attribute, with how often it
occurs and the type of its text. OPERATION limits that to operations, or to elements of an XML Schema.

Below an element stand the types that xsi:type may name in place of its own, with what they add to
their base, or all that they have where they restrict it; then, with "or", the elements of its
substitution group. Abstract ones are no choice, but what is derived from them is; neither is what
the description blocks, which is shown as such.

With --canonical it prints the canonical forms that fingerprints are made of (docs/schemas.md), and
nothing else.

` + descriptions,
		Example: "  hhfr schema show service.wsdl GetStatus\n  hhfr schema show service.wsdl -o json",
		Args:    command.Takes("FILE|URL", "[OPERATION…]"),
		RunE: func(c *cobra.Command, args []string) error {
			return runSchemaShow(c.Context(), g, o, canonical, args)
		},
	}
	o.flags(c)
	command.OutputFlag(c, &o.output)
	c.Flags().BoolVar(&canonical, "canonical", false, "print canonical forms instead")
	return c
}

// described is a message with its name in the output.
type described struct {
	binding, of, what string
	soap              int // version: 11 or 12
	message           *xsd.Contents
}

// messageNames names a message in JSON.
type messageNames struct {
	Operation string `json:"operation"`         // or the element of an XML Schema
	Binding   string `json:"binding,omitempty"` // the binding that has the operation
	Message   string `json:"message"`           // input, output, fault and its name, or element
}

// kind is input, output, fault or element.
func (d described) kind() string {
	kind, _, _ := strings.Cut(d.what, " ")
	return kind
}

func (d described) names() messageNames { return messageNames{d.of, d.binding, d.what} }

func contentsOf(list []described) (all []*xsd.Contents) {
	for _, m := range list {
		all = append(all, m.message)
	}
	return all
}

// messagesOf lists all messages of a description that compiled.
func messagesOf(d *wsdl.ServiceDescription) (list []described) {
	for _, op := range d.Operations {
		if len(op.Problems) > 0 {
			continue
		}
		for what, m := range messagesIn(op) {
			list = append(list, described{op.Binding.Local, op.Name, what, op.SOAP, m})
		}
	}
	for _, e := range d.Elements {
		if len(e.Problems) == 0 {
			list = append(list, described{"", e.Element.Name.Local, "element", 11, e.Contents()})
		}
	}
	return list
}

// wanted reads a description, and picks the messages of some operations, or all.
func (o *schemaOptions) wanted(
	ctx context.Context, file string, names []string,
) (d *wsdl.ServiceDescription, list []described, err error) {
	if d, err = o.load(ctx, file); err != nil {
		return nil, nil, err
	}
	for _, m := range messagesOf(d) {
		if len(names) == 0 || slices.Contains(names, m.of) {
			list = append(list, m)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(m described) bool { return m.of == name }) {
			return nil, nil, exit.Usagef("hhfr schema compile "+file, "%s has no operation or element %s that compiles",
				file, name)
		}
	}
	if len(list) == 0 {
		return nil, nil, exit.Withf(exit.Partial, "hhfr schema compile "+file+" says why", "%s: nothing compiles", file)
	}
	return d, list, nil
}

// ShownMessages is the JSON of show.
type ShownMessages struct {
	Version  int            `json:"version"`  // 1
	Messages []shownMessage `json:"messages"` // in the order of the description
}

// shownMessage is a message in the JSON of show.
type shownMessage struct {
	messageNames
	Fingerprint string `json:"fingerprint"` // the URI that names what is described
	// lines of the tree, two blanks deeper for each level; not with --canonical
	Tree []string `json:"tree,omitempty"`
	// the canonical form, with --canonical
	Canonical string `json:"canonical,omitempty"`
}

func showOf(list []described, canonical bool) (*ShownMessages, error) {
	r := &ShownMessages{Version: 1, Messages: []shownMessage{}}
	for i, p := range xsd.Prints(contentsOf(list)...) {
		m := shownMessage{messageNames: list[i].names(), Fingerprint: p.URI()}
		if canonical {
			m.Canonical = string(list[i].message.Canonical())
		} else {
			var b strings.Builder
			if err := list[i].message.Tree(&b); err != nil {
				return nil, err
			}
			m.Tree = strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		}
		r.Messages = append(r.Messages, m)
	}
	return r, nil
}

func runSchemaShow(ctx context.Context, g *command.Global, o schemaOptions, canonical bool, args []string) error {
	_, list, err := o.wanted(ctx, args[0], args[1:])
	if err != nil {
		return err
	}
	r, err := showOf(list, canonical)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return g.JSON(r)
	}
	for _, m := range r.Messages {
		text := m.Canonical
		if !canonical {
			text = printing.Lines(fmt.Sprintf("%s, %s\n%s\n\n", m.Operation, m.Message, strings.Join(m.Tree, "\n")))
		}
		if _, err := io.WriteString(g.Out, text); err != nil {
			return err
		}
	}
	return nil
}
