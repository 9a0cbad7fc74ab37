// Package contexts is hhfr context.
package contexts

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/internal/engines"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// New is the command.
func New(g *command.Global) *cobra.Command {
	c := &cobra.Command{
		Use:   "context",
		Short: "Look into context stores, copy them, and serve them to others",
		Long: `context works on the entries of a context store: shapes, sessions, sequences, and whatever else
stands there under a URI. --store names the store: ` + strings.Join(engines.Forms(), ", ") + `.`,
		Example: "  hhfr context list --store ./store\n  hhfr context serve --store bolt:store.db",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newContextGet(g), newContextPut(g), newContextDelete(g), newContextList(g),
		newContextWatch(g), newContextExport(g), newContextImport(g), newContextServe(g))
	return c
}

// contextOptions are what most of these commands take.
type contextOptions struct {
	store  stores.StoreOptions
	output string
}

func (o *contextOptions) flags(f *pflag.FlagSet) { o.store.Flags(f, "") }

// writtenFlags are flags of a command that writes the store.
func (o *contextOptions) writtenFlags(f *pflag.FlagSet) { o.store.WrittenFlags(f, "") }

// open opens the store, which exists already if it is only read.
func (o *contextOptions) open(ctx context.Context, g *command.Global, readOnly bool) (ctxstore.Store, error) {
	if o.store.Spec == "" {
		return nil, exit.Usagef("it is one of "+strings.Join(engines.Forms(), ", "), "--store is missing")
	}
	if !readOnly {
		return o.store.OpenWritten(ctx, g)
	}
	if o.store.Size > 0 {
		return nil, exit.Usagef("", "--store-size is for a store that is written")
	}
	return o.store.OpenReadOnly(ctx, g)
}

func newContextGet(g *command.Global) *cobra.Command {
	var o contextOptions
	c := &cobra.Command{
		Use:   "get URI",
		Short: "Print an entry",
		Long: `get prints the value of an entry: a shape as a tree, text as it is, and other bytes in
hexadecimal. -o raw prints the bytes, -o json what the store knows of the entry as well.`,
		Example: `  hhfr context put urn:example:a message.xml --store ./store
  hhfr context get urn:example:a --store ./store
  hhfr context get urn:example:a --store ./store -o json`,
		Args: command.Takes("URI"),
		RunE: func(c *cobra.Command, args []string) error { return runContextGet(c.Context(), g, o, args[0]) },
	}
	o.flags(c.Flags())
	command.OutputFlag(c, &o.output, "raw")
	return c
}

// ContextEntry is an entry of a store in JSON.
type ContextEntry struct {
	URI      string `json:"uri"`      // of the entry
	Revision uint64 `json:"revision"` // grows with each change
	Size     int64  `json:"size"`     // of the value, in bytes
	// time after which there is no such entry, RFC 3339 in UTC
	Expires string `json:"expires,omitempty"`
}

// ContextValue is the JSON of get.
type ContextValue struct {
	Version int `json:"version"` // 1
	ContextEntry
	Value []byte `json:"value_base64"` // the value
}

func newContextEntry(i ctxstore.Info) ContextEntry {
	return ContextEntry{i.URI, i.Revision, i.Size, expiry(i.Expires)}
}

// expiry is a time of expiry for people and programs; empty for never.
func expiry(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func runContextGet(ctx context.Context, g *command.Global, o contextOptions, uri string) error {
	store, err := o.open(ctx, g, true)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	e, err := store.Get(ctx, uri)
	if err != nil {
		return err
	}
	switch o.output {
	case "raw":
		_, err = g.Out.Write(e.Value)
		return err
	case "json":
		info := ctxstore.Info{URI: uri, Revision: e.Revision, Size: int64(len(e.Value)), Expires: e.Expires}
		return g.JSON(ContextValue{1, newContextEntry(info), e.Value})
	}
	return printValue(g.Out, uri, e.Value)
}

// printValue prints a value for people.
func printValue(w io.Writer, uri string, value []byte) error {
	if strings.HasPrefix(uri, ctxstore.ShapePrefix) {
		if s, err := shape.Parse(value); err == nil {
			return shape.Print(w, s)
		}
	}
	layout := strings.NewReplacer("\r\n", "\n", "\t", " ")
	if !utf8.Valid(value) || strings.ContainsFunc(layout.Replace(string(value)), printing.IsHidden) {
		_, err := io.WriteString(w, hex.Dump(value))
		return err
	}
	text := string(value)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

type contextPutOptions struct {
	contextOptions
	ttl        time.Duration
	ifRevision string
}

func (o *contextPutOptions) revisionFlag(f *pflag.FlagSet) {
	f.StringVar(&o.ifRevision, "if-revision", "",
		"change nothing unless the entry has this revision; 0: unless there is none")
}

func newContextPut(g *command.Global) *cobra.Command {
	var o contextPutOptions
	c := &cobra.Command{
		Use:   "put URI FILE",
		Short: "Store a file as an entry",
		Long: `put stores the bytes of a file under a URI, and prints the entry's revision. An entry that is
there already is replaced, unless --if-revision says which one: 0 means that there is none.`,
		Example: `  hhfr context put urn:example:a message.xml --store ./store
  hhfr context put urn:example:a message.xml --store ./store --ttl 1h
  hhfr context list urn:example: --store ./store
  hhfr context get urn:example:a --store ./store
  hhfr context delete urn:example:a --store ./store`,
		Args: command.Takes("URI", "FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return runContextPut(c.Context(), g, o, args[0], args[1])
		},
	}
	o.writtenFlags(c.Flags())
	c.Flags().DurationVar(&o.ttl, "ttl", 0, "how long the entry lives; 0: forever")
	o.revisionFlag(c.Flags())
	command.OutputFlag(c, &o.output)
	return c
}

// ContextPutReport is the JSON of put.
type ContextPutReport struct {
	Version  int    `json:"version"`  // 1
	URI      string `json:"uri"`      // of the entry
	Revision uint64 `json:"revision"` // the new one
}

func runContextPut(ctx context.Context, g *command.Global, o contextPutOptions, uri, file string) error {
	opt := ctxstore.PutOptions{TTL: o.ttl}
	var err error
	if opt.IfRevision, err = revision(o.ifRevision); err != nil {
		return err
	}
	in, err := input.Open(ctx, g, file, "a value")
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	value, err := io.ReadAll(io.LimitReader(in, ctxstore.MaxValue+1)) // one more is refused by the store
	if err != nil {
		return err
	}
	store, err := o.open(ctx, g, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	rev, err := store.Put(ctx, uri, value, opt)
	if err != nil {
		return revisionProblem(err)
	}
	if o.output == "json" {
		return g.JSON(ContextPutReport{1, uri, rev})
	}
	_, err = fmt.Fprintf(g.Out, "revision %d\n", rev)
	return err
}

// revision reads the value of --if-revision; nil if there is none.
func revision(text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return nil, exit.Usagef("hhfr context list shows them", "--if-revision: %q is no revision", text)
	}
	return &n, nil
}

// revisionProblem has an entry with another revision be one of this command.
func revisionProblem(err error) error {
	if errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}) {
		return exit.With(exit.Failed, err, "nothing was changed")
	}
	return err
}

// ContextDeleted is the JSON of delete.
type ContextDeleted struct {
	Version int    `json:"version"` // 1
	URI     string `json:"uri"`     // of the entry that was there
}

func newContextDelete(g *command.Global) *cobra.Command {
	var o contextPutOptions
	c := &cobra.Command{
		Use:     "delete URI",
		Short:   "Delete an entry",
		Long:    "delete removes an entry, with --if-revision only if that has this revision.",
		Example: "  hhfr context delete urn:example:a --store http://store.example/",
		Args:    command.Takes("URI"),
		RunE: func(c *cobra.Command, args []string) error {
			expect, err := revision(o.ifRevision)
			if err != nil {
				return err
			}
			store, err := o.open(c.Context(), g, false)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			if err := store.Delete(c.Context(), args[0], expect); err != nil || o.output != "json" {
				return revisionProblem(err)
			}
			return g.JSON(ContextDeleted{1, args[0]})
		},
	}
	o.writtenFlags(c.Flags())
	o.revisionFlag(c.Flags())
	command.OutputFlag(c, &o.output)
	return c
}
