package schema

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/xsd"
)

func newSchemaDiff(g *command.Global) *cobra.Command {
	var o schemaOptions
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Compare two descriptions, message by message",
		Long: `diff compares two versions of a description. For each message that changed it prints the first
difference, and last whether streams are affected. They are by messages that are described in both,
and differently: the fingerprints agreed on are others then, the first such message travels with a
new shape, and all else goes on. Messages that are new or gone affect no stream.

Exit code 0 means that all messages are the same, 1 that some differ, are new, or are gone.

` + descriptions,
		Example: "  hhfr schema diff old.wsdl new.wsdl",
		Args:    command.Takes("OLD", "NEW"),
		RunE:    func(c *cobra.Command, args []string) error { return runSchemaDiff(c.Context(), g, o, args) },
	}
	o.flags(c)
	command.OutputFlag(c, &o.output)
	return c
}

// change is a message that differs, in the JSON of diff.
type change struct {
	// Message is its operation or element, and which message of that it is.
	Message string `json:"message"`
	// What is the first difference, or new, or gone.
	What string `json:"what"`
	// Affected: streams that carry such messages are affected.
	Affected bool `json:"affected"`
}

// ChangeReport is the JSON of diff.
type ChangeReport struct {
	Version  int      `json:"version"`  // 1
	Changes  []change `json:"changes"`  // by the names of the messages
	Affected bool     `json:"affected"` // streams are affected
}

func runSchemaDiff(ctx context.Context, g *command.Global, o schemaOptions, args []string) error {
	var sides [2]map[string]*versionOfMessage
	for i, file := range args {
		d, err := o.load(ctx, file)
		if err != nil {
			return err
		}
		sides[i] = byName(messagesOf(d))
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(sides[0])), maps.Keys(sides[1]))
	slices.Sort(names)
	changes := []change{}
	same, affected := 0, 0
	for _, name := range slices.Compact(names) {
		was, is := sides[0][name], sides[1][name]
		what := ""
		switch {
		case was == nil:
			what = "new"
		case is == nil:
			what = "gone"
		case was.print != is.print:
			what = was.message.Difference(is.message)
		}
		if what == "" {
			same++
			continue
		}
		differs := was != nil && is != nil
		if differs {
			affected++
		}
		changes = append(changes, change{name, what, differs})
	}
	g.Note("%s the same, %d not", printing.Count(same, "message"), len(changes))
	if err := printChanges(g, o.output, changes, affected); err != nil {
		return err
	}
	if len(changes) > 0 {
		return exit.Quiet(exit.Failed)
	}
	return nil
}

// versionOfMessage is a message of one description with its names.
type versionOfMessage struct {
	message *xsd.Contents
	print   xsd.Print
}

// byName has the messages of a description by their names in the output. Bindings of one operation
// mostly have the same messages.
func byName(list []described) map[string]*versionOfMessage {
	of := map[string]*versionOfMessage{}
	for i, p := range xsd.Prints(contentsOf(list)...) {
		name := list[i].of + ", " + list[i].what
		if first := of[name]; first != nil && first.print != p {
			name += " of " + list[i].binding
		}
		of[name] = &versionOfMessage{list[i].message, p}
	}
	return of
}

func printChanges(g *command.Global, output string, changes []change, affected int) error {
	if output == "json" {
		return g.JSON(ChangeReport{1, changes, affected > 0})
	}
	for _, c := range changes {
		if err := printing.Line(g.Out, "%s: %s\n", c.Message, c.What); err != nil {
			return err
		}
	}
	verdict := "streams are not affected"
	if affected > 0 {
		verdict = "streams are affected: " + printing.Count(affected, "message")
	}
	_, err := fmt.Fprintln(g.Out, verdict)
	return err
}
