// Package commands lists the commands, of which each has a package below.
package commands

import (
	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/bench"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/call"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/contexts"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/decode"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/demo"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/estimate"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/negotiate"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/proxy"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/reconstruct"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/replay"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/schema"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/stream"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/transcode"
)

// All are the commands, but for those about the program itself.
func All(g *command.Global) []*cobra.Command {
	return []*cobra.Command{
		demo.New(g), serve.New(g), negotiate.New(g), stream.New(g), call.New(g), call.NewList(g), call.NewDescribe(g),
		decode.New(g), estimate.New(g), reconstruct.New(g), proxy.New(g), replay.New(g), bench.New(g),
		transcode.New(g), schema.New(g), schema.NewGen(g), contexts.New(g),
	}
}
