package binary_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shared"
)

func TestBodiesInAnyChunks(t *testing.T) {
	path := filepath.Join(shared.Dir(t, "corpus", "messages", "soap11", "jtlm"), "publish911.xml")
	message := shared.Read(t, path)
	d := newDirection(t, binary.Options{})
	for i, r := range []io.Reader{bytes.NewReader(message), iotest.HalfReader(bytes.NewReader(message)),
		iotest.OneByteReader(bytes.NewReader(message[:100000])), iotest.DataErrReader(bytes.NewReader(message))} {
		_, got := d.stream(t, nil, r, 4096)
		requireSame(t, message[:len(got)], got, path)
		if i != 2 {
			assert.Len(t, got, len(message))
		}
	}
}

// TestLongerThanTheLearnerLooks: what the learner did not see goes on alike, or as text.
func TestLongerThanTheLearnerLooks(t *testing.T) {
	for _, tail := range []string{"</r></a>", "</r><other x='1'>&amp;</other></a>\n", "", "<"} {
		message := "<a><r>" + strings.Repeat("QUJDRA==", 900_000) + tail
		d := newDirection(t, binary.Options{})
		for range 2 {
			_, got := d.stream(t, nil, strings.NewReader(message), 16000)
			requireSame(t, []byte(message), got, tail)
		}
		rows := "<a>" + strings.Repeat("<r>17</r>", 700_000) + tail
		_, got := d.stream(t, nil, strings.NewReader(rows), 16000)
		requireSame(t, []byte(rows), got, tail)
	}
}

func TestTextRepresentation(t *testing.T) {
	d := newDirection(t, binary.Options{Text: true})
	const head = "GET / HTTP/1.1\r\n\r\n"
	for _, m := range []string{"", "<a>1</a>", strings.Repeat("<a>1</a>", 30000)} {
		gotHead, got := d.send(t, []byte(head), []byte(m), 4096)
		assert.Equal(t, m, string(got))
		assert.Equal(t, head, string(gotHead))
		gotHead, got = d.stream(t, []byte(head), strings.NewReader(m), 4096)
		assert.Equal(t, m, string(got))
		assert.Equal(t, head, string(gotHead))
	}
	assert.Zero(t, d.full)
}

func TestConcurrentSplits(t *testing.T) {
	from := newEnd(binary.Options{})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 200 {
				s := from.coder.Split(uint64(w), 4096, drop)
				assert.NoError(t, s.All(fmt.Appendf(nil, "<k%d><v>%d</v></k%d>", (w+i)%20, i, (w+i)%20)))
				s.Free()
			}
		})
	}
	wg.Wait()
	assert.Len(t, from.store.octets, 20)
}

// utf16 gives ASCII and Latin letters in UTF-16, with a byte order mark.
func utf16(s string, little bool) []byte {
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

// TestEncodings: encodings in which markup is ASCII are split, and UTF-16 in both orders; UTF-32
// comes through all the same.
func TestEncodings(t *testing.T) {
	xml := string(enveloped("<m:a xmlns:m='urn:m'><m:b>z\u00fcrich</m:b><m:c>12</m:c></m:a>"))
	latin := []byte(`<?xml version="1.0" encoding="ISO-8859-1"?>` + strings.ReplaceAll(xml, "\u00fc", "\xfc"))
	for name, m := range map[string][]byte{
		"UTF-8": []byte(xml), "BOM": []byte("\xEF\xBB\xBF" + xml),
		"BOM and declaration": []byte("\xEF\xBB\xBF<?xml version='1.0'?>\n" + xml),
		"ISO-8859-1":          latin, "UTF-16LE": utf16(xml, true), "UTF-16BE": utf16(xml, false),
		"UTF-16LE without a mark":  utf16(xml, true)[2:],
		"UTF-16BE and declaration": utf16(`<?xml version="1.0" encoding="UTF-16"?>`+xml, false),
		"UTF-32": append([]byte{0xFF, 0xFE, 0, 0}, utf16(strings.Join(strings.Split(xml, ""), "\x00")+"\x00",
			true)[2:]...),
	} {
		d := newDirection(t, announcing)
		for range 2 {
			_, got := d.stream(t, nil, bytes.NewReader(m), 4096)
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

// TestMutatedMessages: whatever happens to a real message, it comes through.
func TestMutatedMessages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	d := newDirection(t, binary.Options{})
	paths := shared.Files(t, shared.Testdata(t, "soap"), func(p string) bool { return strings.HasSuffix(p, ".xml") })
	for range shared.Some(3000) {
		m := mutate(rnd, shared.Read(t, paths[rnd.IntN(len(paths))]))
		_, got := d.send(t, nil, m, []int{300, 4096, 16000}[rnd.IntN(3)])
		requireSame(t, m, got, string(m))
	}
}

// TestMutatedMessagesOnTheCorpus is the same for messages of all kinds, each before and after it
// was mutated, so that the one meets the shape of the other.
func TestMutatedMessagesOnTheCorpus(t *testing.T) {
	const most = 64 << 10
	rnd := rand.New(rand.NewPCG(9, 10))
	for _, path := range shared.Files(t, shared.Dir(t, "corpus", "messages"), nil) {
		m := shared.Read(t, path)
		if len(m) == 0 || len(m) > most {
			continue
		}
		d := newDirection(t, binary.Options{})
		d.send(t, nil, m, 4096)
		for range shared.Some(10) {
			changed := mutate(rnd, m)
			_, got := d.send(t, nil, changed, []int{300, 4096, 16000}[rnd.IntN(3)])
			requireSame(t, changed, got, path)
		}
	}
}

// mutate flips bytes, or duplicates, moves, removes or swaps pieces between tags.
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
