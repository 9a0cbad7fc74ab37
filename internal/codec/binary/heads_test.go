package binary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/codec/binary"
)

// A head that repeats is cut once, and arrives as it is: among others, and when segments are to be
// shorter than it was cut into.
func TestHeadsThatRepeat(t *testing.T) {
	d := newDirection(t, binary.Options{})
	head := func(name string) []byte {
		return fmt.Appendf(nil, "POST /service HTTP/1.1\r\nX-Name: %s\r\nX-Other: 12 words\r\n\r\n",
			strings.Repeat(name+" of many ", 30))
	}
	body := []byte("<a>1</a>")
	for i := range 20 {
		for _, name := range []string{"one", "one", "two"} {
			most := 4096 >> (i % 2 * 5)
			gotHead, gotBody := d.send(t, head(name), body, most)
			assert.Equal(t, string(head(name)), string(gotHead))
			assert.Equal(t, string(body), string(gotBody))
		}
	}
}
