package shape_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shared"
)

// packedVector is one file of testdata/vectors/packed: messages of one shape, or of that and others
// in turn, one behind the other with one memory, each as its segments before and after they were
// packed.
type packedVector struct {
	What     string            `json:"what"`
	Shape    string            `json:"shape"`
	Others   []string          `json:"others,omitempty"`
	Messages [][]packedSegment `json:"messages"`
}

type packedSegment struct {
	Segment string `json:"segment"`
	Packed  string `json:"packed"`
	Last    bool   `json:"last"`
}

type packedCase struct {
	name, what string
	root       *shape.Node
	most       int
	messages   []string
	others     []*shape.Node
}

// record is a message with a value of every type outside arrays.
func record(i int) string {
	return fmt.Sprintf("<m><n>%d</n><d>%d.25</d><t>2006-06-11T04:%02d:40.%03dZ</t>"+
		"<t>2006-06-11T05:%02d:40.%03dZ</t><z>2011-01-01T00:00:%02d-08:00</z><f>%s</f><s>%s</s>"+
		"<u>6ba7b810-9dad-11d1-80b4-00c04fd430%02x</u><b>AAEC%02dQF</b>%s</m>",
		7+i, 100+i*i, i, i*37, i, i*37, i, []string{"1.5E-05", "-2e10", "2.5E+3", "NaN", "0.000000015", "-INF",
			"7"}[i%7], []string{"plain words here", "Words, other words.", "plain words here", "other-plain"}[i%4], i,
		i, []string{"", "<o>true</o>"}[i%2])
}

func recordShape() *shape.Node {
	one := func(name string, t shape.Type) *shape.Node {
		return element(text("<"+name+">"), value(t, shape.UntilTag), text("</"+name+">"))
	}
	return element(text("<m>"), one("n", shape.TypeInt), one("d", shape.TypeDecimal), one("t", shape.TypeDateTime),
		one("t", shape.TypeDateTime), one("z", shape.TypeDateTime),
		one("f", shape.TypeFloat), one("s", shape.TypeString), one("u", shape.TypeUUID), one("b", shape.TypeBase64),
		optional(one("o", shape.TypeBoolean)), text("</m>"))
}

// table is a message with rows of which each column asks for a method of its own.
func table(from, n int) string {
	var b strings.Builder
	b.WriteString("<t>")
	for i := from; i < from+n; i++ {
		few := []string{"low", "high", "a value of several words", "high"}[i*i%7%4]
		fmt.Fprintf(&b,
			`<r c="same" k="%s" l="item number %d of many"><a>%d</a><b>%d</b><e>%d</e><f>%d</f>`+
				`<g>2006-06-11T04:26:%02dZ</g><g>2006-06-11T04:27:%02dZ</g><h>2011-01-01T00:00:%02d+%02d:00</h>`+
				`<w>%s</w><u>6ba7b810-9dad-11d1-80b4-00c04fd430%02x</u><x>00ff%02x</x><q>%s</q><v>1</v><v>%d</v></r>`,
			few, i*i*i, i*3, 1000000+i*7919%4096, []int{5, 70000, -12, 70000}[i*i%7%4], i*i*i*1000, i%60, i%60, i%60,
			i%3, []string{"true", "false", "TRUE"}[i%5%3], i, i, []string{"1.5E-05", "-2e10", "7.25",
				"INF"}[i*i%7%4], i)
	}
	return b.String() + "</t>"
}

func tableShape() *shape.Node {
	attr := func(name string, t shape.Type) *shape.Node {
		return seq(text(" "+name+`="`), value(t, shape.UntilQuote), text(`"`))
	}
	one := func(name string, t shape.Type) *shape.Node {
		return element(text("<"+name+">"), value(t, shape.UntilTag), text("</"+name+">"))
	}
	kids := []*shape.Node{text("<r")}
	for _, name := range []string{"c", "k", "l"} {
		kids = append(kids, attr(name, shape.TypeString).Kids...)
	}
	kids[len(kids)-1] = text(`">`)
	kids = append(kids, []*shape.Node{one("a", shape.TypeInt), one("b", shape.TypeInt), one("e", shape.TypeInt),
		one("f", shape.TypeInt), one("g", shape.TypeDateTime), one("g", shape.TypeDateTime), one("h",
			shape.TypeDateTime),
		one("w", shape.TypeBoolean), one("u", shape.TypeUUID), one("x", shape.TypeHex), one("q", shape.TypeFloat),
		{Kind: shape.Array, Kids: []*shape.Node{one("v", shape.TypeInt)}}}...)
	return seq(text("<t>"), array(0, 0, append(joined(kids), text("</r>"))...), text("</t>"))
}

// scaled is a message with decimals of different scales, and texts that count up and down, row by
// row.
func scaled(n, step int) string {
	var b strings.Builder
	for i := range n {
		d := []string{"36.07334899", "36.0717163", "-36.08", "36", "n/a"}[i*i%7%5]
		fmt.Fprintf(&b, `<r a="urn:x?n=LS%04d;of" b="%d-%d"><d>%s</d><e>%d.%d</e></r>`, 9000+i*step, 100+i,
			i*i*i%90+10, d, 116, i*7919%1000)
	}
	return b.String()
}

func scaledShape() *shape.Node {
	return array(0, 0, text(`<r a="`), value(shape.TypeString, shape.UntilQuote), text(`" b="`),
		value(shape.TypeString, shape.UntilQuote), text(`"><d>`),
		value(shape.TypeDecimal, shape.UntilTag), text("</d><e>"), value(shape.TypeDecimal, shape.UntilTag),
		text("</e></r>"))
}

// joined makes one text of texts that follow each other.
func joined(kids []*shape.Node) (out []*shape.Node) {
	for _, k := range kids {
		if n := len(out); k.Kind == shape.Text && n > 0 && out[n-1].Kind == shape.Text {
			out[n-1] = text(out[n-1].Text + k.Text)
			continue
		}
		out = append(out, k)
	}
	return out
}

func packedCases() (all []packedCase) {
	for _, c := range cases() {
		if !strings.Contains(c.name, "escape") {
			all = append(all, packedCase{c.name, c.what + ", twice", c.root, c.most,
				[]string{c.message, c.message}, nil})
		}
	}
	var records []string
	for i := range 9 {
		records = append(records, record(i))
	}
	var words []string
	for i := range 300 {
		words = append(words, fmt.Sprintf("<a>w%d.%d x%d</a>", i*7%997, i, i*i))
	}
	return append(all,
		packedCase{"memory", "values outside arrays, over messages", recordShape(), 16384, records, nil},
		packedCase{"columns", "columns by every method, over messages", tableShape(), 16384, []string{table(0, 40),
			table(40, 3), table(43, 100), table(0, 40)}, nil},
		packedCase{"columns-segments", "columns of arrays that go on in further segments", tableShape(), 700,
			[]string{table(0, 60)}, nil},
		packedCase{"scales", "decimals of different scales, and texts with numbers that count", scaledShape(), 16384,
			[]string{scaled(60, 1), scaled(60, -3), scaled(5, 1), scaled(60, 0)}, nil},
		packedCase{"words", "more texts than are remembered", repeated(shape.TypeString), 16384,
			[]string{strings.Join(words, ""), strings.Join(words[:20], ""), strings.Join(words[280:], "")}, nil},
		alike(),
	)
}

// alike are messages of several kinds with the same header, and of one that has none.
func alike() packedCase {
	const header = "<e><h><to>http://services.example.org/axis</to><at>2006-06-11T04:26:%02d.318Z</at><n>%d</n></h>"
	one := func(name string, t shape.Type) *shape.Node {
		return element(text("<"+name+">"), value(t, shape.UntilTag), text("</"+name+">"))
	}
	root := func(body *shape.Node) *shape.Node {
		return element(text("<e>"), element(text("<h>"), one("to", shape.TypeString), one("at", shape.TypeDateTime),
			one("n", shape.TypeInt), text("</h>")), body, text("</e>"))
	}
	c := packedCase{name: "alike", what: "shapes that begin alike, in turn", most: 16384,
		root: root(one("a", shape.TypeString)), others: []*shape.Node{root(one("b", shape.TypeString)),
			one("none", shape.TypeInt), root(array(0, 0, one("c", shape.TypeInt))),
			root(optional(one("d", shape.TypeUUID)))}}
	bodies := []string{header + "<a>word</a></e>", header + "<b>word</b></e>", "<none>%d%d</none>",
		header + "<c>1</c><c>22</c></e>", header + "<d>6ba7b810-9dad-11d1-80b4-00c04fd43001</d></e>"}
	for i := range 12 {
		c.messages = append(c.messages, fmt.Sprintf(bodies[i%len(bodies)], 10+i, 300+i))
	}
	return c
}

// TestPackedVectors holds testdata/vectors/packed: what stands there is what we pack, and unpacks
// to its segments.
func TestPackedVectors(t *testing.T) {
	dir := shared.Testdata(t, "vectors", "packed")
	for _, c := range packedCases() {
		v := packedVector{What: c.what}
		var programs []*program.Program
		for i, root := range append([]*shape.Node{c.root}, c.others...) {
			s, err := shape.New(root)
			require.NoError(t, err, c.name)
			programs = append(programs, program.Compile(s))
			if octets := hex.EncodeToString(s.Octets()); i == 0 {
				v.Shape = octets
			} else {
				v.Others = append(v.Others, octets)
			}
		}
		var k columns.Packer
		var u columns.Unpacker
		var m, theirs columns.Memory
		for n, message := range c.messages {
			p := programs[n%len(programs)]
			segments := split(t, p, []byte(message), c.most, 0)
			require.Equal(t, message, string(join(t, p, segments)), c.name)
			var at, there columns.Packing
			var list []packedSegment
			for i, seg := range segments {
				require.False(t, seg.text, c.name)
				last := i == len(segments)-1
				octets := k.Pack(nil, p, &at, &m, seg.octets, last, 16384)
				back, err := u.Unpack(nil, p, &there, &theirs, octets, last, 16384)
				require.NoError(t, err, c.name)
				require.Equal(t, string(seg.octets), string(back), c.name)
				list = append(list, packedSegment{hex.EncodeToString(seg.octets), hex.EncodeToString(octets), last})
			}
			v.Messages = append(v.Messages, list)
		}
		path := filepath.Join(dir, c.name+".json")
		if *update {
			b, err := json.MarshalIndent(v, "", "  ")
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(dir, 0o755))
			require.NoError(t, os.WriteFile(path, append(b, '\n'), 0o644))
		}
		var want packedVector
		require.NoError(t, json.Unmarshal(shared.Read(t, path), &want))
		assert.Equal(t, want, v, c.name)
	}
	assert.Len(t, shared.Files(t, dir, nil), len(packedCases()), "files and cases")
}
