// Package sources is where commands read captures from: files, an interface, or a running server;
// with the keys of connections in TLS.
package sources

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/live"
)

// CaptureOptions are the flags about them.
type CaptureOptions struct {
	Interface, Attach string // empty: files
	Ports             []uint // empty: all
	keylog            string
}

// Flags declares them.
func (o *CaptureOptions) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.keylog, "keylog", "", "file with the keys of connections in TLS, as SSLKEYLOGFILE has them "+
		"written; or a pcapng file that has them")
	f.StringVarP(&o.Interface, "interface", "i", "",
		"capture from this `INTERFACE` instead of reading files, until Ctrl-C; any: from all (Linux)")
	f.StringVar(&o.Attach, "attach", "", "show what passes through a running serve or proxy from now on, which "+
		"has this `ADDRESS` as its --metrics, and --packets")
	f.UintSliceVar(&o.Ports, "port", nil, "only packets from or to this `PORT`; may be repeated")
}

// Live is what is captured as it passes: an interface, or the address of a server; empty: nothing.
func (o *CaptureOptions) Live() string { return cmp.Or(o.Interface, o.Attach) }

// Args checks the arguments of a command: files, unless something live is named.
func (o *CaptureOptions) Args(c *cobra.Command, args []string) error {
	if o.Live() != "" {
		return command.Takes()(c, args)
	}
	return command.Takes("FILE…")(c, args)
}

// Check returns what is wrong with the flags.
func (o *CaptureOptions) Check() error {
	if o.Interface != "" && o.Attach != "" {
		return exit.Usagef("", "--interface and --attach do not go together")
	}
	for _, port := range o.Ports {
		if port > 1<<16-1 || port == 0 {
			return exit.Usagef("", "--port %d: ports are 1 to 65535", port)
		}
	}
	return nil
}

// Open opens the files, or begins to capture what is live, until ctx ends; again is as of
// [input.OpenSources]. The caller closes the result; ended is called when all was read.
func (o *CaptureOptions) Open(ctx context.Context, g *command.Global, files []string, again bool) (
	in *input.Sources, ended func(), err error) {
	if o.Live() == "" {
		in, err = input.OpenSources(ctx, g, files, "a capture", again)
		return in, func() {}, err
	}
	if o.Attach != "" {
		body, err := attach(ctx, o.Attach)
		return input.Of(ctx, o.Attach, body), func() {}, err
	}
	source, err := live.Open(o.Interface, func() bool { return ctx.Err() != nil })
	if err != nil {
		return nil, nil, notLive(o.Interface, err)
	}
	return input.Of(ctx, o.Interface, source), func() {
		if n := source.Drops(); n > 0 {
			g.Warn("%s not captured: more came than was read; --port leaves out others", printing.Count(n, "packet"))
		}
	}, nil
}

// notLive is an error of a capture that cannot begin, with what to do.
func notLive(iface string, err error) error {
	switch {
	case errors.Is(err, live.ErrSystem):
		return exit.With(exit.Failed, err, "another program captures: tshark -i "+iface+" -w - | hhfr decode -")
	case errors.Is(err, live.ErrRight):
		program, _ := os.Executable()
		if program == "" {
			program = "hhfr"
		}
		return exit.With(exit.Failed, err, "run it as root, or give the program the right once: sudo setcap "+
			"cap_net_raw=ep "+program)
	case errors.Is(err, live.ErrInterface):
		return exit.Usage(err, "")
	}
	return err
}
