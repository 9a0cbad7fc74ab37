// Package listing lists, prints and saves messages that are decoded.
package listing

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/capture"
)

// DecodeOptions are the flags of commands that decode.
type DecodeOptions struct {
	Files           []string
	store           stores.StoreOptions
	saveDir, Output string
	schema          description.SchemaSource
	lenient         bool
	Raw             bool // bytes of streams, without a capture
	choice          chosen.Choice
}

// Flags declares them.
func (o *DecodeOptions) Flags(f *pflag.FlagSet) {
	o.store.Flags(f, "")
	o.schema.Flags(f)
	flags.SaveDir(f, &o.saveDir)
	flags.Lenient(f, &o.lenient)
	o.choice.Flags(f)
}

// Open opens what decoding needs; done closes it.
func (o *DecodeOptions) Open(ctx context.Context, g *command.Global) (
	cfg capture.DecodeConfig, done func(), err error) {
	if cfg.Store, err = o.store.OpenReadOnly(ctx, g); err != nil {
		return cfg, nil, err
	}
	done = func() {
		if cfg.Store != nil {
			_ = cfg.Store.Close()
		}
	}
	described, err := description.Read(ctx, g, o.schema)
	if err != nil {
		done()
		return cfg, nil, err
	}
	cfg.Own, cfg.Starts = described.Own(), o.starts()
	return cfg, done, nil
}

// EnoughToDecode is what decoding needs, however much arrives, in bytes.
const EnoughToDecode = 48 << 20

// starts reports whether only the beginnings of messages are needed.
func (o *DecodeOptions) starts() bool {
	return o.saveDir == "" && o.Output == "text" && !o.choice.Whole()
}

// names lists the inputs for people.
func (o *DecodeOptions) names() string { return strings.Join(o.Files, ", ") }

// Present prints and saves what is decoded as it arrives; its error says what is missing.
func Present(ctx context.Context, g *command.Global, o DecodeOptions, r *capture.Reader,
	events iter.Seq2[capture.Event, error]) error {
	if o.saveDir != "" {
		if err := os.MkdirAll(o.saveDir, 0o755); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(g.Out)
	layout := rowLayout{width: terminal.Columns(g.Out), all: g.Verbose, ends: r.Widest}
	l := newListing(out, o.Output, layout, &o.choice)
	if err := o.choice.Prepare(); err != nil {
		return err
	}
	for ev, err := range events {
		if err == nil {
			err = l.event(ev, o.saveDir)
		}
		if err == nil && !r.Twice() {
			err = out.Flush()
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case l.full():
			return errors.Join(l.end(r.Summary()), out.Flush())
		}
	}
	sum := r.Summary()
	if err := errors.Join(l.end(sum), out.Flush()); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		summarize(g, o, sum, l)
		return cause
	}
	return l.verdict(g, o, sum)
}

// verdict returns an error that says what is missing.
func (l *listing) verdict(g *command.Global, o DecodeOptions, s *capture.Summary) error {
	summarize(g, o, s, l)
	switch {
	case o.Raw && len(s.Streams) == 0:
		return exit.Withf(exit.Malformed,
			"raw stream bytes begin with a hello, or have a sync frame; captures are for hhfr decode",
			"no hhfr stream in %s", o.names())
	case s.Counts().Messages == 0 && len(s.Streams) == 0 && !s.Partial():
		return exit.Withf(exit.Failed, "", "%w in %s; found instead: %s", capture.ErrNothing, o.names(),
			summary.Instead(s))
	case s.Partial() && !o.lenient:
		return exit.Quiet(exit.Partial)
	}
	return nil
}
