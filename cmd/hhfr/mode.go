package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// modes are the values of --mode.
func modes() (names []string) {
	for _, m := range negotiate.Modes() {
		names = append(names, string(m))
	}
	return names
}

// modeFlag declares --mode; auto describes that value's effect in the command.
func modeFlag(f *pflag.FlagSet, mode *string, auto string) {
	f.StringVar(mode, "mode", string(negotiate.Auto), "how the session is opened: "+strings.Join(modes(), ", ")+
		"; auto: "+auto)
}

// checkMode returns why a value of --mode is invalid; nil if it is valid.
func checkMode(mode string) error {
	if slices.Contains(modes(), mode) {
		return nil
	}
	return usage(fmt.Errorf("--mode is %s, not %s", strings.Join(modes(), ", "), mode), "")
}
