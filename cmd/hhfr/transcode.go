package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/internal/transcode"
)

type transcodeOptions struct {
	files                 []string
	from, to, out, output string
	store                 storeFlags
	schema                schemaSource
	stats                 bool
	sync                  size
	without               stages
}

func newTranscode(env Env, g *global) *cobra.Command {
	o := transcodeOptions{sync: 1 << 20}
	c := &cobra.Command{
		Use:   "transcode FILE…",
		Short: "Pack messages as one hhfr stream in a file",
		Long: `transcode writes messages as one stream into a file, which appears when it is complete. Their
shapes are in it, too; with --store they are in the store, and the stream has only references to
them.
hhfr reconstruct returns the messages, byte for byte: 000001-request.xml, 000002-request.xml, …

--schema FILE|URL takes types, what may be absent and what may repeat from a description. Shapes
then stand on what the description says, and take less: whoever reads the file needs --schema, or a
store, too. Messages that are not as described are packed like all others, and counted.

--stats prints sizes per message and in total: of the message as it is, with gzip and with zstd
(each message alone), and as shape, content and frames. It also prints how long it took to split the
message into shape and content, and to join it again.`,
		Example: `  hhfr transcode *.xml --out messages.hhfr
  hhfr reconstruct messages.hhfr --save-dir back
  hhfr transcode *.xml --to stream --out messages.hhfr --store ./store --stats`,
		Args: takes("FILE…"),
		RunE: func(c *cobra.Command, args []string) error {
			o.files = args
			return runTranscode(c.Context(), env, g, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.from, "from", "xml", "format of FILE: xml")
	f.StringVar(&o.to, "to", "stream", "what to write: stream")
	f.StringVar(&o.out, "out", "", "file to write; - is stdout")
	o.store.writtenFlags(f, "", "write shapes to this context store and not into the stream: ")
	o.schema.flags(f,
		"description of the messages: a WSDL or XML Schema, which readers then need, too, or an HHFR Schema")
	f.BoolVar(&o.stats, "stats", false, "print what each message takes")
	f.Var(&o.sync, "sync", "maximum bytes between sync frames, up to 1MiB; from 64KiB on a cheap one is sent")
	withoutFlag(f, &o.without, "")
	outputFlag(c, &o.output, "text", "json")
	return c
}

func (o *transcodeOptions) check() error {
	switch {
	case o.from != "xml":
		return usage(errors.New("--from is xml, not "+o.from), "")
	case o.to != "stream":
		return usage(errors.New("--to is stream, not "+o.to), "")
	case o.out == "":
		return usage(errors.New("--out is missing"), "--out FILE.hhfr")
	case o.out == "-" && o.stats:
		return usage(errors.New("--stats and --out - both want stdout"), "--out FILE.hhfr")
	case o.sync > 1<<20:
		return usage(errors.New("--sync is at most 1MiB"), "")
	}
	return sendable(o.files)
}

func runTranscode(ctx context.Context, env Env, g *global, o transcodeOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	cfg := transcode.Config{SyncBytes: int64(o.sync), Measure: o.stats, Without: uint64(o.without)}
	described, err := readDescription(ctx, g, o.schema)
	if err != nil {
		return err
	}
	cfg.Description, cfg.Schema = described.messages(), described.hhfr
	if o.store.spec != "" {
		store, err := o.store.openWritten(ctx, g)
		if err != nil {
			return err
		}
		defer func() { _ = store.Close() }()
		cfg.Store = store
	}
	var each func(transcode.Figures) error
	if o.stats {
		each = func(f transcode.Figures) error { return printFigures(env.Out, o.output, f) }
		if o.output == "text" {
			fmt.Fprintf(env.Out, figuresHead, "RAW", "GZIP", "ZSTD", "SHAPE", "CONTENT", "FRAMES", "SPLIT", "JOIN",
				"MESSAGE")
		}
	}
	var total transcode.Figures
	err = writeWhole(env, o.out, 0o600, func(w io.Writer) (err error) {
		total, err = transcode.Pack(ctx, w, packable(ctx, env, g, o.files), cfg, each)
		return err
	})
	if err != nil {
		return err
	}
	if total.Drifted > 0 {
		g.note("%s not as described; hhfr schema check says where", count(total.Drifted, "message"))
	}
	if o.stats {
		total.Name = "total"
		return printFigures(env.Out, o.output, total)
	}
	g.note("%s of messages: shapes %d, frames %d", count(total.Raw, "byte"), total.Shape, total.Frames)
	return nil
}

const (
	figuresHead = "%9s %8s %8s %8s %8s %8s %10s %10s  %s\n"
	figuresLine = "%9d %8d %8d %8d %8d %8d %7d µs %7d µs  %s\n"
)

// transcodeTotal is the last line of `hhfr transcode --stats -o json`.
type transcodeTotal struct {
	Version int               `json:"version"` // 1
	Total   transcode.Figures `json:"total"`   // of all messages
}

func printFigures(w io.Writer, format string, f transcode.Figures) error {
	if format == "json" {
		if f.Name == "total" {
			return writeJSON(w, transcodeTotal{1, f})
		}
		return writeJSON(w, f)
	}
	_, err := fmt.Fprintf(w, figuresLine, f.Raw, f.Gzip, f.Zstd, f.Shape, f.Content, f.Frames, f.Split/1000,
		f.Join/1000, shorten(f.Name, 60))
	return err
}

// packable reads the messages to pack.
func packable(ctx context.Context, env Env, g *global, files []string) iter.Seq2[transcode.Packable, error] {
	return func(yield func(transcode.Packable, error) bool) {
		for _, name := range files {
			if name != "-" {
				body, err := openInput(ctx, env, g, name, "")
				if err != nil {
					yield(transcode.Packable{Name: name}, err)
					return
				}
				more := yield(transcode.Packable{Name: name, Body: &notLonger{body, name, maxDocument}}, nil)
				_ = body.Close()
				if !more {
					return
				}
				continue
			}
			for doc, err := range documents(ctx, env, g) {
				if !yield(transcode.Packable{Name: name, Body: bytes.NewReader(doc)}, err) || err != nil {
					return
				}
			}
		}
	}
}
