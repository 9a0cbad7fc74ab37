package contexts

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/pkg/ctxstore/transfer"
)

func newContextExport(g *command.Global) *cobra.Command {
	var o contextOptions
	c := &cobra.Command{
		Use:   "export FILE [PREFIX]",
		Short: "Write the entries of a store to a file",
		Long: `export writes the entries whose URI begins with PREFIX to a file, which appears when it is
complete; - is stdout, but not with -o json. The file is as secret as the store. Entries that cannot
be read are reported and left out, and the exit code is 5. Revisions are the store's own and not in
the file.`,
		Example: `  hhfr context export contexts.jsonl --store ./store
  hhfr context export contexts.jsonl --store ./store -o json
  hhfr context import contexts.jsonl --store bolt:copy.db`,
		Args: command.Takes("FILE", "[PREFIX]"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := cmdline.InputsOf(g, c.Flags(), nil).Spare("FILE "+args[0], args[0]); err != nil {
				return err
			}
			return runContextExport(c.Context(), g, o, args[0], firstOf(args[1:]))
		},
	}
	o.flags(c.Flags())
	command.OutputFlag(c, &o.output)
	return c
}

// ContextExported is the JSON of export, in numbers of entries.
type ContextExported struct {
	Version  int `json:"version"`  // 1
	Exported int `json:"exported"` // written to the file
	LeftOut  int `json:"left_out"` // that cannot be read
}

func runContextExport(ctx context.Context, g *command.Global, o contextOptions, file, prefix string) error {
	if file == "-" && o.output == "json" {
		return exit.Usagef("name a file", "FILE - and -o json both want stdout")
	}
	store, err := o.open(ctx, g, true)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	left, n := 0, 0
	err = input.WriteWhole(g, file, 0o600, func(w io.Writer) error {
		n, err = transfer.Export(ctx, w, store, prefix, func(err error) {
			g.Warn("%v", err)
			left++
		})
		return err
	})
	if err != nil {
		return err
	}
	if o.output == "json" {
		if err := g.JSON(ContextExported{1, n, left}); err != nil {
			return err
		}
	}
	g.Note("%s exported", printing.Count(n, "entry"))
	if left > 0 {
		return exit.Withf(exit.Partial, "", "%s not readable, and not exported", printing.Count(left, "entry"))
	}
	return nil
}

type contextImportOptions struct {
	contextOptions
	keep bool
}

func newContextImport(g *command.Global) *cobra.Command {
	var o contextImportOptions
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Put the entries of a file into a store",
		Long: `import puts the entries that export wrote into a store; - is stdin. Entries that are there already
are replaced, unless --keep says that they stay; entries that have expired are left out. If it
ends early, what is in the store is whole, and the same command goes on. Exit code 5 means that
the file was cut, 4 that it is not one of export.`,
		Example: "  hhfr context import contexts.jsonl --store http://store.example/",
		Args:    command.Takes("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return runContextImport(c.Context(), g, o, args[0])
		},
	}
	o.writtenFlags(c.Flags())
	c.Flags().BoolVar(&o.keep, "keep", false, "keep entries that the store has already")
	command.OutputFlag(c, &o.output)
	return c
}

func runContextImport(ctx context.Context, g *command.Global, o contextImportOptions, file string) error {
	in, err := input.Open(ctx, g, file, "exported contexts")
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	store, err := o.open(ctx, g, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	done, err := transfer.Import(ctx, store, in, transfer.ImportOptions{Keep: o.keep})
	if said := reportImport(g, o.output, done); said != nil && err == nil {
		return said
	}
	var f *transfer.FileError
	switch {
	case errors.As(err, &f) && f.Cut:
		return exit.Withf(exit.Partial, "what it has was imported", "%s: %w", file, err)
	case errors.As(err, &f):
		return exit.Withf(exit.Malformed, "hhfr context export writes such files", "%s: %w", file, err)
	}
	return err
}

// ContextImported is the JSON of import, in numbers of entries.
type ContextImported struct {
	Version int `json:"version"` // 1
	transfer.Imported
}

func reportImport(g *command.Global, output string, done transfer.Imported) error {
	if output == "json" {
		return g.JSON(ContextImported{1, done})
	}
	_, err := fmt.Fprintf(g.Out, "%d stored, %d unchanged, %d kept, %d expired\n", done.Stored, done.Unchanged,
		done.Kept, done.Expired)
	return err
}
