package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/pkg/demo"
)

func newDemo(env Env, g *global) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "demo",
		Short: "The whole thing in a minute on this machine",
		Long: `demo starts a server and a client on this machine, each with a context store of its own, negotiates, and sends messages modelled on cameras (ONVIF),
home gateways (CWMP) and mail (EWS) to the echo service over the stream, twice each. It compares what comes back and prints what travelled.

With HHFR_SHARED set to a folder with corpus/messages, the messages are those of the corpus.`,
		Example: "  hhfr demo\n  hhfr demo -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			messages, err := demoMessages()
			if err != nil {
				return err
			}
			const line = "%-44s %9d %9d %9d %9d %8.1f  %s\n"
			header := func() {
				fmt.Fprintf(env.Out, "%-44s %9s %9s %9s %9s %8s\n", "MESSAGE, THERE AND BACK", "SOAP+HEAD", "SHAPES", "HHFR 1ST", "HHFR 2ND", "RATIO")
			}
			each := func(r demo.Row) {
				same := "same"
				if !r.Same {
					same = "DIFFERENT"
				}
				fmt.Fprintf(env.Out, line, shorten(r.Name, 44), r.SOAP+r.Heads, r.Shapes, r.First, r.Next, r.Ratio(), same)
			}
			if output == "json" {
				each = nil
			} else {
				header()
			}
			r, err := demo.Run(c.Context(), messages, each)
			if err != nil {
				return err
			}
			total := demo.Row{Same: true}
			for _, row := range r.Rows {
				total.SOAP, total.Heads, total.Shapes = total.SOAP+row.SOAP, total.Heads+row.Heads, total.Shapes+row.Shapes
				total.First, total.Next = total.First+row.First, total.Next+row.Next
			}
			if output == "json" {
				if err := writeJSON(env.Out, map[string]any{"version": 1, "session": r.Agreed, "rows": r.Rows, "total": total, "same": r.Same()}); err != nil {
					return err
				}
			} else {
				fmt.Fprintf(env.Out, line, "total", total.SOAP+total.Heads, total.Shapes, total.First, total.Next, total.Ratio(), "")
				if !g.quiet {
					fmt.Fprintf(env.Err, "hhfr: %d messages, each sent twice over session %s (%s), octets there and back\n", len(r.Rows), r.Agreed.Session, r.Agreed.Representation)
				}
			}
			if !r.Same() {
				return errors.New("what came back is not what was sent")
			}
			if output != "json" {
				_, err = fmt.Fprintln(env.Out, "Every message came back byte for byte.")
			}
			return err
		},
	}
	outputFlag(c, &output, "text", "json")
	return c
}

// demoMessages are those of the corpus if there is one, else those built in.
func demoMessages() ([]demo.Message, error) {
	shared := os.Getenv("HHFR_SHARED")
	if shared == "" {
		return demo.Builtin()
	}
	dir := filepath.Join(shared, "corpus", "messages")
	messages, err := demo.Read(os.DirFS(dir), func(path string) bool {
		return !strings.HasSuffix(path, ".wsdl") && !strings.HasSuffix(path, ".xsd")
	})
	if err != nil {
		return nil, &problem{exitUsage, fmt.Errorf("HHFR_SHARED: %s: %w", dir, err), "unset HHFR_SHARED for the messages built in"}
	}
	return messages, nil
}
