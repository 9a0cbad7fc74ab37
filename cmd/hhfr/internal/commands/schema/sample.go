package schema

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
)

type sampleOptions struct {
	schemaOptions
	message string
	seed    uint64
}

func newSchemaSample(g *command.Global) *cobra.Command {
	var o sampleOptions
	c := &cobra.Command{
		Use:   "sample FILE|URL [OPERATION…]",
		Short: "Print messages as they could be",
		Long: `sample prints an envelope for each message, as the description says: requests, replies and faults
of all operations, or elements of an XML Schema. OPERATION limits that to operations or elements,
and --message to input, output or fault.

With --seed 0 a message has every optional part once, and the first of choices. Each other seed is
another choice of all that may differ: optional and repeated parts, choices, substitution groups,
derived types, nil and values; the same seed is the same message. -o json prints the values, as
hhfr call takes them (docs/values.md), a line for each message.

Exit code 5 means that no sample of some messages was found, such as those that contain themselves
in any case.

` + descriptions,
		Example: "  hhfr schema sample service.wsdl Add\n" +
			"  hhfr schema sample service.wsdl Add --message input --seed 7 -o json",
		Args: command.Takes("FILE|URL", "[OPERATION…]"),
		RunE: func(c *cobra.Command, args []string) error { return runSchemaSample(c.Context(), g, o, args) },
	}
	o.flags(c)
	c.Flags().StringVar(&o.message, "message", "", "input, output, fault or element; empty: all")
	flags.Seed(c.Flags(), &o.seed)
	command.FormatFlag(c, &o.output, "xml", "json")
	return c
}

func runSchemaSample(ctx context.Context, g *command.Global, o sampleOptions, args []string) error {
	switch o.message {
	case "", "input", "output", "fault", "element":
	default:
		return exit.Usagef("", "--message is input, output, fault or element, not %s", o.message)
	}
	d, list, err := o.wanted(ctx, args[0], args[1:])
	if err != nil {
		return err
	}
	without, printed := 0, 0
	for _, m := range list {
		if o.message != "" && m.kind() != o.message {
			continue
		}
		contents := m.message
		if m.kind() == "fault" {
			contents = wsdl.FaultContents(m.soap, contents.Body[0])
		}
		t := values.New(d.Set(), contents, m.soap)
		text, err := t.Sample(o.seed)
		if err != nil {
			without++
			g.Note("%s, %s: %v", m.of, m.what, err)
			continue
		}
		printed++
		if o.output == "json" {
			v, err := t.Values(text)
			if err == nil {
				err = g.JSON(v)
			}
			if err != nil {
				return err
			}
			continue
		}
		if _, err := io.WriteString(g.Out, string(text)+"\n"); err != nil {
			return err
		}
	}
	switch {
	case without > 0:
		g.Note("no sample of %s", printing.Count(without, "message"))
		return exit.Quiet(exit.Partial)
	case printed == 0:
		return exit.With(exit.Failed, fmt.Errorf("there is no %s among these messages", o.message), "")
	}
	return nil
}
