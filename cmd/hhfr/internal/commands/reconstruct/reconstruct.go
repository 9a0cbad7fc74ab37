// Package reconstruct is hhfr reconstruct, which decodes bytes of streams.
package reconstruct

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/decoding"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/flow"
)

// New is the command.
func New(g *command.Global) *cobra.Command {
	var o decoding.DecodeOptions
	c := &cobra.Command{
		Use:   "reconstruct FILE…",
		Short: "Rebuild full SOAP envelopes from raw stream bytes and a context store",
		Long: `reconstruct reads the bytes of one or more directions of hhfr streams, without a
capture around them. It takes their shapes, and the unchanging headers of their sessions, from a
context store, and writes the messages as they were sent.
A direction may begin in the middle: everything from its first trusted sync frame on is
decoded. Files named NAME-OFFSET.bin, as decode --write-streams writes them, are parts of one
direction, NAME; any other file is a direction of its own. Two directions of one stream are
combined; a single one yields requests or replies only.

Files are read twice, so that each message has its final state. From a pipe or stdin (-), a message
is written as soon as it is whole, and a line says when a check verified or withdrew it. Files of
--save-dir whose messages are withdrawn have names that end in .withdrawn.`,
		Example: `  hhfr decode session.pcapng --write-streams raw
  hhfr reconstruct raw/*.bin --store ./store --save-dir messages`,
		Args: command.Takes("FILE…"),
		RunE: func(c *cobra.Command, args []string) error {
			o.Files, o.Raw = args, true
			return runReconstruct(c.Context(), g, o)
		},
	}
	o.Flags(c.Flags())
	command.OutputFlag(c, &o.Output, "jsonl", "xml")
	return c
}

func runReconstruct(ctx context.Context, g *command.Global, o decoding.DecodeOptions) error {
	defer input.Frugal(decoding.EnoughToDecode)()
	cfg, done, err := o.Open(ctx, g)
	if err != nil {
		return err
	}
	defer done()
	in, err := input.OpenSources(ctx, g, o.Files, "a stream", o.Output == "json")
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	runs := make([]capture.Input, len(o.Files))
	for i, name := range o.Files {
		octets, err := rawOctets(name, in.List[i].Octets)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		runs[i] = capture.Input{Name: name, Octets: octets}
	}
	r := capture.NewReader(context.WithoutCancel(ctx), cfg)
	return decoding.Present(ctx, g, o, r, r.Streams(context.WithoutCancel(ctx), runs...))
}

// rawOctets checks the beginning of an input, which should be bytes of a stream.
func rawOctets(name string, in io.Reader) (io.Reader, error) {
	const magic = 4
	begin := make([]byte, magic)
	n, err := io.ReadFull(in, begin)
	begin = begin[:n]
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	switch {
	case n == 0:
		return nil, exit.Withf(exit.Malformed, "", "%s is empty", name)
	case flow.IsCapture(begin):
		return nil, exit.Withf(exit.Malformed,
			"captures are for hhfr decode; its --write-streams writes the bytes of their streams",
			"%s is a capture", name)
	}
	if s, ok := in.(io.Seeker); ok {
		_, err := s.Seek(0, io.SeekStart)
		return in, err
	}
	return io.MultiReader(bytes.NewReader(begin), in), nil
}
