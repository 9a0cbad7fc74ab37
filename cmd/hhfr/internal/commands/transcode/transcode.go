// Package transcode is hhfr transcode.
package transcode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/transcode"
)

type transcodeOptions struct {
	files                 []string
	from, to, out, output string
	store                 stores.StoreOptions
	schema                description.SchemaSource
	stats                 bool
	sync                  flags.Size
	without               flags.Stages
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	var o transcodeOptions
	c := &cobra.Command{
		Use:   "transcode FILE…",
		Short: "Pack messages as one hhfr stream in a file, or convert one",
		Long: `transcode writes messages as one stream into a file, which appears when it is complete. Their
shapes are in it, too; with --store they are in the store, and the stream has only references to
them.
hhfr reconstruct returns the messages, byte for byte: 000001-request.xml, 000002-request.xml, …

--schema FILE|URL takes types, what may be absent and what may repeat from a description. Shapes
then stand on what the description says, and take less: whoever reads the file needs --schema, or a
store, too. Messages that are not as described are packed like all others, and counted.

--from fastinfoset takes messages in Fast Infoset (ITU-T X.891), which are packed as XML. --to
fastinfoset and --to xml convert one FILE from the other. That keeps the infoset, and not the bytes:
what comes back is the same as canonical XML. XML is read in UTF-8, without a document type
declaration.

--stats prints sizes per message and in total: of the message as it is, with gzip and with zstd
(each message alone), and as shape, content and frames. It also prints how long it took to split the
message into shape and content, and to join it again.`,
		Example: `  hhfr transcode *.xml --out messages.hhfr
  hhfr reconstruct messages.hhfr --save-dir back
  hhfr transcode *.xml --to stream --out messages.hhfr --store ./store --stats
  hhfr transcode message.xml --to fastinfoset --out message.finf
  hhfr transcode message.finf --from fastinfoset --to xml --out -`,
		Args: command.Takes("FILE…"),
		RunE: func(c *cobra.Command, args []string) error {
			o.files = args
			if err := o.check(c); err != nil {
				return err
			}
			if o.to != "stream" {
				return convert(c.Context(), g, o)
			}
			return runTranscode(c.Context(), g, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.from, "from", "xml", "format of FILE: xml or fastinfoset")
	f.StringVar(&o.to, "to", "stream", "what to write: stream, or of one FILE xml or fastinfoset")
	flags.Out(f, &o.out, "")
	o.store.AboutFlags(f, "", "write shapes to this context store and not into the stream: ")
	o.schema.Flags(f)
	f.BoolVar(&o.stats, "stats", false, "print what each message takes")
	flags.Sync(f, &o.sync)
	flags.Without(f, &o.without)
	command.OutputFlag(c, &o.output)
	return c
}

func (o *transcodeOptions) check(c *cobra.Command) error {
	switch {
	case o.from != "xml" && o.from != "fastinfoset":
		return exit.Usagef("", "--from is xml or fastinfoset, not %s", o.from)
	case o.to != "stream" && o.to != "xml" && o.to != "fastinfoset":
		return exit.Usagef("", "--to is stream, xml or fastinfoset, not %s", o.to)
	case o.to == o.from:
		return exit.Usagef("", "--from and --to are the same")
	case o.out == "":
		return exit.Usagef("--out FILE.hhfr", "--out is missing")
	case o.out == "-" && o.stats:
		return exit.Usagef("--out FILE.hhfr", "--stats and --out - both want stdout")
	case o.sync > 1<<20:
		return exit.Usagef("", "--sync is at most 1MiB")
	case o.to != "stream":
		for _, name := range [...]string{"store", "schema", "stats", "sync", "without"} {
			if c.Flags().Changed(name) {
				return exit.Usagef("", "--%s is for --to stream", name)
			}
		}
		if len(o.files) != 1 {
			return exit.Usagef("", "--to %s takes one FILE", o.to)
		}
	}
	return input.Sendable(o.files)
}

// convert writes one message in another format.
func convert(ctx context.Context, g *command.Global, o transcodeOptions) error {
	body, err := input.Whole(ctx, g, o.files[0])
	if err != nil {
		return err
	}
	text := infosetText(ctx, body)
	if o.to == "fastinfoset" {
		doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, body)
		if err != nil {
			return exit.Withf(exit.Malformed, "", "%s: %w", o.files[0], err)
		}
		text = bytes.NewReader(doc)
	}
	var written int64
	err = input.WriteWhole(g, o.out, 0o600, func(w io.Writer) (err error) {
		if written, err = io.Copy(w, text); err != nil {
			err = fmt.Errorf("%s: %w", o.files[0], err)
		}
		return err
	})
	if err == nil {
		g.Note("%s of %s, %d of %s", printing.Count(int64(len(body)), "byte"), o.from, written, o.to)
	}
	return err
}

// infosetText reads a message in Fast Infoset as XML text.
func infosetText(ctx context.Context, body []byte) io.Reader {
	r := &fastinfoset.Reader{Limits: fastinfoset.Limits{TextBytes: input.MaxMessage}}
	r.Reset(body)
	return infosetSource{ctx, fastinfoset.NewTextReader(r)}
}

// infosetSource reads what its input has to be, or it is malformed, until the end of ctx: a small
// document can have a long text.
type infosetSource struct {
	ctx  context.Context
	from io.Reader
}

// Read implements [io.Reader].
func (m infosetSource) Read(p []byte) (int, error) {
	if m.ctx.Err() != nil {
		return 0, context.Cause(m.ctx)
	}
	n, err := m.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = exit.With(exit.Malformed, err, "")
	}
	return n, err
}

func runTranscode(ctx context.Context, g *command.Global, o transcodeOptions) (err error) {
	cfg := transcode.Config{SyncBytes: int64(o.sync), Measure: o.stats, Without: uint64(o.without)}
	described, err := description.Read(ctx, g, o.schema)
	if err != nil {
		return err
	}
	cfg.Description, cfg.Schema = described.Messages(), described.HHFR
	if o.store.Spec != "" {
		store, err := o.store.OpenWritten(ctx, g)
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		cfg.Store = store
	}
	var each func(transcode.Figures) error
	if o.stats {
		each = func(f transcode.Figures) error { return printFigures(g.Out, o.output, f) }
		if o.output == "text" {
			fmt.Fprintf(g.Out, figuresHead, "RAW", "GZIP", "ZSTD", "SHAPE", "CONTENT", "FRAMES", "SPLIT", "JOIN",
				"MESSAGE")
		}
	}
	var total transcode.Figures
	err = input.WriteWhole(g, o.out, 0o600, func(w io.Writer) (err error) {
		total, err = transcode.Pack(ctx, w, packable(ctx, g, &o), cfg, each)
		return err
	})
	if err != nil {
		return err
	}
	if total.Drifted > 0 {
		g.Note("%s not as described; hhfr schema check says where", printing.Count(total.Drifted, "message"))
	}
	if o.stats {
		total.Name = "total"
		return printFigures(g.Out, o.output, total)
	}
	g.Note("%s of messages: shapes %d, frames %d", printing.Count(total.Raw, "byte"), total.Shape, total.Frames)
	return nil
}

const (
	figuresHead = "%9s %8s %8s %8s %8s %8s %10s %10s  %s\n"
	figuresLine = "%9d %8d %8d %8d %8d %8d %7d µs %7d µs  %s\n"
)

// TranscodeTotal is the last line of `hhfr transcode --stats -o json`.
type TranscodeTotal struct {
	Version int               `json:"version"` // 1
	Total   transcode.Figures `json:"total"`   // of all messages
}

func printFigures(w io.Writer, format string, f transcode.Figures) error {
	if format == "json" {
		if f.Name == "total" {
			return printing.JSON(w, TranscodeTotal{1, f})
		}
		return printing.JSON(w, f)
	}
	_, err := fmt.Fprintf(w, figuresLine, f.Raw, f.Gzip, f.Zstd, f.Shape, f.Content, f.Frames, f.Split/1000,
		f.Join/1000, printing.Shorten(f.Name, 60))
	return err
}

// packable reads the messages to pack.
func packable(ctx context.Context, g *command.Global, o *transcodeOptions) iter.Seq2[transcode.Packable, error] {
	return func(yield func(transcode.Packable, error) bool) {
		for _, name := range o.files {
			if o.from == "fastinfoset" {
				body, err := input.Whole(ctx, g, name)
				if !yield(transcode.Packable{Name: name, Body: infosetText(ctx, body)}, err) || err != nil {
					return
				}
				continue
			}
			if name != "-" {
				body, err := input.Open(ctx, g, name, "")
				if err != nil {
					yield(transcode.Packable{Name: name}, err)
					return
				}
				more := yield(transcode.Packable{Name: name, Body: &notLonger{body, name, input.MaxMessage}}, nil)
				_ = body.Close()
				if !more {
					return
				}
				continue
			}
			for doc, err := range input.Documents(ctx, g) {
				if !yield(transcode.Packable{Name: name, Body: bytes.NewReader(doc)}, err) || err != nil {
					return
				}
			}
		}
	}
}

// notLonger reads a message of at most left bytes.
type notLonger struct {
	io.Reader
	name string
	left int
}

// Read implements [io.Reader].
func (l *notLonger) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, input.TooLong(l.name, input.MaxMessage)
	}
	return n, err
}
