package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

func newSchemaShow(env Env, _ *global) *cobra.Command {
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
		Example: "  hhfr schema show service.wsdl GetStatus",
		Args:    takes("FILE|URL", "[OPERATION…]"),
		RunE: func(c *cobra.Command, args []string) error {
			return runSchemaShow(c.Context(), env, o, canonical, args)
		},
	}
	o.flags(c)
	c.Flags().BoolVar(&canonical, "canonical", false, "print canonical forms instead")
	return c
}

// described is a message with its name in the output.
type described struct {
	binding, of, what string
	message           *xsd.Contents
}

// messagesOf lists all messages of a description that compiled.
func messagesOf(d *wsdl.ServiceDescription) (list []described) {
	for _, op := range d.Operations {
		if len(op.Problems) > 0 {
			continue
		}
		for what, m := range messagesIn(op) {
			list = append(list, described{op.Binding.Local, op.Name, what, m})
		}
	}
	for _, e := range d.Elements {
		if len(e.Problems) == 0 {
			list = append(list, described{"", e.Element.Name.Local, "element", e.Contents()})
		}
	}
	return list
}

func runSchemaShow(ctx context.Context, env Env, o schemaOptions, canonical bool, args []string) error {
	d, err := o.load(ctx, args[0])
	if err != nil {
		return err
	}
	list, err := wantedOf(messagesOf(d), args[0], args[1:])
	if err != nil {
		return err
	}
	for _, m := range list {
		if canonical {
			if _, err := env.Out.Write(m.message.Canonical()); err != nil {
				return err
			}
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s, %s\n", m.of, m.what)
		if err := m.message.Tree(&b); err != nil {
			return err
		}
		if _, err := io.WriteString(env.Out, printableLines(b.String()+"\n")); err != nil {
			return err
		}
	}
	return nil
}
