package flags

import (
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/sender"
)

// Fields declares -H for commands that make offers.
func Fields(f *pflag.FlagSet, fields *[]string) {
	f.StringArrayVarP(fields, "header", "H", nil,
		"a further HTTP field, Name: value, with the offer and each message; may be given again")
}

// CheckFields returns why fields of -H cannot be sent; nil if they can.
func CheckFields(fields []string) error {
	if _, err := sender.ParseFields(fields); err != nil {
		return exit.Usagef("", "--header: %w", err)
	}
	return nil
}
