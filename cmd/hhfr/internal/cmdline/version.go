package cmdline

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/internal/resolve"
)

// VersionInfo is what `hhfr version -o json` prints.
type VersionInfo struct {
	Version  string `json:"version"`            // of the module, or devel
	Commit   string `json:"commit,omitempty"`   // of the source
	Go       string `json:"go"`                 // the Go release it was built with
	OS       string `json:"os"`                 // the system it was built for
	Arch     string `json:"arch"`               // the processor it was built for
	Scheme   int    `json:"scheme"`             // version of the wire format
	Modified bool   `json:"modified,omitempty"` // true if the source had changes beyond the commit
	Warning  string `json:"warning,omitempty"`  // what is wrong with this build on this machine
}

// ReadVersion is what this program knows of its own build.
func ReadVersion(system resolve.System) VersionInfo {
	info, _ := debug.ReadBuildInfo() // nil: the program has none
	return VersionOf(info, system)
}

// VersionOf is what a build says of itself, on a system; nil: it says nothing.
func VersionOf(info *debug.BuildInfo, system resolve.System) VersionInfo {
	v := VersionInfo{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Scheme: 1}
	if info != nil {
		if m := info.Main.Version; m != "" && m != "(devel)" {
			v.Version = m
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if system.GOOS == "linux" && system.Android() {
		v.Warning = "this is the linux build on Android: the android build knows Android's certificates " +
			"and which system calls it forbids"
	}
	return v
}

// Line is the text for people.
func (v VersionInfo) Line() string {
	commit := v.Commit
	if v.Modified {
		commit += "+changes"
	}
	if commit != "" {
		commit = " commit " + commit
	}
	return fmt.Sprintf("%s%s %s %s/%s, scheme %d", v.Version, commit, v.Go, v.OS, v.Arch, v.Scheme)
}

// NewVersion is the command that prints it.
func NewVersion(g *command.Global) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and system",
		Example: "  hhfr version\n  hhfr version -o json",
		Args:    command.Takes(),
		RunE: func(*cobra.Command, []string) error {
			v := ReadVersion(g.System)
			if output == "json" {
				return json.NewEncoder(g.Out).Encode(v)
			}
			if v.Warning != "" {
				g.Warn("%s", v.Warning)
			}
			_, err := fmt.Fprintln(g.Out, "hhfr "+v.Line())
			return err
		},
	}
	command.OutputFlag(c, &output)
	return c
}
