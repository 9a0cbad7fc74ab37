package schema

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/xsd"
)

func newSchemaCheck(g *command.Global) *cobra.Command {
	var o schemaOptions
	var schema string
	c := &cobra.Command{
		Use:   "check MESSAGE…",
		Short: "Compare messages with their description",
		Long: `check says whether messages are as a description says, and where they are not: what is in the
Body of an envelope, or a document that is none. MESSAGE is a file, - is stdin. Values are compared
with their types and limits, but for patterns that regular expressions of Go cannot express, keys
and IDs. Calls in SOAP 1.1's encoding are compared as its section 5 says: types, structs, arrays and
references.

Such messages travel all the same, byte for byte: many servers break their own schema.

Exit code 0 means that all fit, 1 that some do not, or are not described.

` + descriptions,
		Example: "  hhfr schema check message.xml --schema service.wsdl\n" +
			"  hhfr schema check *.xml --schema service.wsdl -o json",
		Args: command.Takes("MESSAGE…"),
		RunE: func(c *cobra.Command, args []string) error {
			return runSchemaCheck(c.Context(), g, o, schema, args)
		},
	}
	o.flags(c)
	command.OutputFlag(c, &o.output)
	c.Flags().StringVar(&schema, "schema", "", "the description, FILE below")
	return c
}

// Checked is the JSON of check.
type Checked struct {
	Version  int      `json:"version"`          // 1
	Messages int      `json:"messages"`         // how many were compared
	Wrong    int      `json:"not_as_described"` // how many of them are not as described
	Misfits  []misfit `json:"misfits"`          // where they are not, at most 32 of a message
}

// misfit is a place of a message that is not as described.
type misfit struct {
	File   string `json:"file"`   // name of the message
	Line   int    `json:"line"`   // of the element, from 1
	Column int    `json:"column"` // likewise
	Path   string `json:"path"`   // leads to the element, by names
	What   string `json:"what"`   // what is wrong
}

func runSchemaCheck(ctx context.Context, g *command.Global, o schemaOptions, schema string, messages []string) error {
	if schema == "" {
		return exit.Usagef("hhfr schema check MESSAGE --schema FILE", "--schema is missing")
	}
	d, err := o.load(ctx, schema)
	if err != nil {
		return err
	}
	wrong, all := 0, []misfit{}
	for _, name := range messages {
		text, err := readWhole(g, name)
		if err != nil {
			return err
		}
		root, err := xsd.ParseMessage(name, text)
		if err != nil {
			return exit.With(exit.Malformed, err, "")
		}
		misfits := d.Check(root)
		if len(misfits) > 0 {
			wrong++
		}
		for _, m := range misfits {
			all = append(all, misfit{m.Place.Location, m.Place.Line, m.Place.Column, m.Path, m.What})
			if o.output == "json" {
				continue
			}
			if err := printing.Line(g.Out, "%s\n", m); err != nil {
				return err
			}
		}
	}
	if o.output == "json" {
		if err := g.JSON(Checked{1, len(messages), wrong, all}); err != nil {
			return err
		}
	}
	g.Note("%s, %d not as described", printing.Count(len(messages), "message"), wrong)
	if wrong > 0 {
		return exit.Quiet(exit.Failed)
	}
	return nil
}

// readWhole reads a file, or stdin for -.
func readWhole(g *command.Global, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(g.In, xsd.MaxDocument+1))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, xsd.MaxDocument+1))
	return text, errors.Join(err, f.Close())
}
