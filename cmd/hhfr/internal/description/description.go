// Package description reads what --schema names: an HHFR Schema, a WSDL or an XML Schema.
package description

import (
	"context"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/pkg/schema"
)

// DescribedMessages is what --schema names: an HHFR Schema, a WSDL or XML Schema, or nothing.
type DescribedMessages struct {
	HHFR     *schema.Schema
	Contract *typed.Contract
}

// SchemaSource is what --schema names, and where what that imports may come from.
type SchemaSource struct {
	Name, catalog string
	Fetch         bool
	// annotations are further namespaces of annotations that declare streams.
	annotations []string
}

// Flags declares --schema, and how it is read.
func (s *SchemaSource) Flags(f *pflag.FlagSet) {
	f.StringVar(&s.Name, "schema", "",
		"description of the messages: a WSDL or XML Schema, or an HHFR Schema of the requests")
	ImportFlags(f, &s.Fetch, &s.catalog)
}

// ImportFlags declares where documents come from that a description imports.
func ImportFlags(f *pflag.FlagSet, fetch *bool, catalog *string) {
	f.BoolVar(fetch, "fetch", false, "fetch imported documents from other machines")
	f.StringVar(catalog, "catalog", "", "XML catalog (OASIS) that says where imported documents are")
}

// BindingFlag declares --binding.
func BindingFlag(f *pflag.FlagSet, binding *string) {
	f.StringVar(binding, "binding", "", "binding or port of the operation; empty: the first that has it")
}

// AnnotationFlag declares --binding-namespace, for commands that open sessions.
func (s *SchemaSource) AnnotationFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&s.annotations, "binding-namespace", nil,
		"a namespace whose element declaration or binding declares streams in the WSDL of --schema, as hhfr's own "+
			"does; may be given again")
}

// Read reads what --schema names; nothing for no name. Problems of operations are noted:
// their messages are learned as if they were not described.
func Read(ctx context.Context, g *command.Global, from SchemaSource) (d DescribedMessages, err error) {
	if from.Name == "" {
		return d, nil
	}
	name, err := In(from.Name)
	if err != nil {
		return d, err
	}
	if d.HHFR, err = ReadDialect(name); d.HHFR != nil || err != nil {
		return d, err
	}
	service, err := wsdl.Load(ctx, name, wsdl.SourceOptions{
		Fetch: from.Fetch, Catalog: from.catalog, Client: &http.Client{}, Annotations: from.annotations,
	})
	if err != nil {
		return d, Unread(err, "--schema is a WSDL 1.1, an XML Schema or an HHFR Schema")
	}
	if refused := Refused(service); refused > 0 {
		g.Note("%s: %s refused; hhfr schema compile says why", name, printing.Count(refused, "operation"))
	}
	d.Contract = typed.New(service)
	return d, nil
}

// Load compiles the description at a path or URL. An HHFR Schema has one element.
func Load(ctx context.Context, file string, opt wsdl.SourceOptions) (*wsdl.ServiceDescription, error) {
	file, err := In(file)
	if err != nil {
		return nil, err
	}
	if s, err := ReadDialect(file); s != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return wsdl.OfContents(s.Contents()), nil
	}
	d, err := wsdl.Load(ctx, file, opt)
	if err != nil {
		return nil, Unread(err, "")
	}
	return d, nil
}

// Refused is how many operations and elements of a description cannot be compiled.
func Refused(d *wsdl.ServiceDescription) (n int) {
	for _, op := range d.Operations {
		n += min(1, len(op.Problems))
	}
	for _, e := range d.Elements {
		n += min(1, len(e.Problems))
	}
	return n
}

// Messages describes messages to whoever splits them; nil: nothing does.
func (d *DescribedMessages) Messages() binary.Describer {
	if d.Contract == nil {
		return nil
	}
	return d.Contract
}

// Own finds own shapes for whoever decodes; nil: there are none.
func (d *DescribedMessages) Own() func(transit.OwnName) *shape.Shape {
	if d.Contract == nil {
		return nil
	}
	return d.Contract.Own
}
