package schema_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/pkg/schema"
)

func load(t testing.TB, name string) []byte {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return text
}

func parse(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(text))
	require.NoError(t, err)
	return s
}

// all has one of everything.
const all = `<xsd:element xmlns:xsd="http://www.w3.org/2001/XMLSchema" name="All">
<xsd:complexType mixed="true"><!-- c -->
 <xsd:element name="S" type="xsd:string"></xsd:element><xsd:attribute name="a" type="int"/>
 <element name="B" type="Boolean"/><xsd:element name="Y" type="byte"/>
 <xsd:element name="In"><xsd:complexType><xsd:element name="I" type="int"/></xsd:complexType></xsd:element>
 <xsd:element name="F" type="float"/><xsd:element name="Any" type="array" primitives="int"/>
</xsd:complexType></xsd:element>`

// Both examples of the papers parse, and are printed back as they are printed there, white space
// apart.
func TestPapersExamples(t *testing.T) {
	two := parse(t, string(load(t, "strings.xsd")))
	assert.Equal(t, string(load(t, "strings.xsd")), two.String())
	assert.Equal(
		t,
		&schema.Element{
			Name: "HHFR",
			Type: shape.TypeOpen,
			Children: []*schema.Element{
				{Name: "String1", Type: shape.TypeString},
				{Name: "String2", Type: shape.TypeString},
			},
		},
		two.Root(),
	)

	floats := parse(t, string(load(t, "floats.xsd")))
	assert.Equal(t, &schema.Element{Name: "MyArray", Type: shape.TypeFloat, Array: true, Items: 90},
		floats.Root().Children[0])
	assert.Equal(t, strings.ReplaceAll(string(load(t, "floats.xsd")), ">\n    </element>", "/>"), floats.String())
}

func TestPrefixesAndSpellingsDoNotCount(t *testing.T) {
	a := parse(t,
		`<xs:element name="E"><xs:complexType><xs:element name="B" type="xs:boolean"/></xs:complexType></xs:element>`)
	b := parse(
		t,
		"\xEF\xBB\xBF<?xml version='1.0'?>\n<element name='E'>\n<complexType><element name='B' type='Boolean'>"+
			"</element></complexType>\n</element>\n",
	)
	assert.Equal(t, a.URI(), b.URI())
	for _, same := range []string{
		`<element name="E"><complexType><element name="B" type="xs:boolean"/></complexType></element>`,
		`<xsd:element name="E"><complexType><xs:element name="B" type="Boolean"/></complexType></xsd:element>`,
		`<s:element name="E" xmlns:s="http://www.w3.org/2001/XMLSchema"><s:complexType><s:element name="B" ` +
			`type="s:boolean"/></s:complexType></s:element>`,
		`<element name="E" xmlns="http://www.w3.org/2001/XMLSchema" xmlns:s="http://www.w3.org/2001/XMLSchema">` +
			`<complexType><element name="B" type="s:boolean"/></complexType></element>`,
	} {
		assert.Equal(t, a.URI(), parse(t, same).URI(), same)
	}
	assert.Equal(t, `<element name="E"><complexType><element name="B" type="boolean"/></complexType></element>`,
		string(a.Compact()))
	assert.Regexp(t, `^urn:hhfr:schema:sha256:[0-9a-f]{64}$`, a.URI())
	assert.Contains(t, a.String(), "xs:element")
	assert.NotContains(t, b.String(), "xs:")
	other := parse(t, `<element name="E"><complexType><element name="B" type="int"/></complexType></element>`)
	assert.NotEqual(t, a.URI(), other.URI())
	everything := parse(t, all)
	assert.Equal(t, everything.Root(), parse(t, everything.String()).Root())
	assert.Equal(t, everything.Root(), parse(t, string(everything.Compact())).Root())
	// A fixed vector, so that the fingerprint cannot change unnoticed.
	assert.Equal(t, "urn:hhfr:schema:sha256:8a5c3e8f3d4983e7c482c86315de527d62233998bdff5e6debe8fc30d7115dca", a.URI())
}

func TestParseRefuses(t *testing.T) {
	leaf := `<element name="L" type="int"/>`
	for _, c := range []struct {
		in   string
		code schema.Code
		at   string // line:column
	}{
		{"", schema.Malformed, "1:1"},
		{"hello", schema.Malformed, "1:1"},
		{leaf + leaf, schema.Unsupported, "1:31"},
		{leaf + "x", schema.Malformed, "1:31"},
		{"\n <foo/>", schema.Unsupported, "2:2"},
		{"<x:element xmlns:x='urn:x' name='a' type='int'/>", schema.Unsupported, "1:1"},
		{"<xs:element xmlns:xs='urn:x' name='a' type='int'/>", schema.Unsupported, "1:1"},
		{"<element xmlns:s='urn:x' name='a' type='s:int'/>", schema.Unsupported, "1:1"},
		{"</element>", schema.Malformed, "1:1"},
		{"<element", schema.Malformed, "1:2"},
		{`<!DOCTYPE a><element name="a" type="int"/>`, schema.Unsupported, "1:1"},
		{`<element type="int"/>`, schema.Malformed, "1:1"},
		{`<element name="a b" type="int"/>`, schema.Malformed, "1:1"},
		{`<element name="1" type="int"/>`, schema.Malformed, "1:1"},
		{`<element name="a:b" type="int"/>`, schema.Malformed, "1:1"},
		{`<element name="&#65;" type="int"/>`, schema.Malformed, "1:1"},
		{`<element name="` + strings.Repeat("a", 300) + `" type="int"/>`, schema.TooLarge, "1:1"},
		{`<element name="a" name="b" type="int"/>`, schema.Malformed, "1:19"},
		{`<element name="a"/>`, schema.Malformed, "1:1"},
		{`<element name="a"></element>`, schema.Unsupported, "1:19"},
		{`<element name="a" type="decimal"/>`, schema.Unsupported, "1:1"},
		{`<element name="a" type=""/>`, schema.Malformed, "1:1"},
		{`<element name="a" type="int" minOccurs="0"/>`, schema.Unsupported, "1:30"},
		{`<element name="a" type="int"><annotation/></element>`, schema.Unsupported, "1:30"},
		{`<element name="a" type="int" value="3"/>`, schema.Malformed, "1:1"},
		{`<element name="a" type="array"/>`, schema.Malformed, "1:1"},
		{`<element name="a" type="array" primitives="x"/>`, schema.Unsupported, "1:1"},
		{`<element name="a" type="array" primitives="int" value="0"/>`, schema.Malformed, "1:1"},
		{`<element name="a" type="array" primitives="int" value="-1"/>`, schema.Malformed, "1:1"},
		{`<element name="a" type="array" primitives="int" value="9999999"/>`, schema.TooLarge, "1:1"},
		{`<element name="a"><complexType/></element>`, schema.Unsupported, "1:19"},
		{`<element name="a"><complexType></complexType></element>`, schema.Unsupported, "1:32"},
		{`<element name="a"><complexType><sequence/></complexType></element>`, schema.Unsupported, "1:32"},
		{`<element name="a"><complexType>` + leaf + leaf + `</complexType></element>`, schema.Unsupported, "1:62"},
		{`<element name="a"><complexType>` + leaf, schema.Malformed, "1:62"},
		{`<element name="a"><complexType>` + leaf + `</element></complexType>`, schema.Malformed, "1:62"},
		{`<element name="a"><complexType>` + leaf + `</complexType>` + leaf + `</element>`, schema.Malformed, "1:76"},
		{`<element name="a"><complexType><attribute name="x" type="int"/><attribute name="x" type="int"/>` + leaf +
			`</complexType></element>`, schema.Malformed, "1:64"},
		{strings.Repeat(`<element name="a"><complexType>`, 50), schema.TooLarge, "1:1272"},
		{`<element name="a"><complexType>` + many(2000) + `</complexType></element>`, schema.TooLarge, ""},
		{strings.Repeat(" ", schema.MaxSchema+1), schema.TooLarge, ""},
	} {
		_, err := schema.Parse([]byte(c.in))
		var e *schema.Error
		if !assert.ErrorAs(t, err, &e, "%.80q", c.in) {
			continue
		}
		assert.Equal(t, c.code, e.Code, "%.80q: %v", c.in, err)
		if c.at != "" {
			assert.Equal(t, c.at, fmt.Sprintf("%d:%d", e.Line, e.Column), "%.80q: %v", c.in, err)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `<element name="e%d" type="int"/>`, i)
	}
	return b.String()
}

// carry splits a message by a shape and joins it again.
func carry(t testing.TB, s *shape.Shape, message []byte) (content, back []byte) {
	t.Helper()
	p := program.Compile(s)
	var segments [][]byte
	var splitter program.Splitter
	splitter.Reset(p, 16<<10, true, func(text bool, segment []byte) error {
		require.False(t, text, "the shape must fit")
		segments = append(segments, append([]byte(nil), segment...))
		return nil
	})
	require.NoError(t, splitter.Split(message))
	var joiner program.Joiner
	joiner.Reset(p)
	var err error
	for i, segment := range segments {
		back, err = joiner.Join(back, segment, false, i == len(segments)-1)
		require.NoError(t, err)
		content = append(content, segment...)
	}
	return content, back
}

// The first real message gives the text; the schema the types; other messages of the kind then fit,
// byte for byte.
func TestShapeOfTheFirstMessage(t *testing.T) {
	two := parse(t, string(load(t, "strings.xsd")))
	first := []byte(`<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>
<ns1:HHFR xmlns:ns1="urn:x"><String1>1</String1><String2>2</String2></ns1:HHFR></e:Body></e:Envelope>`)
	made, drift, err := two.Shape(first)
	require.NoError(t, err)
	assert.Empty(t, drift)
	for _, m := range [][]byte{first,
		[]byte(strings.Replace(strings.Replace(string(first), ">1<", ">some words<", 1), ">2<", ">&amp;<", 1))} {
		content, back := carry(t, made, m)
		assert.Equal(t, string(m), string(back))
		assert.Less(t, len(content), 32)
	}
	learned, err := learn.FromMessage(first)
	require.NoError(t, err)
	assert.NotEqual(t, learned.Fingerprint(), made.Fingerprint(),
		"digits are learned as numbers, but described as strings")
	var types []shape.Type
	values(made.Root(), &types)
	assert.Equal(t, []shape.Type{shape.TypeString, shape.TypeString}, types)
}

func values(n *shape.Node, types *[]shape.Type) {
	if n.Kind == shape.Value {
		*types = append(*types, n.Type)
	}
	for _, k := range n.Kids {
		values(k, types)
	}
}

func TestFixedAndFreeArrays(t *testing.T) {
	floats := parse(t, string(load(t, "floats.xsd")))
	list := make([]float32, 90)
	for i := range list {
		list[i] = float32(i) / 4
	}
	message, err := floats.Message(map[string]any{"MyArray": list})
	require.NoError(t, err)
	made, drift, err := floats.Shape(message)
	require.NoError(t, err)
	assert.Empty(t, drift)
	content, back := carry(t, made, message)
	assert.Equal(t, string(message), string(back))
	assert.Less(t, len(content), 360, "90 floats take less than 4 bytes each")
	array := find(made.Root(), shape.Array)
	require.NotNil(t, array)
	assert.EqualValues(t, 90, array.Min)
	assert.EqualValues(t, 90, array.Max)

	// Another number of items is drift, and then the number is not fixed.
	short := []byte(strings.Replace(string(message), "<item>1</item>", "", 1))
	made, drift, err = floats.Shape(short)
	require.NoError(t, err)
	require.Len(t, drift, 1)
	assert.ErrorContains(t, drift[0], "HHFR/MyArray: 89 items, 90 are described")
	assert.EqualValues(t, 0, find(made.Root(), shape.Array).Max)
	_, back = carry(t, made, short)
	assert.Equal(t, string(short), string(back))

	// Without a value any number is accepted, also where the first message has one item only.
	free := parse(t, `<element name="L" type="array" primitives="int"/>`)
	one, err := free.Message(map[string]any{"L": []int{7}})
	require.NoError(t, err)
	made, _, err = free.Shape(one)
	require.NoError(t, err)
	three, err := free.Message(map[string]any{"L": []int{7, 8, -9}})
	require.NoError(t, err)
	_, back = carry(t, made, three)
	assert.Equal(t, string(three), string(back))
	none, err := free.Message(map[string]any{"L": []int{}})
	require.NoError(t, err)
	_, drift, err = free.Shape(none)
	require.NoError(t, err)
	assert.Empty(t, drift)
}

func find(n *shape.Node, kind shape.Kind) *shape.Node {
	if n.Kind == kind {
		return n
	}
	for _, k := range n.Kids {
		if found := find(k, kind); found != nil {
			return found
		}
	}
	return nil
}

func TestDefaultEnvelope(t *testing.T) {
	s := parse(t, all)
	message, err := s.Message(map[string]any{
		"@a":  1,
		"S":   "x<y\r\n",
		"B":   true,
		"Y":   int8(-7),
		"In":  map[string]any{"I": 3.0},
		"F":   0.1,
		"Any": []any{1, "2"},
	})
	require.NoError(t, err)
	assert.Equal(
		t,
		`<?xml version="1.0" encoding="UTF-8"?>`+"\n"+`<soap:Envelope `+
			`xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>`+
			`<All a="1"><S>x&lt;y&#13;&#10;</S><B>true</B><Y>-7</Y><In><I>3</I></In><F>0.1</F><Any><item>1</item>`+
			`<item>2</item></Any></All></soap:Body></soap:Envelope>`,
		string(message),
	)
	drift, err := s.Check(message)
	require.NoError(t, err)
	assert.Empty(t, drift)
	made, drift, err := s.Shape(message)
	require.NoError(t, err)
	assert.Empty(t, drift)
	_, back := carry(t, made, message)
	assert.Equal(t, string(message), string(back))

	leaf := parse(t, `<element name="L" type="float"/>`)
	message, err = leaf.Message(map[string]any{"L": float32(1e6)})
	require.NoError(t, err)
	assert.Contains(t, string(message), "<L>1000000</L>")

	for path, values := range map[string]map[string]any{
		"All/S":    {"@a": 1, "S": "\x00", "B": true, "Y": 1, "In": map[string]any{"I": 1}, "F": 1, "Any": []int{}},
		"All/Y":    {"@a": 1, "S": "", "B": true, "Y": 128, "In": map[string]any{"I": 1}, "F": 1, "Any": []int{}},
		"All/B":    {"@a": 1, "S": "", "B": 1, "Y": 1, "In": map[string]any{"I": 1}, "F": 1, "Any": []int{}},
		"All/In":   {"@a": 1, "S": "", "B": true, "Y": 1, "In": 5, "F": 1, "Any": []int{}},
		"All/In/I": {"@a": 1, "S": "", "B": true, "Y": 1, "In": map[string]any{"I": 1.5}, "F": 1, "Any": []int{}},
		"All/F":    {"@a": 1, "S": "", "B": true, "Y": 1, "In": map[string]any{"I": 1}, "F": "1x", "Any": []int{}},
		"All/Any":  {"@a": 1, "S": "", "B": true, "Y": 1, "In": map[string]any{"I": 1}, "F": 1, "Any": nil},
		"All/Any[2]": {"@a": 1, "S": "", "B": true, "Y": 1, "In": map[string]any{"I": 1}, "F": 1,
			"Any": []any{1, nil}},
		"All/@a": {"@a": "x", "S": "", "B": true, "Y": 1, "In": map[string]any{"I": 1}, "F": 1, "Any": []int{}},
		"All":    {"S": ""},
		"All: \"more": {"@a": 1, "S": "", "B": true, "Y": 1, "In": map[string]any{"I": 1}, "F": 1, "Any": []int{},
			"more": 1},
	} {
		_, err := s.Message(values)
		require.ErrorIs(t, err, &schema.Error{Code: schema.BadValue}, path)
		assert.ErrorContains(t, err, path)
	}
}

func TestDrift(t *testing.T) {
	s := parse(t, all)
	good, err := s.Message(map[string]any{
		"@a":  1,
		"S":   "x",
		"B":   true,
		"Y":   7,
		"In":  map[string]any{"I": 3},
		"F":   0.5,
		"Any": []int{1, 2},
	})
	require.NoError(t, err)
	for _, c := range []struct{ old, new, says string }{
		{`a="1"`, ``, "All: attribute a is missing"},
		{`a="1"`, `a="x"`, "attribute a is no int"},
		{"<B>true</B>", "", "element B is missing"},
		{"<B>true</B><Y>7</Y>", "<Y>7</Y><B>true</B>", "element Y is not described here"},
		{"<I>3</I>", "<I>3</I><J/>", "All/In: element J is not described here"},
		{"<Y>7</Y>", "<Y>700</Y>", `All/Y: "700" is no byte`},
		{"<Y>7</Y>", "<Y><z/></Y>", "All/Y: has elements inside"},
		{"<item>2</item>", "<item>b</item>", `All/Any/item[2]: "b" is no int`},
		{"<item>2</item>", "<other>2</other>", "items of several names"},
	} {
		m := []byte(strings.Replace(string(good), c.old, c.new, 1))
		made, drift, err := s.Shape(m)
		require.NoError(t, err)
		require.NotEmpty(t, drift, c.says)
		var said []string
		for _, d := range drift {
			said = append(said, d.Error())
		}
		assert.Contains(t, strings.Join(said, "\n"), c.says)
		assert.Positive(t, drift[0].Line)
		_, back := carry(t, made, m)
		assert.Equal(t, string(m), string(back), "drift or not: nothing is lost")
	}
	for _, other := range []string{"", "<a/>", "<a>", "</a>", "<a/><b/>", "<Envelope><Body/></Envelope>",
		"<Envelope><Body><Other/></Body></Envelope>"} {
		_, err := s.Check([]byte(other))
		assert.ErrorIs(t, err, &schema.Error{Code: schema.Drift}, other)
	}
	// On a learned shape alone.
	learned, err := learn.FromMessage([]byte(strings.Replace(string(good), "<F>0.5</F>", "<G/>", 1)))
	require.NoError(t, err)
	typed, drift := s.Apply(learned)
	require.NotNil(t, typed)
	var said error
	for _, d := range drift {
		said = errors.Join(said, d)
	}
	assert.ErrorContains(t, said, "element F is missing")
	assert.ErrorContains(t, said, "element G is not described here")
	typed, drift = parse(t, `<element name="Z" type="int"/>`).Apply(learned)
	assert.Nil(t, typed)
	require.Len(t, drift, 1)
}

// What parses is printed back to the same, and has the fingerprint of its canonical form.
func FuzzParse(f *testing.F) {
	names, err := filepath.Glob("testdata/*.xsd")
	require.NoError(f, err)
	require.NotEmpty(f, names)
	for _, n := range names {
		text, err := os.ReadFile(n)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(all))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := schema.Parse(in)
		if err != nil {
			var e *schema.Error
			require.ErrorAs(t, err, &e)
			return
		}
		for _, printed := range []string{s.String(), string(s.Compact())} {
			again, err := schema.Parse([]byte(printed))
			if errors.Is(err, &schema.Error{Code: schema.TooLarge}) {
				continue // indented it is longer
			}
			require.NoError(t, err, printed)
			require.Equal(t, s.URI(), again.URI())
			require.Equal(t, s.Root(), again.Root())
		}
	})
}

// No schema and message break anything, however badly they fit, and a typed shape is a shape.
func FuzzShape(f *testing.F) {
	f.Add(load(f, "strings.xsd"),
		[]byte(`<Envelope><Body><HHFR><String1>a</String1><String2/></HHFR></Body></Envelope>`))
	f.Add([]byte(all), []byte(`<Envelope><Body><All a="1"><S/><Any><i>1</i></Any></All></Body></Envelope>`))
	f.Fuzz(func(t *testing.T, text, message []byte) {
		s, err := schema.Parse(text)
		if err != nil || len(message) > 1<<16 {
			return
		}
		made, _, err := s.Shape(message)
		if err != nil {
			return
		}
		var back []byte
		var joiner program.Joiner
		var last []byte
		var lastText, any bool
		p := program.Compile(made)
		joiner.Reset(p)
		var splitter program.Splitter
		splitter.Reset(p, 4096, false, func(text bool, segment []byte) (err error) {
			if any {
				back, err = joiner.Join(back, last, lastText, false)
			}
			last, lastText, any = append([]byte(nil), segment...), text, true
			return err
		})
		require.NoError(t, splitter.Split(message))
		back, err = joiner.Join(back, last, lastText, true)
		require.NoError(t, err)
		require.Equal(t, string(message), string(back))
	})
}

var xmlBlock = regexp.MustCompile("(?s)```xml\n(.*?)```")

// The schemas in docs/negotiation.md are valid schemas.
func TestDocumentedExamples(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "negotiation.md"))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "## 8. HHFR Schema")
	require.True(t, ok)
	blocks := xmlBlock.FindAllStringSubmatch(section, -1)
	require.Len(t, blocks, 2)
	assert.Equal(t, string(load(t, "strings.xsd")), blocks[0][1])
	assert.Equal(t, 90, parse(t, blocks[1][1]).Root().Items)
}

// A schema may declare header blocks and namespaces: they are checked, and typed, where messages
// have them.
func TestHeadersAndNamespaces(t *testing.T) {
	text := `<xs:header>
  <xs:element name="When" targetNamespace="urn:h">
    <xs:complexType>
      <xs:attribute name="zone" type="byte"/>
      <xs:element name="at" type="string"/>
    </xs:complexType>
  </xs:element>
</xs:header>
<xs:element name="Put" targetNamespace="urn:&amp;b">
  <xs:complexType>
    <xs:element name="L" type="array" primitives="int" item="n"/>
    <xs:element name="U" targetNamespace="" type="string"/>
  </xs:complexType>
</xs:element>
`
	s := parse(t, text)
	assert.Equal(t, text, s.String())
	assert.Equal(t, s.Root(), parse(t, string(s.Compact())).Root())
	assert.Equal(t, s.Headers(), parse(t, string(s.Compact())).Headers())
	made, err := s.Message(map[string]any{"L": []int{1, 2}, "U": "7"})
	require.NoError(t, err)
	assert.Contains(t, string(made), `<Put xmlns="urn:&amp;b"><L><n>1</n><n>2</n></L><U xmlns="">7</U></Put>`)
	drift, err := s.Check(made)
	require.NoError(t, err)
	assert.Empty(t, drift, "header blocks may be absent")

	const good = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:h="urn:h"><s:Header>` +
		`<Other/><h:When zone="1"><h:at>0012</h:at></h:When></s:Header><s:Body>` +
		`<p:Put xmlns:p="urn:&amp;b"><p:L><p:n>1</p:n></p:L><U>7</U></p:Put></s:Body></s:Envelope>`
	shaped, drift, err := s.Shape([]byte(good))
	require.NoError(t, err)
	assert.Empty(t, drift)
	var types []shape.Type
	values(shaped.Root(), &types)
	assert.Equal(t, []shape.Type{shape.TypeByte, shape.TypeString, shape.TypeInt, shape.TypeString}, types)
	_, back := carry(t, shaped, []byte(good))
	assert.Equal(t, good, string(back))

	for _, tc := range []struct{ old, new, says string }{
		{`zone="1"`, `zone="x"`, "Header/When: attribute zone is no byte"},
		{`urn:&amp;b`, `urn:c`, `Put: in the namespace "urn:c", where "urn:&b" is described`},
		{`<p:n>1</p:n>`, `<p:m>1</p:m>`, "items named m, where n is described"},
	} {
		drift, err := s.Check([]byte(strings.ReplaceAll(good, tc.old, tc.new)))
		require.NoError(t, err)
		require.NotEmpty(t, drift, tc.says)
		assert.ErrorContains(t, drift[0], tc.says)
	}

	for in, at := range map[string]string{
		`<header></header><element name="a" type="int"/>`:                                   "1:9",
		`<header><element name="a" type="int"/></header>`:                                   "1:48",
		`<header><element name="a" type="int"/>`:                                            "1:39",
		`<header x="1"><element name="a" type="int"/></header>`:                             "1:9",
		`<header><element name="a" type="int"/><element name="a" type="int"/></header>`:     "1:39",
		`<element name="a" type="int" item="n"/>`:                                           "1:1",
		`<element name="a" type="array" primitives="int" item="1"/>`:                        "1:1",
		`<element name="a" targetNamespace="&#65;" type="int"/>`:                            "1:1",
		`<element name="a" targetNamespace="` + strings.Repeat("a", 300) + `" type="int"/>`: "1:1",
	} {
		_, err := schema.Parse([]byte(in))
		var e *schema.Error
		require.ErrorAs(t, err, &e, in)
		assert.Equal(t, at, fmt.Sprintf("%d:%d", e.Line, e.Column), "%s: %v", in, err)
	}
}

// A schema that is read with a prefix of its own is printed so that it can be read again.
func TestPrintedSchemasAreRead(t *testing.T) {
	s := parse(t, `<q:element xmlns:q="http://www.w3.org/2001/XMLSchema" name="a" type="q:int"/>`)
	assert.Equal(t, s.URI(), parse(t, s.String()).URI())
}
