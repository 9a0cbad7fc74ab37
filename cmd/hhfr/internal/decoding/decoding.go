// Package decoding is what commands that decode have in common: their flags, and how what they read
// is shown, saved and summed up.
package decoding

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/export"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/capture"
)

// DecodeOptions are the flags of commands that decode.
type DecodeOptions struct {
	Files []string
	Knowledge
	saveDir, Output string
	lenient         bool
	Raw             bool // bytes of streams, without a capture
	choice          chosen.Choice
	stats           bool
	export          string
}

// Knowledge is what decoding knows beside the capture: a store, and descriptions of services.
type Knowledge struct {
	store  stores.StoreOptions
	schema description.SchemaSource
}

// Flags declares its flags.
func (k *Knowledge) Flags(f *pflag.FlagSet) {
	k.store.Flags(f, "")
	k.schema.Flags(f)
}

// Open opens it; done closes it.
func (k *Knowledge) Open(ctx context.Context, g *command.Global) (
	cfg capture.DecodeConfig, done func(), err error) {
	if cfg.Store, err = k.store.OpenReadOnly(ctx, g); err != nil {
		return cfg, nil, err
	}
	done = func() {
		if cfg.Store != nil {
			_ = cfg.Store.Close()
		}
	}
	described, err := description.Read(ctx, g, k.schema)
	if err != nil {
		done()
		return cfg, nil, err
	}
	cfg.Own = described.Own()
	return cfg, done, nil
}

// Flags declares them.
func (o *DecodeOptions) Flags(f *pflag.FlagSet) {
	o.Knowledge.Flags(f)
	flags.SaveDir(f, &o.saveDir)
	flags.Lenient(f, &o.lenient)
	o.choice.Flags(f)
	f.BoolVar(&o.stats, "stats", false,
		"count messages, bytes, faults and durations by session, operation and kind, in place of the messages")
	f.StringVar(&o.export, "export", "",
		"in the `FORM` har, an archive of exchanges, curl, commands with the requests, or pcapng, messages as packets "+
			"for Wireshark; credentials included")
}

// Open opens what decoding needs; done closes it.
func (o *DecodeOptions) Open(ctx context.Context, g *command.Global) (
	cfg capture.DecodeConfig, done func(), err error) {
	cfg, done, err = o.Knowledge.Open(ctx, g)
	cfg.Starts, cfg.Frames, cfg.Carriage = o.starts(), o.choice.Hex, o.choice.Bits
	cfg.XML = o.export == "" || o.export == "pcapng" // requests of other exports go out as they were
	return cfg, done, err
}

// EnoughToDecode is what decoding needs, however much arrives, in bytes.
const EnoughToDecode = 48 << 20

// starts reports whether only the beginnings of messages are needed.
func (o *DecodeOptions) starts() bool {
	return o.saveDir == "" && o.export == "" && o.Output == "text" && !o.choice.Whole() && !o.choice.Bodies()
}

// check is what is wrong with the flags together.
func (o *DecodeOptions) check() error {
	switch {
	case o.export != "" && !slices.Contains(export.Forms, o.export):
		return exit.Usagef("", "--export is har, curl or pcapng, not %s", o.export)
	case o.export != "" && (o.stats || o.Output != "text" || o.choice.Whole()):
		return exit.Usagef("",
			"--export has a form of its own: --output, --stats and what shows messages do not go with it")
	case o.stats && o.choice.Whole():
		return exit.Usagef("", "--stats shows no messages: what shows them does not go with it")
	case o.stats && o.Output != "text" && o.Output != "json":
		return exit.Usagef("", "--stats prints text or json, not %s", o.Output)
	}
	return o.choice.Prepare()
}

// names lists the inputs for people.
func (o *DecodeOptions) names() string { return strings.Join(o.Files, ", ") }

// shownAtOnce is how many events of a file are shown at once: it may be read as a whole before the
// next comes.
const shownAtOnce = 64

// Present prints and saves what is decoded as it arrives; its error says what is missing.
func Present(ctx context.Context, g *command.Global, o DecodeOptions, r *capture.Reader,
	events iter.Seq2[capture.Event, error]) error {
	if o.saveDir != "" {
		if err := os.MkdirAll(o.saveDir, 0o755); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(g.Out)
	if err := o.check(); err != nil {
		return err
	}
	l := listing.New(out, &o.choice, listing.ListForm{
		Output: o.Output, Width: terminal.Columns(g.Out), Colors: terminal.HasColors(g.Out), All: g.Verbose,
		Ends: r.Widest, SaveDir: o.saveDir, Statistics: o.stats, Export: o.export,
		Service: func(m *capture.Decoded) capture.Endpoint { return r.Summary().ServiceOf(m) },
	})
	if err := out.Flush(); err != nil { // what a form begins with
		return err
	}
	given := 0
	for ev, err := range events {
		if err == nil {
			err = l.Event(ev)
		}
		if given++; err == nil && (!r.Twice() || given <= shownAtOnce) {
			err = out.Flush()
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case l.Full():
			return errors.Join(l.End(r.Summary()), out.Flush())
		}
	}
	sum := r.Summary()
	if err := errors.Join(l.End(sum), out.Flush()); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		summarize(g, o, sum, l)
		return cause
	}
	return verdict(g, o, sum, l)
}

// verdict returns an error that says what is missing.
func verdict(g *command.Global, o DecodeOptions, s *capture.Summary, l *listing.Listing) error {
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
