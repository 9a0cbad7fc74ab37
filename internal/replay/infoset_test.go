package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/replay"
)

// envelope is one with this in its Body.
func envelope(body string) []byte {
	return []byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" ` +
		`xmlns:a="http://www.w3.org/2005/08/addressing"><s:Header>` +
		`<a:MessageID>urn:uuid:0b9c7e52-6a5d-4a0e-9d0b-6b6a1f0c1d11</a:MessageID></s:Header><s:Body>` + body +
		`</s:Body></s:Envelope>`)
}

func changes(d *replay.Difference) (list []string) {
	if d == nil {
		return nil
	}
	for _, c := range d.Changes {
		path := strings.TrimPrefix(c.Path, "/Envelope/Body")
		list = append(list, fmt.Sprintf("%s %s %q %q", c.What, path, c.Recorded, c.Now))
	}
	return list
}

func TestInfoset(t *testing.T) {
	for name, one := range map[string]struct {
		recorded, now string
		ignore        []string
		want          []string
	}{
		"the same": {recorded: `<m:r xmlns:m="u"><v>1</v></m:r>`, now: `<m:r xmlns:m="u"><v>1</v></m:r>`},
		"written in another way": {
			recorded: `<m:r xmlns:m="u" a="1" b="2"><v>1</v><w/></m:r>`,
			now:      "<n:r b='2'  a=\"1\" xmlns:n='u'>\n <v>1</v>\n <!-- c --><w></w>\n</n:r>",
		},
		"another namespace": {
			recorded: `<m:r xmlns:m="u"/>`, now: `<m:r xmlns:m="v"/>`,
			want: []string{`missing /r "" ""`, `added /r "" ""`},
		},
		"a text": {
			recorded: `<r><v>1</v><v>2</v></r>`, now: `<r><v>1</v><v>3</v></r>`,
			want: []string{`text /r/v[2] "2" "3"`},
		},
		"space in text": {recorded: `<r><v>1</v></r>`, now: `<r><v> 1</v></r>`, want: []string{`text /r/v "1" " 1"`}},
		"attributes": {
			recorded: `<r a="1" b="2" c="3"/>`, now: `<r b="2" c="4" d="5"/>`,
			want: []string{`missing /r/@a "1" ""`, `attribute /r/@c "3" "4"`, `added /r/@d "" "5"`},
		},
		"one more": {
			recorded: `<r><v>1</v><v>2</v><v>3</v></r>`, now: `<r><v>1</v><v>x</v><v>2</v><v>3</v></r>`,
			want: []string{`added /r/v[2] "" "x"`},
		},
		"one less": {
			recorded: `<r><v>1</v><w>2</w><v>3</v></r>`, now: `<r><v>1</v><v>3</v></r>`,
			want: []string{`missing /r/w "2" ""`},
		},
		"mixed": {recorded: `<r>a<b/>c</r>`, now: `<r>a<b/>d</r>`, want: []string{`text /r "a c" "a d"`}},
		"ignored elements": {
			recorded: `<r><v>1</v><serial>7</serial></r>`, now: `<r><v>1</v><serial>8</serial></r>`,
			ignore: []string{"//serial"},
		},
		"ignored, and one more that is not": {
			recorded: `<r><v>1</v><serial>7</serial></r>`, now: `<r><v>2</v></r>`, ignore: []string{"//serial"},
			want: []string{`text /r/v "1" "2"`},
		},
		"ignored attributes": {recorded: `<r a="1" b="1"/>`, now: `<r a="2" b="2"/>`, ignore: []string{"//@a"},
			want: []string{`attribute /r/@b "1" "2"`}},
		"times": {
			recorded: `<r at="2026-01-02T03:04:05Z"><w>2026-01-02T03:04:05.678</w><x>1</x></r>`,
			now:      `<r at="2026-11-28T03:04:05.1+01:00"><w>2026-11-28T00:00:00</w><x>2026-11-28T00:00:00Z</x></r>`,
			ignore:   []string{"times"}, want: []string{`text /r/x "1" "2026-11-28T00:00:00Z"`},
		},
		"ids": {
			recorded: `<r id="uuid:0b9c7e52-6a5d-4a0e-9d0b-6b6a1f0c1d11"><n>1</n><RelatesTo>x</RelatesTo></r>`,
			now:      `<r id="uuid:ffffffff-6a5d-4a0e-9d0b-6b6a1f0c1d11"><n>2</n><RelatesTo>y</RelatesTo></r>`,
			ignore:   []string{"ids"}, want: []string{`text /r/n "1" "2"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := replay.NewComparison("infoset", one.ignore)
			require.NoError(t, err)
			assert.Equal(t, one.want, changes(c.Compare(200, envelope(one.recorded), 200, envelope(one.now))))
		})
	}
}

func TestInfosetFallsBackToBytes(t *testing.T) {
	c, err := replay.NewComparison("infoset", nil)
	require.NoError(t, err)
	assert.Equal(t, "status", c.Compare(200, envelope("<a/>"), 500, envelope("<a/>")).What)
	assert.Equal(t, "body", c.Compare(200, []byte("no XML"), 200, envelope("<a/>")).What)
	assert.Nil(t, c.Compare(200, []byte("no XML"), 200, []byte("no XML")))
	bytes, err := replay.NewComparison("", nil)
	require.NoError(t, err)
	assert.Equal(t, "body", bytes.Compare(200, envelope("<a/>"), 200, envelope("<a />")).What)
}

func TestChangesAreBounded(t *testing.T) {
	c, err := replay.NewComparison("infoset", nil)
	require.NoError(t, err)
	many := func(value string) []byte {
		var b strings.Builder
		for i := range 5000 {
			fmt.Fprintf(&b, "<v>%s%d</v>", value, i)
		}
		return envelope("<r>" + b.String() + "</r>")
	}
	assert.Len(t, c.Compare(200, many("a"), 200, many("b")).Changes, 100)
	deep := func(value string) []byte {
		return envelope(strings.Repeat("<v>", 900) + value + strings.Repeat("</v>", 900))
	}
	assert.Len(t, c.Compare(200, deep("1"), 200, deep("2")).Changes, 1)
}

func TestWrongComparisons(t *testing.T) {
	for by, ignore := range map[string][]string{"bytes": {"ids"}, "xml": nil, "infoset": {"//["}} {
		_, err := replay.NewComparison(by, ignore)
		assert.Error(t, err, by)
	}
}
