package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/internal/shared"
)

// ownTexts are flags that mean something else at another command, or have another value there that
// their help texts say, and why.
var ownTexts = map[string]string{
	"advertise":    "a server names a host for streams; stream names its own, for replies of --soap-rm",
	"allow-host":   "of streams that answers name; at serve of replies that clients want elsewhere",
	"cert":         "a client's certificate, or a server's, which turns its address to TLS",
	"check":        "of a proxy's settings; of the values in a store",
	"expect":       "of the values of a reply; of the text of an answer",
	"link":         "estimate computes all links unless it is given one",
	"listen":       "an address; at stream, to wait for messages of the server",
	"match":        "an XPath in envelopes; at serve a path of values",
	"max-per-peer": "a proxy's 0 goes by --max-conns, which others do not have",
	"message":      "a name in a description; at bench load a file",
	"mode":         "auto tries other modes at each command",
	"operation":    "of messages; of the code that is made",
	"output":       "not all commands have all forms",
	"record":       "a proxy records its link alone, not its clients and servers",
	"remember":     "0 lets stream ask each time; a proxy, which asks beside its calls, refuses it",
	"repeat":       "of the FILEs; of what is measured",
	"require-hhfr": "a command fails; a proxy refuses calls",
	"schema":       "of messages; at schema check the FILE itself",
	"seed":         "of samples; of requests and times",
	"service":      "of an emulated session; of a server",
	"soap-rm":      "stream sends sequences, serve takes them, a proxy makes some of what clients send",
	"stats":        "in place of messages; behind each message",
	"store":        "a server has one of its own unless it is told one; transcode writes shapes there alone",
	"timeout":      "of the run; of the negotiation; of each attempt to connect; of a request",
	"to":           "a service; a form of output",
	"transport":    "a proxy has no UDP, and bench no plain SOAP",
	"ways":         "of sessions; of the requests of many clients",
}

// TestOneTextForEachFlag: flags of one name have one help text at all commands, unless they are
// listed with a reason.
func TestOneTextForEachFlag(t *testing.T) {
	texts := map[string]map[string][]string{} // commands by flag and help text
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if texts[f.Name] == nil {
				texts[f.Name] = map[string][]string{}
			}
			texts[f.Name][f.Usage] = append(texts[f.Name][f.Usage], c.CommandPath())
		})
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(newRoot(&command.Global{}))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var all []string
		for text, commands := range texts[name] {
			all = append(all, strings.Join(commands, ", ")+": "+text)
		}
		if ownTexts[name] == "" {
			assert.Len(t, all, 1, "--%s has several help texts:\n%s", name, strings.Join(all, "\n"))
			continue
		}
		assert.Greater(t, len(all), 1, "--%s is listed, and has one help text", name)
	}
	for name := range ownTexts {
		assert.Contains(t, texts, name, "no command has --%s", name)
	}
}

// declaration is where a flag is declared in Go: the method of a set of flags, and its name.
var declaration = regexp.MustCompile(
	`\.(?:\w+Var|Var|StringVarP|StringArrayVarP|BoolVarP)\(\s*[&\w.()]+,\s*"([a-z-]+)"`)

// TestFlagsAreDeclaredOnce: what has one help text at several commands is declared in one place.
func TestFlagsAreDeclaredOnce(t *testing.T) {
	places := map[string][]string{}
	folder := shared.Testdata(t, "..", "cmd", "hhfr", "internal")
	for _, file := range shared.Files(t, folder, func(path string) bool {
		return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
	}) {
		for _, found := range declaration.FindAllSubmatch(shared.Read(t, file), -1) {
			name := string(found[1])
			places[name] = append(places[name], file)
		}
	}
	require.Greater(t, len(places), 80, "the declarations were not found")
	for name, files := range places {
		if ownTexts[name] == "" {
			assert.Len(t, files, 1, "--%s is declared more than once", name)
		}
	}
}
