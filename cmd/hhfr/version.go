package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// versionInfo is what `hhfr version -o json` prints.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Scheme   int    `json:"scheme"`
	Modified bool   `json:"modified,omitempty"`
	Warning  string `json:"warning,omitempty"`
}

func readVersion() versionInfo {
	v := versionInfo{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Scheme: 1}
	if info, ok := debug.ReadBuildInfo(); ok {
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
	if _, err := os.Stat("/system/build.prop"); err == nil && runtime.GOOS == "linux" {
		v.Warning = "this is the linux build on Android: the android build knows its resolver, certificates and system calls"
	}
	return v
}

func newVersion(env Env) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print version, commit and system",
		Example: "  hhfr version\n  hhfr version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if output == "json" {
				return json.NewEncoder(env.Out).Encode(v)
			}
			commit := v.Commit
			if v.Modified {
				commit += "+changes"
			}
			if commit != "" {
				commit = " commit " + commit
			}
			if v.Warning != "" {
				fmt.Fprintln(env.Err, "hhfr: warning: "+v.Warning)
			}
			_, err := fmt.Fprintf(env.Out, "hhfr %s%s %s %s/%s, scheme %d\n", v.Version, commit, v.Go, v.OS, v.Arch, v.Scheme)
			return err
		},
	}
	outputFlag(c, &output, "text", "json")
	return c
}
