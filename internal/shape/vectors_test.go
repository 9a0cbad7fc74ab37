package shape_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shared"
)

var update = flag.Bool("update", false, "write the vectors anew")

// vector is one file of testdata/vectors/content: a shape and the content of one message, for
// readers in other languages. Bytes are hexadecimal.
type vector struct {
	What        string          `json:"what"`
	Shape       string          `json:"shape"`
	Fingerprint string          `json:"fingerprint"`
	Segments    []vectorSegment `json:"segments"`
	Message     string          `json:"message"`
}

type vectorSegment struct {
	Text   bool   `json:"text,omitempty"`
	Octets string `json:"octets"`
}

func text(t string) *shape.Node { return &shape.Node{Kind: shape.Text, Text: t} }
func value(t shape.Type, u shape.Until) *shape.Node {
	return &shape.Node{Kind: shape.Value, Type: t, Until: u}
}
func seq(kids ...*shape.Node) *shape.Node { return &shape.Node{Kind: shape.Sequence, Kids: kids} }
func array(least, most uint64, row ...*shape.Node) *shape.Node {
	return &shape.Node{Kind: shape.Array, Min: least, Max: most, Kids: []*shape.Node{seq(row...)}}
}
func slot(n int32) *shape.Node { return &shape.Node{Kind: shape.Slot, Slot: n} }
func optional(kids ...*shape.Node) *shape.Node {
	return &shape.Node{Kind: shape.Optional, Kids: []*shape.Node{seq(kids...)}}
}
func choice(kids ...*shape.Node) *shape.Node { return &shape.Node{Kind: shape.Choice, Kids: kids} }
func element(kids ...*shape.Node) *shape.Node {
	return &shape.Node{Kind: shape.Element, Kids: kids}
}

// rows is a variable array of records, each with an optional, a choice and a typed leaf of every
// kind.
func rows() *shape.Node {
	return seq(text("<t>"), array(0, 0,
		text("<r"), optional(text(` a="`), value(shape.TypeString, shape.UntilQuote), text(`"`)), text(">"),
		choice(seq(text("<x>"), value(shape.TypeInt, shape.UntilTag), text("</x>")), text("<y/>"), seq(text("<z>"),
			value(shape.TypeBoolean, shape.UntilTag), text("</z>"))),
		text("<d>"), value(shape.TypeDecimal, shape.UntilTag), text("</d></r>")), text("</t>"))
}

func cases() []struct {
	name, what, message string
	root                *shape.Node
	most                int
} {
	many := func(n int, row func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(row(i))
		}
		return b.String()
	}
	return []struct {
		name, what, message string
		root                *shape.Node
		most                int
	}{
		{"text-only", "a shape without items", "<a/>", text("<a/>"), 4096},
		{"values", "leaves of every type", "<a>x &amp; y|-12|7|1.50|true|-0.001</a>", seq(text("<a>"),
			value(shape.TypeText, shape.UntilEnd)), 4096},
		{"datatypes", "typed leaves in their canonical text",
			`<a i="-12" b="7" f="1.50" t="true" d="-0.001" e="0.000000012" s="">x</a>`, typed(), 4096},
		{"exceptions", "typed leaves whose text is not canonical travel as text",
			`<a i="+12" b="007" f="1,50" t="TRUE" d="-0" e="12345678901234567890" s="">x</a>`, typed(), 4096},
		{"floats", "floats as toolkits write them, and what is none",
			"<a f=\"1.0E-5\"/><a f=\"1E-05\"/><a f=\"-1.5e+10\"/><a f=\"0.0E0\"/><a f=\"4.9E-324\"/>" +
				"<a f=\"1e007\"/><a f=\"NaN\"/>" +
				"<a f=\"INF\"/><a f=\"-INF\"/><a f=\"1E-0\"/><a f=\"1e1000\"/><a f=\"1.e5\"/>",
			array(0, 0, text("<a f=\""), value(shape.TypeFloat, shape.UntilQuote), text("\"/>"), optional(text(" "),
				value(shape.TypeText, shape.UntilTag))), 4096},
		{"scientific", "an array of numbers with exponents is no column",
			"<a>1.5E-5</a><a>2</a><a>-0.25</a><a>1.75e+10</a><a>NaN</a><a>007</a>", repeated(shape.TypeScientific),
			4096},
		{"rows", "an array of records with optional, choice and bits",
			"<t><r><x>5</x><d>1</d></r><r a=\"q\"><y/><d>2.5</d></r>" +
				"<r><z>false</z><d>x</d></r><r><z>true</z><d>-3.25</d></r></t>", rows(), 4096},
		{"rows-none", "an array without rows", "<t></t>", rows(), 4096},
		{"rows-200", "groups of more than 127 rows, in several segments", "<t>" + many(200, func(i int) string {
			return []string{"<r><x>5</x><d>1.5</d></r>", "<r><y/><d>7</d></r>",
				"<r a=\"v\"><z>true</z><d>0</d></r>"}[i%3]
		}) + "</t>", rows(), 256},
		{"rows-escape", "a message that stops fitting inside a row goes on as text",
			"<t><r><x>5</x><d>1</d></r><r><w/></r></t>", rows(), 4096},
		{"escape-at-once", "a message that fits nothing", "<u/>", rows(), 4096},
		{"escape-behind", "octets behind the end of the shape", "<t></t>\n<!-- more -->", rows(), 4096},
		{"fixed", "a fixed array of strings has no count", "<a><s>one</s><s>two</s><s>three</s></a>", seq(text("<a>"),
			array(3, 3, text("<s>"), value(shape.TypeString, shape.UntilTag), text("</s>")), text("</a>")), 4096},
		{"column", "an array of numbers", "<a><n>1.5</n><n>-20.25</n><n>0</n><n>1000</n></a>", seq(text("<a>"),
			array(0, 0, text("<n>"), value(shape.TypeDecimal, shape.UntilTag), text("</n>")), text("</a>")), 4096},
		{"column-int", "an array of integers, with exceptions",
			"<a><n>1</n><n>-20</n><n>NaN</n><n>1000</n><n>007</n></a>", seq(text("<a>"), array(0, 0, text("<n>"),
				value(shape.TypeInt, shape.UntilTag), text("</n>")), text("</a>")), 4096},
		{"column-none", "an array of numbers without rows", "<a></a>", seq(text("<a>"), array(0, 0, text("<n>"),
			value(shape.TypeFloat, shape.UntilTag), text("</n>")), text("</a>")), 4096},
		{"column-same", "a column of width 0", "<a><n>0</n><n>0</n><n>0</n></a>", seq(text("<a>"), array(0, 0,
			text("<n>"), value(shape.TypeByte, shape.UntilTag), text("</n>")), text("</a>")), 4096},
		{"column-segments", "a column in several groups and segments", "<a>" + many(150,
			func(i int) string { return []string{"<n>3.25</n>", "<n>-17</n>", "<n>99999.125</n>"}[i%3] }) + "</a>",
			seq(text("<a>"), array(1, 1000, text("<n>"), value(shape.TypeFloat, shape.UntilTag), text("</n>")),
				text("</a>")), 256},
		{"slots", "generated prefixes, the first and the next as predicted",
			`<ns1:a xmlns:ns1="u"><ns2:b xmlns:ns2="v">1</ns2:b></ns1:a>`, slots(), 4096},
		{"slots-other", "generated prefixes of another toolkit",
			`<d4p1:a xmlns:d4p1="u"><q99:b xmlns:q99="v">1</q99:b></d4p1:a>`, slots(), 4096},
		{"long-text", "a value in pieces over several segments", "<a>" + strings.Repeat("0123456789abcdef",
			60) + "</a>", seq(text("<a>"), value(shape.TypeText, shape.UntilTag), text("</a>")), 256},
		{"cdata", "CDATA sections and comments are part of the value", "<a>1<![CDATA[<b>]]><!-- </a> --></a>",
			seq(text("<a>"), value(shape.TypeText, shape.UntilTag), text("</a>")), 4096},
		{"column-escape", "text in place of the rest behind a column: the texts behind its last number may be kept",
			"<a><n>1</n><n>2</n><m/></a>", seq(text("<a>"), array(0, 0, text("<n>"), value(shape.TypeInt,
				shape.UntilTag), text("</n>")), text("</a>")), 4096},
		{"uuid", "UUIDs in all forms, and what is none",
			"<a>6ba7b810-9dad-11d1-80b4-00c04fd430c8</a>" +
				"<a>urn:uuid:6BA7B810-9DAD-11D1-80B4-00C04FD430C8</a><a>none</a>", repeated(shape.TypeUUID), 4096},
		{"datetime", "dates and times in all forms, and what is none",
			"<a>2006-06-11T04:26:40.318Z</a><a>1999-12-31T23:59:59</a><a>2011-01-01T00:00:00.5-08:00</a><a>today</a>",
			repeated(shape.TypeDateTime), 4096},
		{"base64", "base64 without lines, in lines, with padding, with a tail that is none",
			"<a>AAECAwQFBgcICQoL</a><a>AAEC\nAwQF\nBg==</a><a>AAECAwQF\r\nBgc=</a><a>AAECAw==\n</a><a>A?</a><a></a>",
			repeated(shape.TypeBase64), 4096},
		{"base64-long", "base64 in lines, over several segments", "<a>" + lined(1500) + "</a>",
			repeated(shape.TypeBase64), 256},
		{"hex-lines", "hexadecimal digits in lines, the last one of another length, and with an odd number of them",
			"<a>00112233445566ff\n00112233445566ff\n0011</a><a>00AA\r\n11</a><a>0011\n22\n</a><a>0011\n223</a>",
			repeated(shape.TypeHex), 4096},
		{"hex", "hexadecimal digits of either case, and an odd number of them",
			"<a>00ff7a</a><a>00FF7A</a><a>00ff7</a><a></a>", repeated(shape.TypeHex), 4096},
		{"choices", "elements in any order: an array of a choice, and a choice that may be absent",
			"<t><a>1</a><b/><a>22</a><c x=\"q\"/><b/><a>-3</a><d/></t>", list(), 4096},
		{"choices-none", "neither is there", "<t></t>", list(), 4096},
		{"choices-escape", "an element that is none of the alternatives", "<t><a>1</a><cc x=\"q\"/><b/></t>", list(),
			4096},
		{"utf16-le", "UTF-16 with byte order mark: shape and content are UTF-8",
			wide("\uFEFF<a>z\u00FCrich \u20AC \U0001F600</a>", binary.LittleEndian), utf16Of(shape.UTF16LE, "\uFEFF"),
			4096},
		{"utf16-escape-odd", "a surrogate without partner, and one octet more", wide("<a>\u00FC?</a>",
			binary.BigEndian)[:10] + "\xD8\x00\x00<\x00/\x00a\x00>" + "\x07", utf16Of(shape.UTF16BE, ""), 4096},
		{"utf16-segments", "characters over the end of segments", wide("<a>"+strings.Repeat("\u20AC\U0001F600-",
			100)+"</a>", binary.LittleEndian), utf16Of(shape.UTF16LE, ""), 256},
		{"utf16-escape", "what does not fit is UTF-8, too", wide("<a>1</a><!-- \u20AC -->", binary.LittleEndian),
			utf16Of(shape.UTF16LE, ""), 4096},
		{"open", "open content", "<a><b><c x='>'/></b><b/>tail</a>", seq(text("<a>"), value(shape.TypeOpen,
			shape.UntilElement), text("</a>")), 4096},
	}
}

// utf16Of is an element with a value, in UTF-16.
func utf16Of(kind shape.Kind, before string) *shape.Node {
	return &shape.Node{Kind: kind, Kids: []*shape.Node{seq(text(before), element(text("<a>"), value(shape.TypeText,
		shape.UntilTag), text("</a>")))}}
}

// wide gives a text in UTF-16.
func wide(s string, order binary.AppendByteOrder) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// list is elements of three kinds in any order, then one of two or none.
func list() *shape.Node {
	c := element(text("<c"), optional(text(" x=\""), value(shape.TypeString, shape.UntilQuote), text("\"")), text("/>"))
	return seq(text("<t>"), array(0, 0, choice(element(text("<a>"), value(shape.TypeInt, shape.UntilTag),
		text("</a>")), element(text("<b/>")), c)),
		optional(choice(element(text("<d/>")), element(text("<e>"), value(shape.TypeText, shape.UntilTag),
			text("</e>")))), text("</t>"))
}

// repeated is any number of elements with a value of one type.
func repeated(t shape.Type) *shape.Node {
	return array(0, 0, text("<a>"), value(t, shape.UntilTag), text("</a>"))
}

// lined is the base64 of n bytes in lines of 76 characters.
func lined(n int) string {
	octets := make([]byte, n)
	for i := range octets {
		octets[i] = byte(i * 7)
	}
	all := base64.StdEncoding.EncodeToString(octets)
	var lines []string
	for len(all) > 76 {
		lines, all = append(lines, all[:76]), all[76:]
	}
	return strings.Join(append(lines, all), "\r\n")
}

func typed() *shape.Node {
	attr := func(name string, t shape.Type) *shape.Node {
		return &shape.Node{Kind: shape.Attribute, Kids: []*shape.Node{text(" " + name + `="`), value(t,
			shape.UntilQuote), text(`"`)}}
	}
	return element(text("<a"), attr("i", shape.TypeInt), attr("b", shape.TypeByte), attr("f", shape.TypeFloat),
		attr("t", shape.TypeBoolean),
		attr("d", shape.TypeDecimal), attr("e", shape.TypeDecimal), attr("s", shape.TypeString), text(">"),
		value(shape.TypeText, shape.UntilTag), text("</a>"))
}

func slots() *shape.Node {
	again := func(n int32) *shape.Node { return &shape.Node{Kind: shape.Again, Slot: n} }
	return element(text("<"), slot(7), text(`:a xmlns:`), again(7), text(`="u">`),
		element(text("<"), slot(3), text(`:b xmlns:`), again(3), text(`="v">`), value(shape.TypeInt, shape.UntilTag),
			text("</"), again(3), text(":b>")),
		text("</"), again(7), text(":a>"))
}

// TestVectors holds testdata/vectors/content: what we split is what stands there, what stands there
// joins to its message.
func TestVectors(t *testing.T) {
	dir := shared.Testdata(t, "vectors", "content")
	for _, c := range cases() {
		s, err := shape.New(c.root)
		require.NoError(t, err, c.name)
		p := program.Compile(s)
		v := vector{What: c.what, Shape: hex.EncodeToString(s.Octets()), Fingerprint: s.Fingerprint().URI(),
			Message: hex.EncodeToString([]byte(c.message))}
		segments := split(t, p, []byte(c.message), c.most, 0)
		for _, seg := range segments {
			v.Segments = append(v.Segments, vectorSegment{seg.text, hex.EncodeToString(seg.octets)})
		}
		require.Equal(t, c.message, string(join(t, p, segments)), c.name)
		path := filepath.Join(dir, c.name+".json")
		if *update {
			b, err := json.MarshalIndent(v, "", "  ")
			require.NoError(t, err)
			require.NoError(t, os.MkdirAll(dir, 0o755))
			require.NoError(t, os.WriteFile(path, append(b, '\n'), 0o644))
		}
		var want vector
		require.NoError(t, json.Unmarshal(shared.Read(t, path), &want))
		assert.Equal(t, want, v, c.name)
	}
	assert.Len(t, shared.Files(t, dir, nil), len(cases()), "files and cases")
}

func TestLaw1OnVectors(t *testing.T) {
	for _, c := range cases() {
		s, err := shape.New(c.root)
		require.NoError(t, err)
		fits, _ := requireLaw1(t, program.Compile(s), []byte(c.message), c.name)
		assert.Equal(t, !strings.Contains(c.name, "escape"), fits, c.name)
	}
}
