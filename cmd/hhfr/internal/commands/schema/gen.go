package schema

import (
	"context"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/gocode"
	"github.com/hhfr/hhfr/internal/wsdl"
)

// NewGen is hhfr gen, which writes code.
func NewGen(g *command.Global) *cobra.Command {
	c := &cobra.Command{
		Use:     "gen",
		Short:   "Write code for a WSDL: gen go",
		Long:    `gen writes code for a service that a WSDL describes.`,
		Example: goExamples,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newGo(g))
	return c
}

const goExamples = `  hhfr gen go service.wsdl --out adder.go
  hhfr gen go 'http://127.0.0.1:8080/sum?wsdl' --package sum --operation sum`

type goOptions struct {
	schemaOptions
	out, packageName, binding string
	operations                []string
}

func newGo(g *command.Global) *cobra.Command {
	var o goOptions
	c := &cobra.Command{
		Use:   "go FILE|URL",
		Short: "Write Go for a WSDL: structs, a client and a server",
		Long: `go writes a file of Go for a service: a struct for each message and type, a client with a method
for each operation, and an interface of the same methods with a handler that serves it. FILE is a
WSDL 1.1, or a folder with one; URL is one of http or https.

What messages may have and structs cannot carry is written to stderr, and into the comments of the
structs: elements of any name, types by xsi:type and others (docs/gen.md). If a message must have
that, its operation is not generated, and neither is one in SOAP's encoding.

Exit code 5 means that some operations were not generated, 4 that none was.`,
		Example: goExamples,
		Args:    command.Takes("FILE|URL"),
		RunE:    func(c *cobra.Command, args []string) error { return runGo(c.Context(), g, o, args[0]) },
	}
	f := c.Flags()
	o.flags(c)
	description.BindingFlag(f, &o.binding)
	flags.Out(f, &o.out, "-")
	f.StringVar(&o.packageName, "package", "", "name of the package; empty: one after the name of the WSDL")
	f.StringArrayVar(&o.operations, "operation", nil, "operation that is generated; may be given again; none: all")
	return c
}

func runGo(ctx context.Context, g *command.Global, o goOptions, file string) error {
	name := gocode.PackageName(o.packageName)
	if o.packageName != "" && name != o.packageName {
		return exit.Usagef("small letters and digits: --package "+name, "--package %q is no name of a package",
			o.packageName)
	}
	d, err := description.Load(ctx, file, wsdl.SourceOptions{Fetch: o.fetch, Catalog: o.catalog, Texts: true})
	if err != nil {
		return err
	}
	for _, name := range o.operations {
		if len(d.Named(name, o.binding)) == 0 {
			return exit.Usagef("hhfr list "+file+" has its operations", "%s has no operation %s", file, name)
		}
	}
	if o.packageName == "" {
		name = nameOf(file)
	}
	p := gocode.Generate(d, gocode.GoOptions{Package: name, Binding: o.binding, Operations: o.operations})
	for _, l := range p.Notes {
		g.Note("not carried: %s", l)
	}
	for _, r := range p.Refused {
		g.Note("%s", r)
	}
	if len(p.Generated) == 0 {
		return exit.Withf(exit.Malformed, "hhfr schema compile lists what a description has", "%s has no operation "+
			"that can be generated", file)
	}
	err = input.WriteWhole(g, o.out, 0o666, func(w io.Writer) error {
		_, err := w.Write(p.Source)
		return err
	})
	if err == nil && len(p.Refused) > 0 {
		g.Note("%s of %d not generated", printing.Count(len(p.Refused), "operation"),
			len(p.Refused)+len(p.Generated))
		return exit.Quiet(exit.Partial)
	}
	return err
}

// nameOf is the name of a package after that of a file or URL.
func nameOf(file string) string {
	name, _, _ := strings.Cut(strings.ReplaceAll(file, `\`, "/"), "?")
	name = path.Base(name)
	return gocode.PackageName(strings.TrimSuffix(name, path.Ext(name)))
}
