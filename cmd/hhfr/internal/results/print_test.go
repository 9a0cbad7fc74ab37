package results

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// Long paths are distinguished by their ends.
func TestShortName(t *testing.T) {
	for _, short := range []string{"", "a.xml", strings.Repeat("ä", 60)} {
		assert.Equal(t, short, shortName(short))
	}
	assert.Equal(t, "a?b?.xml", shortName("a\nb\x7f.xml"))
	long := strings.Repeat("föld/", 20) + "message.xml"
	got := shortName(long)
	assert.Equal(t, 60, utf8.RuneCountInString(got))
	assert.True(t, strings.HasPrefix(got, "…"))
	assert.True(t, strings.HasSuffix(long, strings.TrimPrefix(got, "…")))
}
