package binary_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
)

// The shape of a body that is shorter than it goes with the second of its kind.
func TestShapesOfShortBodiesComeWithTheSecond(t *testing.T) {
	d := newDirection(t, announcing)
	for i, want := range []bool{false, true, true} {
		d.carry(t, fmt.Appendf(nil, "<a><b>%d</b></a>", i))
		assert.Equal(t, want, d.full > 0)
	}
	assert.Equal(t, 1, d.texts)
}

// TestAKindWidensInFewSteps: optional elements and attributes, arrays of any length, lists that may
// be empty, choices, and siblings in any order end in one shape, whatever the order in which they
// come.
func TestAKindWidensInFewSteps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	d := newDirection(t, binary.Options{})
	late := 0
	for i := range 300 {
		var b strings.Builder
		b.WriteString(`<m:report xmlns:m="urn:r"`)
		if rnd.IntN(2) == 0 {
			fmt.Fprintf(&b, ` id="%d"`, rnd.IntN(1000))
		}
		b.WriteString(">")
		if rnd.IntN(3) == 0 {
			fmt.Fprintf(&b, "<note>word%d</note>", i)
		}
		if rnd.IntN(4) == 0 {
			b.WriteString("<flag/>")
		}
		b.WriteString("<list>")
		for range rnd.IntN(4) {
			fmt.Fprintf(&b, "<item><k>%d</k>", rnd.IntN(100))
			if rnd.IntN(2) == 0 {
				b.WriteString("<v>x</v>")
			}
			b.WriteString("</item>")
		}
		b.WriteString("</list>")
		b.WriteString([]string{"<ok/>", "<error>no such</error>", "<later><after>5</after></later>"}[rnd.IntN(3)])
		b.WriteString("<any>")
		for range rnd.IntN(5) {
			b.WriteString([]string{"<x>1</x>", "<y>a</y>", "<z/>"}[rnd.IntN(3)])
		}
		b.WriteString("</any></m:report>")
		m := enveloped(b.String())
		before := d.full
		d.carry(t, m)
		if i >= 100 && d.full > before {
			late++
		}
	}
	assert.LessOrEqual(t, late, 1)
	assert.Less(t, len(d.from.store.octets), 20)
	assert.Zero(t, d.texts)
}

// TestOperationsAreKinds: what stands in a Body is no choice; each operation has shapes of its own.
func TestOperationsAreKinds(t *testing.T) {
	d := newDirection(t, binary.Options{})
	for i := range 20 {
		for _, op := range []string{"open", "close"} {
			m := enveloped(fmt.Sprintf("<%s><id>%d</id><by>someone who is known</by></%s>", op, i, op))
			d.carry(t, m)
		}
	}
	require.Len(t, d.from.store.octets, 2)
	for _, octets := range d.from.store.octets {
		assert.NotEqual(t, bytes.Contains(octets, []byte("<open>")), bytes.Contains(octets, []byte("<close>")))
	}
}

// TestWhatNeverRepeatsTravelsAsText: kinds that do not come again are learned until the allowance
// is spent, then cost a frame's head and no more.
func TestWhatNeverRepeatsTravelsAsText(t *testing.T) {
	d := newDirection(t, binary.Options{})
	for i := range 2000 {
		m := enveloped(fmt.Sprintf("<k%d><v%d>1</v%d></k%d>", i, i, i, i))
		d.carry(t, m)
	}
	assert.Less(t, len(d.from.store.octets), 300)
	assert.Greater(t, d.texts, 1500)
	for range 4000 {
		m := enveloped("<k1><v1>2</v1></k1>")
		d.carry(t, m)
	}
	before := d.texts
	d.carry(t, enveloped("<new>1</new>"))
	assert.Equal(t, before, d.texts, "messages that fit have earned a further kind")
}

// TestPasswordsStayOutOfShapes: a value that never changes is content all the same.
func TestPasswordsStayOutOfShapes(t *testing.T) {
	const password = "correct-horse-battery"
	d := newDirection(t, binary.Options{})
	head := []byte("POST / HTTP/1.1\r\nAuthorization: Basic " + password + "\r\nCookie: id=" + password + "\r\n\r\n")
	for i := range 50 {
		m := enveloped(fmt.Sprintf(`<login user="u" secret="%s"><Password>%s</Password><n>%d</n></login>`, password,
			password, i))
		gotHead, got := d.send(t, head, m, 4096)
		requireSame(t, head, gotHead, "head")
		requireSame(t, m, got, string(m))
	}
	require.NotEmpty(t, d.from.store.octets)
	for _, store := range []*shapes{&d.from.store, &d.to.store} {
		for _, octets := range store.octets {
			assert.NotContains(t, string(octets), password)
		}
	}
}

// TestShapesLongerThanTheirMessages: a shape that grew by long messages of a kind is not sent with
// a short one of them, neither where it is made nor to another end. That gets a shape of its own,
// and the long one is sent when messages have been worth it.
func TestShapesLongerThanTheirMessages(t *testing.T) {
	long := func(from int) []byte {
		var b strings.Builder
		for i := range 80 {
			fmt.Fprintf(&b, "<field%x>%d</field%x>", (from+i)*7919, i, (from+i)*7919)
		}
		return enveloped(`<m:report xmlns:m="urn:r">` + b.String() + `</m:report>`)
	}
	short := func(i int) []byte {
		return enveloped(fmt.Sprintf(`<m:report xmlns:m="urn:r"><only%d>1</only%d></m:report>`, i, i))
	}
	const head = 100 // of a message in plain SOAP
	first := newEnd(announcing)
	again := &end{book: first.book, coder: first.book.Coder(announcing)}
	for _, d := range []*direction{between(t, first, newEnd(announcing), limits), between(t, again,
		newEnd(announcing), limits)} {
		most := 0.0
		send := func(m []byte) (shapes int) {
			before, content := d.full, d.content
			_, got := d.send(t, nil, m, 16000)
			requireSame(t, m, got, string(m))
			most = max(most, float64(d.full-before+d.content-content)/float64(len(m)+head))
			return d.full - before
		}
		if d.from == first {
			assert.Positive(t, send(long(0)))
			for i := range 20 { // bases that are not like it
				assert.Positive(t, send(enveloped(fmt.Sprintf("<other%d>1</other%d>", i, i))))
			}
		}
		for i := range 5 {
			assert.Positive(t, send(short(i)))
			assert.Zero(t, send(short(i)), "a short one comes again")
		}
		assert.Less(t, most, 1.0)
		assert.LessOrEqual(t, send(long(0)), 1500)
		assert.Zero(t, send(long(0)))
		assert.Less(t, most, 1.0)
	}
}
