package workload_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/pkg/workload"
)

// Of each message 1.5 KB of header blocks are those of the first one, and 300 bytes are not.
func TestFixedHeaders(t *testing.T) {
	list := first(workload.FixedHeaders(1), 100)
	blocks := func(m []byte) (fixed, other string) {
		_, rest, _ := strings.Cut(string(m), "<soapenv:Header>")
		header, _, _ := strings.Cut(rest, "</soapenv:Header>")
		at := strings.Index(header, "<wsa:MessageID")
		return header[:at], header[at:]
	}
	fixed, _ := blocks(list[0])
	assert.InDelta(t, 1500, len(fixed), 15)
	for _, m := range list {
		wellFormed(t, m)
		same, other := blocks(m)
		assert.Equal(t, fixed, same)
		assert.InDelta(t, 300, len(other), 15)
	}
	assert.Equal(t, list[:3], first(workload.FixedHeaders(1), 3))
	assert.NotEqual(t, list[0], first(workload.FixedHeaders(2), 1)[0])
	for _, name := range workload.FixedHeaderNames() {
		_, local, _ := strings.Cut(name, "}")
		assert.Contains(t, fixed, ":"+local+" ")
	}
}
