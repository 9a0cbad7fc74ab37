package binary_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
)

// describing is a direction whose sender has shapes of orders described; asked are the messages
// that it was asked about.
func describing(t *testing.T) (d *direction, described *shape.Shape, asked *[][]byte) {
	described, err := learn.FromMessage(order(1))
	require.NoError(t, err)
	asked = new([][]byte)
	from := newEnd(binary.Options{})
	from.coder = from.book.Coder(binary.Options{Describe: func(message []byte) bool {
		*asked = append(*asked, bytes.Clone(message))
		if !bytes.Contains(message, []byte("<order>")) {
			return false
		}
		_, err := from.book.Keep(described)
		return err == nil
	}})
	return between(t, from, newEnd(binary.Options{}), limits), described, asked
}

func order(i int) []byte {
	return enveloped(fmt.Sprintf("<order><n>%d</n><who>somebody</who><what>this and that, and so on</what></order>", i))
}

// A description is asked for the shape of a message that is whole and of no known kind; where it
// has none, the message is learned from.
func TestDescribe(t *testing.T) {
	d, described, asked := describing(t)
	d.carry(t, order(2))
	d.carry(t, order(3))
	require.Equal(t, [][]byte{order(2)}, *asked, "the kind is known then")
	assert.Equal(t, binary.CoderCounts{}, d.from.coder.Counts(), "nothing was learned, and nothing travelled as text")
	assert.Contains(t, d.to.store.octets, binary.Fingerprint(described.Fingerprint()))

	other := enveloped("<other>1</other>")
	d.carry(t, other)
	require.Equal(t, [][]byte{order(2), other}, *asked)
	assert.Equal(t, int64(1), d.from.coder.Counts().Learned)
	d.carry(t, other)
	require.Len(t, *asked, 2)
}

// What is described and does not fit is learned from all the same.
func TestDescriptionsThatDoNotFit(t *testing.T) {
	d, _, asked := describing(t)
	m := enveloped("<order>nothing of what was said of it</order>")
	d.carry(t, m)
	d.carry(t, m)
	assert.Len(t, *asked, 1)
	assert.Equal(t, binary.CoderCounts{Learned: 1}, d.from.coder.Counts())
}

// A described shape that is long for its message is not sent with it: the message is learned from.
func TestDescriptionsLongerThanTheirMessages(t *testing.T) {
	var all strings.Builder
	for i := range 50 {
		fmt.Fprintf(&all, "<field%d>1</field%d>", i*7919, i*7919)
	}
	long, err := learn.NewFamily(enveloped("<order><n>1</n>"+all.String()+"</order>"), true)
	require.NoError(t, err)
	short, err := learn.NewFamily(enveloped("<order><n>1</n></order>"), true)
	require.NoError(t, err)
	wide := long.Widen(short)
	require.NotNil(t, wide)
	described, err := wide.Shape()
	require.NoError(t, err)
	from := newEnd(binary.Options{})
	from.coder = from.book.Coder(binary.Options{Describe: func([]byte) bool {
		_, err := from.book.Keep(described)
		return err == nil
	}})
	d := between(t, from, newEnd(binary.Options{}), limits)
	d.carry(t, enveloped("<order><n>2</n></order>"))
	assert.Equal(t, binary.CoderCounts{Learned: 1}, d.from.coder.Counts())
	assert.Less(t, d.full, len(described.Octets())/4)
}

// A message that was cut before its kind was known has its kind described when it is whole.
func TestDescribeBehindAFlush(t *testing.T) {
	d, described, asked := describing(t)
	for i := range 2 {
		d.flushed(t, order(i), 4096, always, 90)
		require.Equal(t, [][]byte{order(0)}, *asked, "as a whole, and once")
		assert.Equal(t, binary.CoderCounts{Texts: 1}, d.from.coder.Counts(), "message %d", i)
	}
	assert.Contains(t, d.to.store.octets, binary.Fingerprint(described.Fingerprint()))
}

// Nobody is asked about the beginning of a message, nor where messages travel as text.
func TestDescribeWholeMessagesOnly(t *testing.T) {
	asked := 0
	count := func([]byte) bool {
		asked++
		return false
	}
	d := newDirection(t, binary.Options{Describe: count})
	long := enveloped("<list>" + string(bytes.Repeat([]byte("<row>1</row>"), 600_000)) + "</list>")
	_, got := d.stream(t, nil, bytes.NewReader(long), 16000)
	requireSame(t, long, got, "long")
	assert.Positive(t, d.full, "it was learned from")
	assert.Zero(t, asked)
	text := newDirection(t, binary.Options{Text: true, Describe: count})
	text.carry(t, order(1))
	text.flushed(t, order(1), 4096, always, 20)
	assert.Zero(t, asked)
}
