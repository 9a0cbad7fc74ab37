package contexts

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

type contextListOptions struct {
	contextOptions
	check bool
}

func newContextList(g *command.Global) *cobra.Command {
	var o contextListOptions
	c := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List the entries whose URI begins with PREFIX",
		Long: `list prints a line for each entry: its revision, which grows with each change, the size of its
value, when it expires, and its URI. It reads what the store knows of the entries and not their
values: damage there is found with --check, which reads all of them, as export does. Entries that
are found to be damaged are reported and left out, and the exit code is 5.`,
		Example: `  hhfr context list --store ./store
  hhfr context list urn:hhfr:shape: --store ./store -o jsonl
  hhfr context list --store bolt:store.db --check`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return runContextList(c.Context(), g, o, firstOf(args))
		},
	}
	o.flags(c.Flags())
	c.Flags().BoolVar(&o.check, "check", false, "read the value of each entry, to find those that are damaged")
	command.OutputFlag(c, &o.output, "jsonl")
	return c
}

// firstOf is an argument that may be left out.
func firstOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func runContextList(ctx context.Context, g *command.Global, o contextListOptions, prefix string) error {
	store, err := o.open(ctx, g, true)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	p := entryPrinter{w: g.Out, output: o.output, list: []ContextEntry{}}
	unread := 0
	for i, err := range store.List(ctx, prefix) {
		if err == nil && o.check {
			_, err = store.Get(ctx, i.URI)
		}
		switch {
		case errors.Is(err, &ctxstore.Error{Code: ctxstore.Corrupt}):
			g.Warn("%v", err)
			unread++
			continue
		case o.check && errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}): // deleted meanwhile, or expired
			continue
		case err == nil:
			err = p.print(newContextEntry(i))
		}
		if err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	if unread > 0 {
		return exit.Withf(exit.Partial, "", "%s damaged", printing.Count(unread, "entry"))
	}
	return nil
}

// ContextListing is the JSON of list.
type ContextListing struct {
	Version int            `json:"version"` // 1
	Entries []ContextEntry `json:"entries"` // those whose URI begins with PREFIX
}

// entryPrinter prints entries in one of the formats.
type entryPrinter struct {
	w      io.Writer
	output string
	list   []ContextEntry // of json
	begun  bool
}

const entryLine = "%9v  %10v  %-20v  %s\n"

func (p *entryPrinter) print(e ContextEntry) error {
	switch p.output {
	case "json":
		p.list = append(p.list, e)
		return nil
	case "jsonl":
		return printing.JSON(p.w, e)
	}
	if !p.begun {
		p.begun = true
		if _, err := fmt.Fprintf(p.w, entryLine, "REVISION", "SIZE", "EXPIRES", "URI"); err != nil {
			return err
		}
	}
	return printing.Line(p.w, entryLine, e.Revision, e.Size, printing.Dash(e.Expires), e.URI)
}

func (p *entryPrinter) end() error {
	if p.output != "json" {
		return nil
	}
	return printing.JSON(p.w, ContextListing{1, p.list})
}

func newContextWatch(g *command.Global) *cobra.Command {
	var o contextOptions
	c := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Print changes of the entries whose URI begins with PREFIX",
		Long: `watch prints a line for each change from now on, until Ctrl-C. Changes in quick succession may be
printed as one, the last.`,
		Example: "  hhfr context watch urn:hhfr:session: --store http://store.example/",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return runContextWatch(c.Context(), g, o, firstOf(args))
		},
	}
	o.flags(c.Flags())
	command.FormatFlag(c, &o.output, "text", "jsonl")
	return c
}

// ContextChange is a line of `hhfr context watch -o jsonl`.
type ContextChange struct {
	URI      string `json:"uri"`               // of the entry
	Revision uint64 `json:"revision"`          // the new one, or the last one
	Deleted  bool   `json:"deleted,omitempty"` // there is no such entry any more
}

func runContextWatch(ctx context.Context, g *command.Global, o contextOptions, prefix string) error {
	store, err := o.open(ctx, g, true)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	changes, err := store.Watch(ctx, prefix)
	if err != nil {
		return err
	}
	g.Note("watching; Ctrl-C ends it")
	for c := range changes {
		if o.output == "jsonl" {
			err = g.JSON(ContextChange(c))
		} else {
			what := "changed"
			if c.Deleted {
				what = "deleted"
			}
			err = printing.Line(g.Out, "%s  %d  %s\n", what, c.Revision, c.URI)
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}
