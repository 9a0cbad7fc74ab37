// Package inspect is hhfr inspect.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/decoding"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/screen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/sources"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/inspector"
)

type inspectOptions struct {
	files []string
	decoding.Knowledge
	sources.CaptureOptions
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
-i captures from an interface itself, and --attach shows what passes through a running server, as
with decode.

? lists the keys, and the flags of decode that do the same: search, filter, one conversation, HTTP
heads, trees, bytes, the difference of two messages, saving and copying. With --filter, --follow and
the like only these messages are there.

Bodies are in a private file in the folder of TMPDIR while inspect runs, compressed. Characters that
a terminal would obey are question marks; what is saved has the bytes. NO_COLOR turns colors off.
Without a terminal there is hhfr decode.`,
		Example: `  # on a terminal
  hhfr inspect server.pcapng
  hhfr inspect server.pcapng --tail --filter 'fault'`,
		Args: o.Args,
		RunE: func(c *cobra.Command, args []string) error {
			o.files = args
			return run(c.Context(), g, &o)
		},
	}
	f := c.Flags()
	o.Knowledge.Flags(f)
	o.CaptureOptions.Flags(f)
	o.choice.Flags(f)
	f.BoolVar(&o.tail, "tail", false, "at the end of a file, wait for more, and go on in the next file of a recording")
	return c
}

// check returns why there can be no screen.
func (o *inspectOptions) check(g *command.Global) error {
	if err := cmp.Or(o.choice.Prepare(), o.Check()); err != nil {
		return err
	}
	from := strings.Join(o.files, " ")
	switch {
	case o.Interface != "":
		from = "-i " + o.Interface
	case o.Attach != "":
		from = "--attach " + o.Attach
	}
	if !terminal.Is(g.Out) || !isSmart() {
		return exit.Usagef("hhfr decode "+from+" lists the messages anywhere", "inspect needs a terminal")
	}
	if slices.Contains(o.files, "-") && terminal.Is(g.In) {
		return exit.Usagef("tshark -w - | hhfr inspect -", "- is a capture from a pipe, not from the terminal")
	}
	return nil
}

// enoughToInspect is what inspecting needs, however long a capture is, in bytes.
const enoughToInspect = 160 << 20

func run(ctx context.Context, g *command.Global, o *inspectOptions) (err error) {
	if err := o.check(g); err != nil {
		return err
	}
	defer input.Frugal(enoughToInspect)()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer untilHangup(cancel)()
	keys, closeKeys, err := o.Keys()
	if err != nil {
		return err
	}
	defer closeKeys()
	cfg, done, err := o.Knowledge.Open(ctx, g)
	if err != nil {
		return err
	}
	defer done()
	cfg.Keys, cfg.Ports, cfg.Carriage, cfg.Frames, cfg.XML = keys, o.Ports, true, true, true
	in, ended, err := o.CaptureOptions.Open(ctx, g, o.files, false)
	if err != nil {
		return err
	}
	defer func() { ended(); err = errors.Join(err, in.Close()) }()
	messages := inspector.NewLog()
	defer func() { err = errors.Join(err, messages.Close()) }()
	from := newReading(ctx, in.List, o.tail, o.choice, messages)
	from.idle = g.Verbose
	go from.run(ctx, cfg)
	err = show(ctx, g, from)
	cancel(nil)
	if <-from.over; err == nil && messages.Len() == 0 {
		err = from.err
	}
	return err
}

// show shows the screen until the user ends it, or a signal does.
func show(ctx context.Context, g *command.Global, from *captureReading) error {
	cfg := screen.Config{Out: g.Out, Colors: terminal.HasColors(g.Out)}
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

// untilHangup has the screen left in order when its terminal is closed; end forgets that.
func untilHangup(cancel context.CancelCauseFunc) (end func()) {
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGHUP)
	go func() {
		if s, ok := <-came; ok {
			cancel(exit.Signalled{Signal: s})
		}
	}()
	return func() { signal.Stop(came); close(came) }
}

// isSmart reports whether a terminal can be written to anywhere.
func isSmart() bool {
	name := os.Getenv("TERM")
	return name != "dumb" && (name != "" || runtime.GOOS == "windows")
}
