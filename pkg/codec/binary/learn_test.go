package binary_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/codec/binary"
)

func envelope(body string) string {
	return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` + body + `</s:Body></s:Envelope>`
}

// TestAKindWidensInFewSteps: optional elements and attributes, arrays of any length, lists that may be empty, choices, and siblings in any order end in one shape, whatever the order in which they come.
func TestAKindWidensInFewSteps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
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
		m := envelope(b.String())
		before := d.full
		_, got := d.send(t, nil, strings.NewReader(m), 4096)
		requireSame(t, []byte(m), got, m)
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
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	for i := range 20 {
		for _, op := range []string{"open", "close"} {
			m := envelope(fmt.Sprintf("<%s><id>%d</id><by>someone who is known</by></%s>", op, i, op))
			_, got := d.send(t, nil, strings.NewReader(m), 4096)
			requireSame(t, []byte(m), got, m)
		}
	}
	require.Len(t, d.from.store.octets, 2)
	for _, octets := range d.from.store.octets {
		assert.NotEqual(t, bytes.Contains(octets, []byte("<open>")), bytes.Contains(octets, []byte("<close>")))
	}
}

// TestWhatNeverRepeatsTravelsAsText: kinds that do not come again are learned until the allowance is spent, then cost a frame's head and no more.
func TestWhatNeverRepeatsTravelsAsText(t *testing.T) {
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	for i := range 2000 {
		m := enveloped(fmt.Sprintf("<k%d><v%d>1</v%d></k%d>", i, i, i, i))
		_, got := d.send(t, nil, strings.NewReader(m), 4096)
		requireSame(t, []byte(m), got, m)
	}
	assert.Less(t, len(d.from.store.octets), 300)
	assert.Greater(t, d.texts, 1500)
	for range 4000 {
		m := enveloped("<k1><v1>2</v1></k1>")
		_, got := d.send(t, nil, strings.NewReader(m), 4096)
		requireSame(t, []byte(m), got, m)
	}
	before := d.texts
	d.send(t, nil, strings.NewReader(enveloped("<new>1</new>")), 4096)
	assert.Equal(t, before, d.texts, "messages that fit have earned a further kind")
}

// TestPasswordsStayOutOfShapes: a value that never changes is content all the same.
func TestPasswordsStayOutOfShapes(t *testing.T) {
	const password = "correct-horse-battery"
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	head := []byte("POST / HTTP/1.1\r\nAuthorization: Basic " + password + "\r\nCookie: id=" + password + "\r\n\r\n")
	for i := range 50 {
		m := envelope(fmt.Sprintf(`<login user="u" secret="%s"><Password>%s</Password><n>%d</n></login>`, password, password, i))
		_, got := d.send(t, head, strings.NewReader(m), 4096)
		requireSame(t, []byte(m), got, m)
	}
	require.NotEmpty(t, d.from.store.octets)
	for _, store := range []*shapes{&d.from.store, &d.to.store} {
		for _, octets := range store.octets {
			assert.NotContains(t, string(octets), password)
		}
	}
}

// TestMutatedMessages: whatever happens to a real message, it comes through.
func TestMutatedMessages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
	paths := shared.Files(t, shared.Testdata(t, "soap"), func(p string) bool { return strings.HasSuffix(p, ".xml") })
	for range 3000 {
		m := mutate(rnd, shared.Read(t, paths[rnd.IntN(len(paths))]))
		_, got := d.send(t, nil, bytes.NewReader(m), []int{300, 4096, 16000}[rnd.IntN(3)])
		requireSame(t, m, got, string(m))
	}
}

// TestMutatedMessagesOnTheCorpus is the same for messages of all kinds, each before and after it was mutated, so that the one meets the shape of the other.
func TestMutatedMessagesOnTheCorpus(t *testing.T) {
	const most = 64 << 10
	rnd := rand.New(rand.NewPCG(9, 10))
	for _, path := range shared.Files(t, shared.Dir(t, "corpus", "messages"), nil) {
		m := shared.Read(t, path)
		if len(m) == 0 || len(m) > most {
			continue
		}
		d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
		d.send(t, nil, bytes.NewReader(m), 4096)
		for range 10 {
			changed := mutate(rnd, m)
			_, got := d.send(t, nil, bytes.NewReader(changed), []int{300, 4096, 16000}[rnd.IntN(3)])
			requireSame(t, changed, got, path)
		}
	}
}

// mutate flips octets, or duplicates, moves, removes or swaps pieces between tags.
func mutate(rnd *rand.Rand, m []byte) []byte {
	m = bytes.Clone(m)
	for range 1 + rnd.IntN(3) {
		a, b := rnd.IntN(len(m)), rnd.IntN(len(m))
		if a > b {
			a, b = b, a
		}
		if i := bytes.IndexByte(m[a:], '<'); i >= 0 && rnd.IntN(4) > 0 {
			a += i
			b = max(a, b)
			if k := bytes.IndexByte(m[b:], '<'); k >= 0 {
				b += k
			}
		}
		piece := bytes.Clone(m[a:b])
		switch rnd.IntN(5) {
		case 0:
			m[a] ^= 1 << rnd.IntN(8)
		case 1:
			m = append(m[:b], append(piece, m[b:]...)...)
		case 2:
			m = append(m[:a], m[b:]...)
		case 3:
			m = append(m[:a], m[b:]...)
			at := rnd.IntN(len(m) + 1)
			m = append(m[:at], append(piece, m[at:]...)...)
		case 4:
			m[a], m[b%len(m)] = m[b%len(m)], m[a]
		}
		if len(m) == 0 {
			return []byte("<a/>")
		}
	}
	return m
}

// TestEncodings: encodings in which markup is ASCII are split, and UTF-16 in both orders; UTF-32 comes through all the same.
func TestEncodings(t *testing.T) {
	utf16 := func(s string, little bool) []byte {
		out := []byte{0xFE, 0xFF}
		if little {
			out = []byte{0xFF, 0xFE}
		}
		for _, r := range s {
			if little {
				out = append(out, byte(r), byte(r>>8))
			} else {
				out = append(out, byte(r>>8), byte(r))
			}
		}
		return out
	}
	xml := envelope("<m:a xmlns:m='urn:m'><m:b>z\u00fcrich</m:b><m:c>12</m:c></m:a>")
	latin := []byte(`<?xml version="1.0" encoding="ISO-8859-1"?>` + strings.ReplaceAll(xml, "\u00fc", "\xfc"))
	for name, m := range map[string][]byte{
		"UTF-8": []byte(xml), "BOM": []byte("\xEF\xBB\xBF" + xml), "BOM and declaration": []byte("\xEF\xBB\xBF<?xml version='1.0'?>\n" + xml),
		"ISO-8859-1": latin, "UTF-16LE": utf16(xml, true), "UTF-16BE": utf16(xml, false), "UTF-16LE without a mark": utf16(xml, true)[2:],
		"UTF-16BE and declaration": utf16(`<?xml version="1.0" encoding="UTF-16"?>`+xml, false), "UTF-32": append([]byte{0xFF, 0xFE, 0, 0}, utf16(strings.Join(strings.Split(xml, ""), "\x00")+"\x00", true)[2:]...),
	} {
		d := direction{from: newEnd(binary.Options{}), to: newEnd(binary.Options{})}
		for range 2 {
			_, got := d.send(t, nil, bytes.NewReader(m), 4096)
			requireSame(t, m, got, name)
		}
		if name == "UTF-32" {
			assert.Equal(t, 2, d.texts)
		} else {
			assert.Zero(t, d.texts, name)
			assert.Less(t, d.content, len(m)/4, name)
		}
	}
}

// TestShapesLongerThanTheirMessages: a shape that grew by long messages of a kind is not sent with a short one of them, neither where it is made nor to another end. That gets a shape of its own, and
// the long one is sent when messages have been worth it.
func TestShapesLongerThanTheirMessages(t *testing.T) {
	long := func(from int) string {
		var b strings.Builder
		for i := range 80 {
			fmt.Fprintf(&b, "<field%x>%d</field%x>", (from+i)*7919, i, (from+i)*7919)
		}
		return envelope(`<m:report xmlns:m="urn:r">` + b.String() + `</m:report>`)
	}
	short := func(i int) string {
		return envelope(fmt.Sprintf(`<m:report xmlns:m="urn:r"><only%d>1</only%d></m:report>`, i, i))
	}
	const head = 100 // of a message in plain SOAP
	first := newEnd(binary.Options{})
	for _, d := range []direction{{from: first, to: newEnd(binary.Options{})}, {from: &end{book: first.book, coder: first.book.Coder(binary.Options{})}, to: newEnd(binary.Options{})}} {
		d.from.coder.PeerLimits(1024, 4<<20)
		most := 0.0
		send := func(m string) (shapes int) {
			before, content := d.full, d.content
			_, got := d.send(t, nil, strings.NewReader(m), 16000)
			requireSame(t, []byte(m), got, m)
			most = max(most, float64(d.full-before+d.content-content)/float64(len(m)+head))
			return d.full - before
		}
		if d.from == first {
			assert.Positive(t, send(long(0)))
			for i := range 20 { // bases that are not like it
				assert.Positive(t, send(envelope(fmt.Sprintf("<other%d>1</other%d>", i, i))))
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
