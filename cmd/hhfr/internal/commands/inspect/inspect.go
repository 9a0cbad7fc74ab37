// Package inspect is hhfr inspect.
package inspect

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/screen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/inspector"
)

type inspectOptions struct {
	files  []string
	store  stores.StoreOptions
	schema description.SchemaSource
	choice chosen.Choice
	tail   bool
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	var o inspectOptions
	c := &cobra.Command{
		Use:   "inspect FILE…",
		Short: "Look into a capture on a full screen",
		Long: `inspect reads what decode reads, and shows its messages on a full screen: the list, and the
message at the cursor. Messages are there as soon as they are read, and the rest is read meanwhile.
With --tail it goes on as the file grows; - is a capture from a pipe, with keys from the terminal:
tshark -w - | hhfr inspect -

? lists the keys, and the flags of decode that do the same: search, filter, one conversation, HTTP
heads, trees, bytes, the difference of two messages, saving and copying. With --filter, --follow and
the like only these messages are there.

Bodies are in a private file in the folder of TMPDIR while inspect runs, compressed. Characters that
a terminal would obey are question marks; what is saved has the bytes. NO_COLOR turns colors off.
Without a terminal there is hhfr decode.`,
		Example: `  # on a terminal
  hhfr inspect server.pcapng
  hhfr inspect server.pcapng --tail --filter 'fault'`,
		Args: command.Takes("FILE…"),
		RunE: func(c *cobra.Command, args []string) error {
			o.files = args
			return run(c.Context(), g, o)
		},
	}
	f := c.Flags()
	o.store.Flags(f, "")
	o.schema.Flags(f)
	o.choice.Flags(f)
	f.BoolVar(&o.tail, "tail", false, "at the end of a file, wait for more")
	return c
}

// enoughToInspect is what inspecting needs, however long a capture is, in bytes.
const enoughToInspect = 160 << 20

func run(ctx context.Context, g *command.Global, o inspectOptions) (err error) {
	if err := o.choice.Prepare(); err != nil {
		return err
	}
	if !terminal.Is(g.Out) || !isSmart() {
		return exit.Usagef("hhfr decode "+o.files[0]+" lists the messages anywhere", "inspect needs a terminal")
	}
	if slices.Contains(o.files, "-") && terminal.Is(g.In) {
		return exit.Usagef("tshark -w - | hhfr inspect -", "- is a capture from a pipe, not from the terminal")
	}
	defer input.Frugal(enoughToInspect)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, err := input.OpenSources(ctx, g, o.files, "a capture", false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	cfg := capture.DecodeConfig{}
	if cfg.Store, err = o.store.OpenReadOnly(ctx, g); err != nil {
		return err
	}
	if cfg.Store != nil {
		defer func() { _ = cfg.Store.Close() }()
	}
	described, err := description.Read(ctx, g, o.schema)
	if err != nil {
		return err
	}
	cfg.Own, cfg.Carriage, cfg.Frames = described.Own(), true, true
	messages := &inspector.Log{}
	defer func() { err = errors.Join(err, messages.Close()) }()
	from := newReading(ctx, o.files, in.List, o.tail, &o.choice, messages)
	from.idle = g.Verbose
	go from.run(ctx, cfg)
	defer func() { cancel(); <-from.over }()
	return show(ctx, g, o, from)
}

// show shows the screen until the user ends it, or a signal does.
func show(ctx context.Context, g *command.Global, o inspectOptions, from *captureReading) error {
	cfg := screen.Config{Out: g.Out, Colors: terminal.HasColors(g.Out), Head: o.choice.Head,
		Tree: o.choice.Tree, Hex: o.choice.Hex}
	if terminal.Is(g.In) {
		cfg.In = g.In
	}
	err := screen.Show(ctx, from, from.log, cfg)
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return cause
	case errors.Is(err, screen.ErrInterrupted):
		return exit.Signalled{Signal: os.Interrupt}
	}
	return err
}

// isSmart reports whether a terminal can be written to anywhere.
func isSmart() bool {
	name := os.Getenv("TERM")
	return name != "dumb" && (name != "" || runtime.GOOS == "windows")
}
