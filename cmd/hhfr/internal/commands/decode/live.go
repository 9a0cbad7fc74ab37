package decode

import (
	"context"
	"errors"
	"os"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/decoding"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/live"
)

// sources opens the files, or the interface. The caller closes the result; ended is called when all
// was read.
func (o *decodeOptions) sources(ctx context.Context, g *command.Global) (
	in *input.Sources, ended func(), err error) {
	if o.iface == "" {
		in, err = input.OpenSources(ctx, g, o.Files, "a capture", o.Output == "json")
		return in, func() {}, err
	}
	if o.Output == "json" {
		return nil, nil, exit.Usagef("-o jsonl prints messages as they come",
			"-o json is for captures that have an end")
	}
	source, err := live.Open(o.iface, func() bool { return ctx.Err() != nil })
	if err != nil {
		return nil, nil, notLive(o.iface, err)
	}
	o.Files = []string{o.iface}
	g.Note("capturing from %s; Ctrl-C ends it", o.iface)
	return input.Of(o.iface, source), func() {
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

// checkPorts returns why --port is wrong; nil: it is not.
func (o *decodeOptions) checkPorts() error {
	for _, port := range o.ports {
		if port > 1<<16-1 || port == 0 {
			return exit.Usagef("", "--port %d: ports are 1 to 65535", port)
		}
	}
	return nil
}

// decodeOptions are the flags of the command.
type decodeOptions struct {
	decoding.DecodeOptions
	writeStreams, keylog string
	iface                string // empty: files
	ports                []uint // empty: all
}
