// Package doctor is hhfr doctor.
package doctor

import (
	"context"
	"crypto/x509"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/doctor"
)

// New is the command.
func New(g *command.Global) *cobra.Command {
	var output, name string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "What works on this machine, and what to do about the rest",
		Long: `doctor looks at what is different on phones: which build this is, who answers
for names, which certificates are trusted, interfaces, ports, stores and their locks, how late
waits end, the processor's clock, heat and power. It opens ports on loopback and stores in the
folder for states, and removes them again; a name is looked up only if --name gives one. The exit
code is 1 if something fails.`,
		Example: "  hhfr doctor\n  hhfr doctor --name localhost -o json",
		Args:    command.Takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), g, name, output)
		},
	}
	c.Flags().StringVar(&name, "name", "", "look up this `HOST`")
	command.OutputFlag(c, &output)
	return c
}

// DoctorReport is what doctor -o json prints.
type DoctorReport struct {
	Version  int              `json:"version"`  // 1
	Findings []doctor.Finding `json:"findings"` // in a fixed order
}

func run(ctx context.Context, g *command.Global, name, output string) error {
	s := doctor.Local(g.System, func() (*x509.CertPool, error) {
		pool, err := trust.TermuxRoots(g.System)
		if pool != nil || err != nil {
			return pool, err
		}
		return x509.SystemCertPool()
	}, stores.StatesFolder())
	s.Host, s.DNS = name, g.DNS.AddrPort
	list := s.Look(ctx)
	if output == "json" {
		if err := g.JSON(DoctorReport{1, list}); err != nil {
			return err
		}
	} else if err := lines(g, list); err != nil {
		return err
	}
	for _, f := range list {
		if f.State == doctor.Fails {
			return exit.Withf(exit.Failed, f.Advice, "%s: %s", f.Name, f.Found)
		}
	}
	return nil
}

// lines prints what was found, and below it what to do.
func lines(g *command.Global, list []doctor.Finding) error {
	for _, f := range list {
		if err := printing.Line(g.Out, "%-13s %-8s %s\n", f.Name, string(f.State), f.Found); err != nil {
			return err
		}
		if f.Advice != "" {
			if err := printing.Line(g.Out, "%-22s %s\n", "", f.Advice); err != nil {
				return err
			}
		}
	}
	return nil
}
