package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/pkg/capture"
	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/ctxstore/engines"
)

func newReconstruct(env Env, g *global) *cobra.Command {
	var o decodeOptions
	c := &cobra.Command{
		Use:   "reconstruct FILE…",
		Short: "Give back full SOAP envelopes from raw stream octets and a context store",
		Long: `reconstruct reads the octets of one or more directions of hhfr streams, without any capture around them, and the shapes behind them from a
context store, with the unchanging headers of their sessions, and writes the messages as they were sent.
A direction may begin in the middle: what comes from its first trusted
sync frame on is given. Files named NAME-OFFSET.bin, as decode --write-streams writes them, are runs of one direction NAME; any other file
is a direction of its own. Two directions of one session are put together; a single one gives requests or replies only.`,
		Example: `  hhfr decode session.pcapng --write-streams raw
  hhfr reconstruct raw/*.bin --store ./store --save-dir messages`,
		Args: takes("FILE…"),
		RunE: func(c *cobra.Command, args []string) error {
			return runReconstruct(c.Context(), env, g, o, args)
		},
	}
	f := c.Flags()
	f.StringVar(&o.store, "store", "", "context store with the shapes: "+strings.Join(engines.Forms(), " or "))
	f.StringVar(&o.saveDir, "save-dir", "", "write each message to a file there: 000001-request.xml, 000001-reply.xml, …")
	f.BoolVar(&o.lenient, "lenient", false, "exit with 0 where something is missing")
	outputFlag(c, &o.output, "text", "json", "jsonl", "xml")
	return c
}

func runReconstruct(ctx context.Context, env Env, g *global, o decodeOptions, files []string) error {
	store, err := openReadOnly(ctx, o.store)
	if err != nil {
		return err
	}
	if store != nil {
		defer func() { _ = store.Close() }()
	}
	if err := once(files); err != nil {
		return err
	}
	var runs []capture.RawRun
	for _, name := range files {
		in, err := openInput(ctx, env, g, name, "a stream")
		if err != nil {
			return err
		}
		octets, err := io.ReadAll(in)
		_ = in.Close()
		if err != nil {
			return err
		}
		if len(octets) == 0 {
			return &problem{exitMalformed, errors.New(name + " is empty"), ""}
		}
		if _, err := flow.Open(bytes.NewReader(octets)); err == nil {
			return &problem{exitMalformed, errors.New(name + " is a capture"), "captures are for hhfr decode; its --write-streams gives the octets of their streams"}
		}
		runs = append(runs, capture.RawRun{Name: name, Octets: octets})
	}
	r, err := capture.DecodeStreams(ctx, runs, capture.DecodeConfig{Store: store})
	if err != nil {
		return err
	}
	o.file = strings.Join(files, ", ")
	if len(r.Streams) == 0 {
		return &problem{exitMalformed, errors.New("no hhfr stream in " + o.file), "raw stream octets begin with a hello, or have two sync frames that agree, or one of a session the store knows (--store); captures are for hhfr decode"}
	}
	return present(env, g, o, r)
}
