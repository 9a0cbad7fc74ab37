package http1

import (
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
)

const module = "github.com/hhfr/hhfr"

// agent is what requests of this module call themselves.
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

// release is a version as others are to see it: what lies between two releases is devel.
func release(version string) string {
	if !strings.HasPrefix(version, "v") || strings.Count(version, "-") > 1 || strings.ContainsRune(version, '+') {
		return "devel"
	}
	return version
}

// NameAgent gives a request its User-Agent, unless it has one, in whatever case.
func NameAgent(fields http.Header) {
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
