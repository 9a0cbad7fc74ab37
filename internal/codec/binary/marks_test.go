package binary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/codec/binary"
)

// beginningAlike is message i of kinds that take turns and differ behind a value, whose rows are as
// many as they may be.
func beginningAlike(kinds, i int) []byte {
	k := i % kinds
	row := fmt.Sprintf("<row%d><a>%d</a><b>x</b></row%d>", k, i, k)
	return enveloped(fmt.Sprintf(`<get><id>%d</id><m:kind%d xmlns:m='urn:"k"'>%s</m:kind%d></get>`, i, k,
		strings.Repeat(row, 1+i%3), k))
}

// TestKindsThatBeginAlikeAreFound: however many shapes begin alike, a message is cut by that of its
// kind, and nothing is learned of it again.
func TestKindsThatBeginAlikeAreFound(t *testing.T) {
	const kinds = 200 // more than are tried
	d := newDirection(t, binary.Options{})
	pass := func(n int) {
		for i := range kinds {
			d.carry(t, beginningAlike(kinds, n*kinds+i))
		}
	}
	for n := range 5 {
		pass(n)
	}
	before, content := d.from.coder.Counts(), d.content
	pass(5)
	assert.Equal(t, before, d.from.coder.Counts())
	assert.Less(t, d.content-content, 25*kinds)
}

// TestKindsThatComeAgainAreLearned: whatever was learned before.
func TestKindsThatComeAgainAreLearned(t *testing.T) {
	const kinds = 1500
	message := func(i int) []byte {
		k := i % kinds
		return enveloped(fmt.Sprintf("<get%d><a%d>%d</a%d></get%d>", k, k, i, k, k))
	}
	d := newDirection(t, binary.Options{})
	for i := range 2 * kinds {
		d.carry(t, message(i))
	}
	before := d.from.coder.Counts()
	assert.GreaterOrEqual(t, before.Learned, int64(kinds))
	for i := range kinds {
		d.carry(t, message(2*kinds+i))
	}
	assert.Equal(t, before, d.from.coder.Counts())
}

// What comes again and cannot be learned is looked at a second time, and never more.
func TestWhatCannotBeLearnedIsTriedOnce(t *testing.T) {
	d := newDirection(t, binary.Options{})
	for i := range 300 { // what is learned at first
		d.carry(t, enveloped(fmt.Sprintf("<k%d><v%d>1</v%d></k%d>", i, i, i, i)))
	}
	before := d.from.coder.Counts()
	deep := strings.Repeat("<deep>", 60) + "a value" + strings.Repeat("</deep>", 60)
	for range 4 {
		d.carry(t, []byte(deep))
	}
	after := d.from.coder.Counts()
	assert.Equal(t, before.Learned, after.Learned)
	assert.Equal(t, before.Texts+4, after.Texts)
	d.carry(t, enveloped("<k299><v299>2</v299></k299>"))
	assert.Equal(t, after.Learned+1, d.from.coder.Counts().Learned, "the second of its kind")
}
