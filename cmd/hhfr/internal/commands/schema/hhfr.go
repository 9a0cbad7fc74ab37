package schema

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/pkg/schema"
)

func newSchemaHHFR(g *command.Global) *cobra.Command {
	var o schemaOptions
	c := &cobra.Command{
		Use:   "hhfr FILE|URL [OPERATION…]",
		Short: "Print messages as HHFR Schemas",
		Long: `hhfr prints messages in the small dialect of XML Schema that --schema of other commands reads and
that offers carry, each after a comment with its name and fingerprint, which is the same. OPERATION
limits that to operations, or to elements of an XML Schema. The dialect has sequences of elements
that occur once, attributes, arrays of values, and the types string, int, byte, float and boolean;
messages beyond that are told, with what it has no words for.

Exit code 5 means that it has no words for some messages.

` + descriptions,
		Example: "  hhfr schema hhfr service.wsdl Add",
		Args:    command.Takes("FILE|URL", "[OPERATION…]"),
		RunE:    func(c *cobra.Command, args []string) error { return runSchemaHHFR(c.Context(), g, o, args) },
	}
	o.flags(c)
	command.OutputFlag(c, &o.output)
	return c
}

// HHFRSchemas is the JSON of schema hhfr.
type HHFRSchemas struct {
	Version  int          `json:"version"`  // 1
	Messages []hhfrSchema `json:"messages"` // in the order of the description
}

// hhfrSchema is a message in the JSON of schema hhfr.
type hhfrSchema struct {
	messageNames
	Fingerprint string   `json:"fingerprint,omitempty"` // the URI that names the HHFR Schema
	Schema      string   `json:"schema,omitempty"`      // its text
	Problems    []string `json:"problems,omitempty"`    // what the dialect has no words for, if there is no schema
}

func runSchemaHHFR(ctx context.Context, g *command.Global, o schemaOptions, args []string) error {
	_, list, err := o.wanted(ctx, args[0], args[1:])
	if err != nil {
		return err
	}
	without, all := 0, HHFRSchemas{1, []hhfrSchema{}}
	for _, m := range list {
		s, why := schema.Of(m.message)
		if s == nil {
			without++
			all.Messages = append(all.Messages, hhfrSchema{messageNames: m.names(), Problems: texts(why)})
			for _, e := range why {
				g.Note("%s, %s: %v", m.of, m.what, e)
			}
			continue
		}
		all.Messages = append(all.Messages, hhfrSchema{m.names(), s.URI(), s.String(), nil})
		if o.output == "json" {
			continue
		}
		if _, err := fmt.Fprintf(g.Out, "<!-- %s, %s: %s -->\n%s", printing.Printable(m.of), m.what, s.URI(),
			s); err != nil {
			return err
		}
	}
	if o.output == "json" {
		if err := g.JSON(all); err != nil {
			return err
		}
	}
	if without > 0 {
		g.Note("no HHFR Schema of %s", printing.Count(without, "message"))
		return exit.Quiet(exit.Partial)
	}
	return nil
}
