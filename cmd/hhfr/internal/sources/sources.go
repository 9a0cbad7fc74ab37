// Package sources is where commands read captures from: files, or an interface; with the keys of
// connections in TLS.
package sources

import (
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
	Interface string // empty: files
	Ports     []uint // empty: all
	keylog    string
}

// Flags declares them.
func (o *CaptureOptions) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.keylog, "keylog", "", "file with the keys of connections in TLS, as SSLKEYLOGFILE has them "+
		"written; or a pcapng file that has them")
	f.StringVarP(&o.Interface, "interface", "i", "",
		"capture from this `INTERFACE` instead of reading files, until Ctrl-C; any: from all (Linux)")
	f.UintSliceVar(&o.Ports, "port", nil, "only packets from or to this `PORT`; may be repeated")
}

// Args checks the arguments of a command: files, unless an interface is named.
func (o *CaptureOptions) Args(c *cobra.Command, args []string) error {
	if o.Interface != "" {
		return command.Takes()(c, args)
	}
	return command.Takes("FILE…")(c, args)
}

// Check returns why --port is wrong; nil: it is not.
func (o *CaptureOptions) Check() error {
	for _, port := range o.Ports {
		if port > 1<<16-1 || port == 0 {
			return exit.Usagef("", "--port %d: ports are 1 to 65535", port)
		}
	}
	return nil
}

// Live begins a capture from the interface, until ctx ends. The caller closes the result; ended is
// called when all was read.
func (o *CaptureOptions) Live(ctx context.Context, g *command.Global) (in *input.Sources, ended func(), err error) {
	source, err := live.Open(o.Interface, func() bool { return ctx.Err() != nil })
	if err != nil {
		return nil, nil, notLive(o.Interface, err)
	}
	return input.Of(o.Interface, source), func() {
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
