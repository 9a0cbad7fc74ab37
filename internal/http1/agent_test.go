package http1

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNameAgent(t *testing.T) {
	for _, c := range []struct{ has, want http.Header }{
		{http.Header{}, http.Header{"User-Agent": {"hhfr/devel"}}},
		{http.Header{"User-Agent": {"camera"}}, http.Header{"User-Agent": {"camera"}}},
		{http.Header{"User-Agent": {""}}, http.Header{"User-Agent": {""}}},
		{http.Header{"user-AGENT": {"camera"}}, http.Header{"user-AGENT": {"camera"}, "User-Agent": nil}},
	} {
		NameAgent(c.has)
		assert.Equal(t, c.want, c.has)
	}
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.3.0-rc.1": "v1.3.0-rc.1", "(devel)": "devel", "": "devel",
		"v0.0.0-20261122063300-28f07a3abcde": "devel", "v1.2.4-0.20261122063300-28f07a3abcde": "devel",
		"v1.2.3+dirty": "devel",
	} {
		assert.Equal(t, want, release(version), version)
	}
}
