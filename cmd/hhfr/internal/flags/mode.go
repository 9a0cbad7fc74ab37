package flags

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Modes are the values of --mode.
func Modes() (names []string) {
	for _, m := range negotiate.Modes() {
		names = append(names, string(m))
	}
	return names
}

// Mode declares --mode; auto describes that value's effect in the command.
func Mode(f *pflag.FlagSet, mode *string, auto string) {
	f.StringVar(mode, "mode", string(negotiate.Auto), "how the session is opened: "+strings.Join(Modes(), ", ")+
		"; auto: "+auto)
}

// CheckMode returns why a value of --mode is invalid; nil if it is valid.
func CheckMode(mode string) error {
	if slices.Contains(Modes(), mode) {
		return nil
	}
	return exit.Usagef("", "--mode is %s, not %s", strings.Join(Modes(), ", "), mode)
}
