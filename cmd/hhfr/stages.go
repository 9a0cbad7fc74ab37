package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/wire"
)

// stages is a flag's list of stages of a stream.
type stages uint64

// Set parses names separated by commas.
func (s *stages) Set(text string) error {
	n, err := wire.ParseStages(text)
	*s = stages(n)
	return err
}

func (s *stages) String() string {
	var names []string
	for i, name := range wire.StageNames() {
		if *s>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Type is the flag's type in help texts.
func (s *stages) Type() string { return "STAGES" }

// withoutFlag adds --without. more is added to its help.
func withoutFlag(f *pflag.FlagSet, s *stages, more string) {
	f.Var(s, "without", "stages to leave out of streams ("+strings.Join(wire.StageNames(), ", ")+
		"), separated by commas"+more)
}
