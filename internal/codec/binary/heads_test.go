package binary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/wire"
)

// A head that repeats is cut once, and arrives as it is: among others, and when segments are to be
// shorter than it was cut into. It is cut again when its lane is another client's, and on another
// lane.
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
	assert.Equal(t, 9, d.repeated, "the second of the same, in long segments, once its shape was made")
	cut := func(lane uint64, name string) (repeats bool) {
		s := d.from.coder.Split(lane, 4096, func(head bool, p wire.Part) error {
			repeats = repeats || head && p.Lasting
			return nil
		})
		defer s.Free()
		require.NoError(t, s.Head(head(name)))
		return repeats
	}
	assert.False(t, cut(0, "one"))
	assert.True(t, cut(0, "one"))
	d.from.coder.Restart(0)
	assert.False(t, cut(0, "one"))
	assert.True(t, cut(0, "one"))
	assert.False(t, cut(4, "one"), "where the head of lane 0 is kept, too")
	assert.False(t, cut(0, "one"))
	before := d.from.coder.Split(0, 4096, func(bool, wire.Part) error { return nil })
	d.from.coder.Restart(0)
	require.NoError(t, before.Head(head("two"))) // a late message of the client before
	before.Free()
	assert.False(t, cut(0, "two"))
}
