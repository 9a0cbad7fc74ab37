package flags

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/wire"
)

// Stages is a flag's list of stages of a stream.
type Stages uint64

// Set parses names separated by commas.
func (s *Stages) Set(text string) error {
	n, err := wire.ParseStages(text)
	*s = Stages(n)
	return err
}

func (s *Stages) String() string { return strings.Join(wire.NamesOf(uint64(*s)), ",") }

// Type is the flag's type in help texts.
func (s *Stages) Type() string { return "STAGES" }

// Without adds --without.
func Without(f *pflag.FlagSet, s *Stages) {
	f.Var(s, "without", "stages to leave out of streams ("+strings.Join(wire.StageNames(), ", ")+
		"), separated by commas")
}
