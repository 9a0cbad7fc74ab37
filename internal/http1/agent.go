package http1

import (
	"runtime/debug"
	"strings"
	"sync"
)

const module = "github.com/hhfr/hhfr"

// agent is the User-Agent of this module's requests.
var agent = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "hhfr/devel"
	}
	version := info.Main.Version
	if info.Main.Path != module {
		for _, d := range info.Deps {
			if d.Path == module {
				version = d.Version
			}
		}
	}
	return "hhfr/" + release(version)
})

// release is a version for others to see: anything between two releases is devel.
func release(version string) string {
	if !strings.HasPrefix(version, "v") || strings.Count(version, "-") > 1 || strings.ContainsRune(version, '+') {
		return "devel"
	}
	return version
}

// NameAgent sets the User-Agent among the fields of a request, unless it has one, in any case.
func NameAgent(fields map[string][]string) {
	for name := range fields {
		if strings.EqualFold(name, "User-Agent") {
			if _, canonical := fields["User-Agent"]; !canonical {
				fields["User-Agent"] = nil // net/http would add its own
			}
			return
		}
	}
	fields["User-Agent"] = []string{agent()}
}
