package cmdline

import (
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
)

// placeholders stand for the values of flags in help texts, by the name of the flag; other flags
// use their type.
var placeholders = map[string]string{
	"access-log":        "FILE",
	"access-log-format": "FORM",
	"action":            "ACTION",
	"addressing":        "VERSION",
	"admit":             "WHO",
	"advertise":         "HOST",
	"allow-host":        "HOST",
	"as":                "NAME",
	"assurance":         "NAME",
	"arrival":           "HOW",
	"binding":           "NAME",
	"binding-namespace": "URI",
	"cacert":            "FILE",
	"callback":          "ADDRESS",
	"catalog":           "FILE",
	"cert":              "FILE",
	"client-ca":         "FILE",
	"common-header":     "NAME",
	"common-store":      "URL",
	"config":            "FILE",
	"context":           "WHO",
	"dir":               "DIR",
	"expect":            "PATH=VALUE",
	"extract":           "PATH",
	"fail":              "PERCENT",
	"from":              "FORM",
	"geoip":             "FILE",
	"header":            "'NAME: VALUE'",
	"html":              "FILE",
	"if-revision":       "N",
	"interface":         "NAME",
	"key":               "FILE",
	"keylog":            "FILE",
	"link":              "LINK",
	"listen":            "ADDRESS",
	"log-format":        "FORM",
	"metrics":           "ADDRESS",
	"metrics-host":      "NAME",
	"match":             "PATH",
	"message":           "NAME",
	"messages":          "FILE,…",
	"misbehave":         "HOW",
	"mix":               "KIND=WEIGHT,…",
	"mode":              "MODE",
	"negotiate":         "WHO",
	"node":              "URL",
	"operation":         "NAME",
	"out":               "FILE",
	"output":            "FORM",
	"package":           "NAME",
	"password-file":     "FILE",
	"port":              "PORT,…",
	"record":            "FILE",
	"replies":           "DIR",
	"reply-schema":      "FILE",
	"representation":    "NAME",
	"save":              "FILE",
	"save-dir":          "DIR",
	"schema":            "FILE",
	"seed":              "N",
	"service":           "NAME",
	"soap":              "VERSION",
	"soap-header":       "FILE",
	"soap-rm":           "VERSION",
	"store":             "STORE",
	"store-cacert":      "FILE",
	"store-cert":        "FILE",
	"store-key":         "FILE",
	"store-token":       "FILE",
	"tcp":               "ADDRESS",
	"threshold":         "CONDITION",
	"to":                "TARGET",
	"transport":         "NAME",
	"udp":               "ADDRESS",
	"unchanging-header": "FILE",
	"upstream":          "URL",
	"upstream-cert":     "FILE",
	"upstream-key":      "FILE",
	"ways":              "WAY,…",
	"wrap":              "VERSION",
	"write-streams":     "DIR",
}

var placeholdersOfTypes = map[string]string{
	"duration": "TIME", "float64": "NUMBER", "int": "N", "intSlice": "N,…", "string": "TEXT", "stringArray": "TEXT",
}

// Placeholder stands for the value of a flag in help texts; empty for flags without one.
func Placeholder(f *pflag.Flag) string {
	kind := f.Value.Type()
	switch own := f.Annotations[command.PlaceholderOf]; {
	case len(own) == 1:
		return own[0]
	case kind == "bool":
		return ""
	case placeholders[f.Name] != "":
		return placeholders[f.Name]
	case placeholdersOfTypes[kind] != "":
		return placeholdersOfTypes[kind]
	}
	return kind
}

// Shown returns flags for printing: the types of their values are named as their placeholders.
func Shown(flags *pflag.FlagSet) *pflag.FlagSet {
	out := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		one := *f
		if name := Placeholder(f); name != "" {
			one.Value = shownValue{f.Value, name}
		}
		if one.DefValue == "[]" || one.DefValue == "0s" {
			one.DefValue = "" // a default not worth printing; pflag recognizes those of its own types
		}
		out.AddFlag(&one)
	})
	return out
}

type shownValue struct {
	pflag.Value
	kind string
}

// Type is what pflag prints after the name of a flag.
func (v shownValue) Type() string { return v.kind }
