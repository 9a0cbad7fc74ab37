package main

import (
	"context"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/pkg/schema"
)

// description is what --schema names: an HHFR Schema, a WSDL or XML Schema, or nothing.
type description struct {
	hhfr     *schema.Schema
	contract *typed.Contract
}

// schemaSource is what --schema names, and where what that imports may come from.
type schemaSource struct {
	name, catalog string
	fetch         bool
	// annotations are further namespaces of annotations that declare streams.
	annotations []string
}

// flags declares --schema, which says what the description is of, and how it is read.
func (s *schemaSource) flags(f *pflag.FlagSet, of string) {
	f.StringVar(&s.name, "schema", "", of)
	f.BoolVar(&s.fetch, "fetch", false, "fetch documents that --schema imports from other machines")
	f.StringVar(&s.catalog, "catalog", "", "XML catalog (OASIS) that says where documents are that --schema imports")
}

// annotationFlag declares --binding-namespace, for commands that open sessions.
func (s *schemaSource) annotationFlag(f *pflag.FlagSet) {
	f.StringArrayVar(&s.annotations, "binding-namespace", nil,
		"a namespace whose element declaration or binding declares streams in the WSDL of --schema, as hhfr's own "+
			"does; may be given again")
}

// readDescription reads what --schema names; nothing for no name. Problems of operations are noted:
// their messages are learned as if they were not described.
func readDescription(ctx context.Context, g *global, from schemaSource) (d description, err error) {
	if from.name == "" {
		return d, nil
	}
	name, err := describedIn(from.name)
	if err != nil {
		return d, err
	}
	if d.hhfr, err = readDialect(name); d.hhfr != nil || err != nil {
		return d, err
	}
	service, err := wsdl.Load(ctx, name, wsdl.SourceOptions{
		Fetch: from.fetch, Catalog: from.catalog, Client: &http.Client{}, Annotations: from.annotations,
	})
	if err != nil {
		return d, unreadDescription(err, "--schema is a WSDL 1.1, an XML Schema or an HHFR Schema")
	}
	if _, refused := compiledOf(service); refused > 0 {
		g.note("%s: %s refused; hhfr schema compile says why", name, count(refused, "operation"))
	}
	d.contract = typed.New(service)
	return d, nil
}

// messages describes messages to whoever splits them; nil: nothing does.
func (d *description) messages() binary.Describer {
	if d.contract == nil {
		return nil
	}
	return d.contract
}

// own finds own shapes for whoever decodes; nil: there are none.
func (d *description) own() func(transit.OwnName) *shape.Shape {
	if d.contract == nil {
		return nil
	}
	return d.contract.Own
}
