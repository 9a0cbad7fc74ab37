package binary_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/shared"
)

// unit is how many bytes a flush may leave behind, since they are the beginning of a character:
// in UTF-16, half of one.
func unit(message []byte) int {
	if len(message) > 1 && (message[0] == 0 || message[1] == 0 || message[0] >= 0xFE) {
		return 2
	}
	return 1
}

// flushed has a message travel that is flushed at places that ascend. Behind a flush with force
// all that was written is there, behind another a beginning of it.
func (d *direction) flushed(t testing.TB, message []byte, most int, force func(i int) bool, cuts ...int) {
	t.Helper()
	m := d.begin(t, 0, most)
	written, width := 0, unit(message)
	for i, cut := range cuts {
		m.write(message[written:cut])
		written = cut
		before := len(m.body)
		m.flush(force(i))
		require.LessOrEqual(t, len(m.body), cut)
		require.Equal(t, string(message[:len(m.body)]), string(m.body), "behind %d octets", cut)
		require.GreaterOrEqual(t, len(m.body), before)
		if force(i) {
			require.GreaterOrEqual(t, len(m.body), cut-cut%width)
		}
	}
	m.write(message[written:])
	m.close()
	requireSame(t, message, m.body, fmt.Sprintf("%q flushed at %d", message[:min(len(message), 1000)], cuts))
}

func always(int) bool { return true }
func never(int) bool  { return false }

// ways are those to force flushes.
var ways = map[string]func(int) bool{
	"with force": always,
	"without":    never,
	"in turn":    func(i int) bool { return i%2 == 1 },
}

// everywhere are all places of a message.
func everywhere(message []byte) (cuts []int) {
	for at := range len(message) + 1 {
		cuts = append(cuts, at)
	}
	return cuts
}

// places are some of a message.
func places(rnd *rand.Rand, message []byte, n int) (cuts []int) {
	for at := rnd.IntN(len(message) + 1); at <= len(message); at += rnd.IntN(2*len(message)/n + 2) {
		cuts = append(cuts, at)
	}
	return cuts
}

// small are messages of a few hundred bytes.
func small() map[string][]byte {
	const declaration = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	order := `<o:order xmlns:o="urn:o" id="a17" when="2006-06-11T04:26:08.318Z">` +
		`<o:n>1234567</o:n><price>-12.50</price>` +
		`<ok>true</ok><data>SGVsbG8sIHdvcmxkIQ==</data><key>6ba7b810-9dad-11d1-80b4-00c04fd430c8</key>` +
		`<note>some &amp; text</note></o:order>`
	rows := `<list><row><a>1</a><b>x</b></row><row><a>22</a><b>yy</b></row><row><a>333</a><b/></row></list>` +
		`<any><x>1</x><y/></any>`
	return map[string][]byte{
		"values":   append([]byte(declaration), enveloped(order)...),
		"rows":     enveloped(rows),
		"not much": []byte("<a>1</a>"),
		"no XML":   []byte("nothing that is markup, at all"),
		"UTF-16LE": utf16(string(enveloped(rows)), true),
		"UTF-16BE": utf16(string(enveloped(order)), false),
		"with a BOM": append([]byte("\xEF\xBB\xBF"+declaration),
			enveloped("<a>z\u00fcrich, \u65e5\u672c</a><a>x</a>")...),
		"nothing": nil,
	}
}

// What was flushed is there, wherever that was: of a kind that is known, and of one that is not.
func TestFlushAnywhere(t *testing.T) {
	for name, message := range small() {
		for way, force := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				known := newDirection(t, binary.Options{})
				known.carry(t, message)
				known.carry(t, message)
				texts := known.texts
				for i, at := range everywhere(message) {
					if i%5 >= shared.Some(5) {
						continue
					}
					known.flushed(t, message, 300+at, force, at)
					if at%3 == 0 {
						known.flushed(t, message, 300, force, at, at, min(at+1, len(message)), min(at+2, len(message)))
					}
					unknown := newDirection(t, binary.Options{})
					unknown.flushed(t, message, 4096, force, at)
				}
				known.flushed(t, message, 4096, force, everywhere(message)...)
				newDirection(t, binary.Options{}).flushed(t, message, 4096, force, everywhere(message)...)
				newDirection(t, binary.Options{Text: true}).flushed(t, message, 4096, force, everywhere(message)...)
				known.carry(t, message)
				if name == "values" || name == "rows" {
					assert.Equal(t, way != "without", known.texts > texts, "only what must go goes as text")
					before := known.texts
					known.carry(t, message)
					assert.Equal(t, before, known.texts, "cut messages do no harm to their kind")
				}
			})
		}
	}
}

// Values longer than segments, and than what is looked at before a shape is chosen.
func TestFlushInLongValues(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 150_000)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	octets := base64.StdEncoding.EncodeToString(noise)
	text := strings.Repeat("words, and more words; ", 9000)
	for name, body := range map[string]string{
		"base64":      "<d>" + octets + "</d>",
		"hexadecimal": fmt.Sprintf("<d>%x</d>", noise),
		"text":        "<t>" + text + "</t>",
		"rows":        strings.Repeat("<row><a>17</a><b>of a kind</b></row>", 8000),
	} {
		message := enveloped(body)
		for encoding, message := range map[string][]byte{"UTF-8": message, "UTF-16": utf16(string(message), true)} {
			for way, force := range ways {
				t.Run(name+" "+encoding+" "+way, func(t *testing.T) {
					known := newDirection(t, binary.Options{})
					known.carry(t, message)
					for range shared.Some(4) {
						known.flushed(t, message, 300+rnd.IntN(16000), force, places(rnd, message, 10)...)
					}
					newDirection(t, binary.Options{}).flushed(t, message, 4096, force, places(rnd, message, 10)...)
				})
			}
		}
	}
}

func TestFlushOnTheCorpus(t *testing.T) {
	const most = 64 << 10
	rnd := rand.New(rand.NewPCG(3, 4))
	d := newDirection(t, binary.Options{})
	for _, path := range shared.SomeMessages(t) {
		message := shared.Read(t, path)
		if len(message) > most {
			message = message[:most]
		}
		unknown := newDirection(t, binary.Options{})
		for _, force := range ways {
			unknown.flushed(t, message, 300+rnd.IntN(16000), force, places(rnd, message, 4)...)
			d.flushed(t, message, 300+rnd.IntN(16000), force, places(rnd, message, 6)...)
		}
		d.carry(t, message)
		d.flushed(t, message, 4096, never, places(rnd, message, 6)...)
	}
}

// Where the peer keeps no shape as long as those needed, the encoder makes text of content: what
// was flushed is there all the same.
func TestFlushWithoutANumber(t *testing.T) {
	none := limits
	none.MaxShapeBytes = 8
	for name, message := range small() {
		t.Run(name, func(t *testing.T) {
			d := between(t, newEnd(binary.Options{}), newEnd(binary.Options{}), none)
			d.carry(t, message)
			d.carry(t, message)
			for _, force := range ways {
				for at := 0; at < len(message); at += 3 {
					d.flushed(t, message, 300, force, at, at, at+1)
				}
				d.flushed(t, message, 300, force, everywhere(message)...)
			}
			assert.Zero(t, d.full+d.references)
		})
	}
}

// A message that is flushed by pauses goes on under its shape.
func TestFlushWithoutForceKeepsTheShape(t *testing.T) {
	message := enveloped("<list>" + strings.Repeat("<row><a>17</a><b>of a kind</b></row>", 12) + "</list>")
	for at := range message {
		d := newDirection(t, binary.Options{})
		d.carry(t, message)
		d.flushed(t, message, 4096, never, at)
		assert.Zero(t, d.texts, "flushed at %d", at)
	}
}

// A message of an unknown kind that is cut travels as text, and is learned from when it is
// whole: the next of its kind has a shape.
func TestUnknownKindsThatAreCutAreLearned(t *testing.T) {
	for name, opt := range map[string]binary.Options{
		"nobody describes it": {},
		"nor who could":       {Describe: func([]byte) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			message := func(i int) []byte {
				const order = `<m:order xmlns:m="urn:orders"><m:n>%d</m:n><m:who>somebody</m:who></m:order>`
				return enveloped(fmt.Sprintf(order, i))
			}
			d := newDirection(t, opt)
			for i, m := range [][]byte{message(1), message(2)} {
				d.flushed(t, m, 4096, always, 115)
				assert.Equal(t, binary.CoderCounts{Learned: 1, Texts: 1}, d.from.coder.Counts(), "message %d", i)
			}
			assert.Equal(t, 2, d.texts, "what was written before the flush, and the rest")
			assert.Positive(t, d.full)
			d.carry(t, message(3))
			assert.Equal(t, 2, d.texts)

			wider := enveloped(`<m:order xmlns:m="urn:orders"><m:n>4</m:n><m:new/><m:who>somebody</m:who></m:order>`)
			other := newDirection(t, opt)
			other.carry(t, message(1))
			m := other.begin(t, 0, 4096)
			m.write(wider[:20])
			m.flush(true)
			m.write(wider[20:])
			m.close()
			assert.Equal(t, binary.CoderCounts{Learned: 1, Widened: 1, Texts: 1}, other.from.coder.Counts())
			texts := other.texts
			other.carry(t, wider)
			other.carry(t, message(5))
			assert.Equal(t, texts, other.texts)
			assert.Len(t, other.from.store.octets, 2)
		})
	}
}

// One that never ends, or is too long to learn from, is not kept.
func TestCutMessagesAreKeptUpToABound(t *testing.T) {
	d := newDirection(t, binary.Options{})
	m := d.begin(t, 0, 16000)
	m.took = func([]byte) { m.frames = nil }
	m.write([]byte("<a>"))
	m.flush(true)
	row := bytes.Repeat([]byte("<r>17</r>"), 7000)
	for range 100 {
		m.write(row)
	}
	m.write([]byte("</a>"))
	m.close()
	assert.Zero(t, d.from.coder.Counts().Learned)
	assert.Empty(t, d.from.store.octets)
}
