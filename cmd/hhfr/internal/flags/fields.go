package flags

import (
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Fields declares -H for commands that make offers.
func Fields(f *pflag.FlagSet, fields *[]string) {
	f.StringArrayVarP(fields, "header", "H", nil,
		"a further HTTP field, Name: value, with the offer and each message; may be given again")
}

// CheckFields returns why fields of -H cannot be sent; nil if they can.
func CheckFields(fields []string) error {
	_, err := ParseFields(fields)
	return err
}

// ParseFields are the fields of -H.
func ParseFields(fields []string) ([]soap.Field, error) {
	list, err := sender.ParseFields(fields)
	if err != nil {
		return nil, exit.Usagef("", "--header: %w", err)
	}
	return list, nil
}
