package pull_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// trace writes what a parser reads as one text: text that comes in several steps as one.
func trace(src []byte) (string, error) {
	var p pull.Parser
	p.Reset(src)
	var out, text bytes.Buffer
	for {
		step, err := p.Next()
		if step != pull.Chars && text.Len() > 0 {
			fmt.Fprintf(&out, "%q|", text.Bytes())
			text.Reset()
		}
		if err != nil {
			return out.String(), err
		}
		switch step {
		case pull.StartTag:
			space, local := p.Name()
			fmt.Fprintf(&out, "<{%s}%s", space, local)
			for _, a := range p.Attrs() {
				fmt.Fprintf(&out, " {%s}%s=%q", a.Space, a.Local, a.Value)
			}
			out.WriteString("|")
		case pull.EndTag:
			out.WriteString(">|")
		case pull.Chars:
			text.Write(p.Text())
		}
	}
}

// reference is trace by encoding/xml.
func reference(src []byte) (string, error) {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(src, []byte("\xEF\xBB\xBF"))))
	var out, text bytes.Buffer
	depth := 0
	for {
		t, err := d.Token()
		switch t.(type) {
		case xml.CharData, xml.Comment, xml.ProcInst:
		default:
			if text.Len() > 0 {
				fmt.Fprintf(&out, "%q|", text.Bytes())
				text.Reset()
			}
		}
		if err != nil {
			return out.String(), err
		}
		switch t := t.(type) {
		case xml.StartElement:
			depth++
			fmt.Fprintf(&out, "<{%s}%s", t.Name.Space, t.Name.Local)
			for _, a := range t.Attr {
				if a.Name.Space != "xmlns" && a.Name != (xml.Name{Local: "xmlns"}) {
					fmt.Fprintf(&out, " {%s}%s=%q", a.Name.Space, a.Name.Local, a.Value)
				}
			}
			out.WriteString("|")
		case xml.EndElement:
			depth--
			out.WriteString(">|")
		case xml.CharData:
			if depth > 0 {
				text.Write(t)
			}
		}
	}
}

var documents = []struct{ in, want, fails string }{
	{`<a/>`, "<{}a|>|", ""},
	{"\xEF\xBB\xBF<?xml version='1.0' encoding = 'utf-8' standalone='yes'?>\n<a></a>\n", "<{}a|>|", ""},
	{`<a b="1" xmlns="urn:x" c="&lt;&#x41;&quot;"/>`, `<{urn:x}a {}b="1" {}c="<A\""|>|`, ""},
	{`<p:a xmlns:p="urn:&amp;x" p:b="1"><p:c/><c xmlns:p="urn:y" xmlns="urn:z" p:b="2"/><p:d/></p:a>`,
		`<{urn:&x}a {urn:&x}b="1"|<{urn:&x}c|>|<{urn:z}c {urn:y}b="2"|>|<{urn:&x}d|>|>|`, ""},
	{`<a xmlns="urn:x"><b xmlns=""/></a>`, `<{urn:x}a|<{}b|>|>|`, ""},
	{`<a xml:lang="de"/>`, `<{}a {http://www.w3.org/XML/1998/namespace}lang="de"|>|`, ""},
	{"<a>1\r\n2\r3&#13;4<!-- c --><![CDATA[<&\r\n]]>&#x1F600;é</a>", `<{}a|"1\n2\n3\r4<&\n😀é"|>|`, ""},
	{"<größe ä:b='1' xmlns:ä='urn:x'/>", `<{}größe {urn:x}b="1"|>|`, ""},
	{"", "", "the document ends too early"},
	{"<a>", "<{}a|", "the document ends too early"},
	{"<a></b>", "<{}a|", `the end tag of "b" in "a"`},
	{"</a>", "", "an end tag without its start tag"},
	{"<a/><b/>", "<{}a|>|", "a second root element"},
	{"<a/>x", "<{}a|>|", "text outside of the root element"},
	{"<![CDATA[x]]><a/>", "", "text outside of the root element"},
	{"<!DOCTYPE a><a/>", "", "a document type declaration is not allowed"},
	{"<a>&b;</a>", "<{}a|", `"&b;</a>" is no reference`[:4]},
	{"<a>&#0;</a>", "<{}a|", "is no reference"},
	{"<a>&#xD800;</a>", "<{}a|", "is no reference"},
	{"<a>&amp</a>", "<{}a|", "is no reference"},
	{"<a>\x01</a>", "<{}a|", "character 0x01 cannot stand in XML"},
	{"<a>\xFF</a>", "<{}a|", "byte 0xff begins no character"},
	{"<a>\uFFFE</a>", "<{}a|", "byte 0xef begins no character"},
	{"<a>]]></a>", "<{}a|", "]]> in text"},
	{"<a b=']]>'/>", `<{}a {}b="]]>"|>|`, ""},
	{"<p:a/>", "", `the prefix of "p:a" is not declared`},
	{"<a p:b='1'/>", "", `the prefix "p" is not declared`},
	{"<a b='1' b='2'/>", "", `"b" stands twice`},
	{"<a:b:c xmlns:a='urn:x'/>", "", `"a:b:c" is no name`},
	{"<1/>", "", `"1" is no name`},
	{"<a xmlns:p=''/>", "", `the prefix "p" cannot be declared as ""`},
	{"<a xmlns:xml='urn:x'/>", "", `the prefix "xml" cannot be declared as "urn:x"`},
	{"<a xmlns:xmlns='urn:x'/>", "", `the prefix "xmlns" cannot be declared as "urn:x"`},
	{"<!-- a -- b --><a/>", "", "-- inside a comment"},
	{"<?xml version='1.1'?><a/>", "", "is no declaration of XML 1.0 at the start"},
	{"<a/><?xml version='1.0'?>", "<{}a|>|", "is no declaration of XML 1.0 at the start"},
	{"<?xml version='1.0' encoding='latin1'?><a/>", "", `the encoding "latin1" is not read, only UTF-8`},
	{strings.Repeat("<a>", 1001), "", "elements nest deeper than 1000"},
	{"<a" + strings.Repeat(" b='1'", 300) + "/>", "", "more than 128 attributes"},
	{manyPrefixes(200, 4), "", "more than 128 prefixes"},
	{manyNames(1000), "", ""},
	{manyNames(1001), "", `is no name`},
}

// manyPrefixes declares so many prefixes in each of so many elements.
func manyPrefixes(each, elements int) string {
	tag := "<a"
	for i := range min(each, 100) {
		tag += fmt.Sprintf(" xmlns:p%d='urn:x'", i)
	}
	return strings.Repeat(tag+">", elements*each/100)
}

// manyNames has so many names beyond ASCII, each twice.
func manyNames(n int) string {
	text := "<a>"
	for i := range n {
		text += fmt.Sprintf("<é%d></é%[1]d><é%[1]d/>", i)
	}
	return text + "</a>"
}

func TestParser(t *testing.T) {
	for _, tc := range documents {
		got, err := trace([]byte(tc.in))
		if tc.fails == "" {
			if tc.want != "" {
				assert.Equal(t, tc.want, got)
			}
			assert.Equal(t, io.EOF, err)
			continue
		}
		if tc.want != "" {
			assert.Equal(t, tc.want, got)
		}
		require.Error(t, err, "%s", tc.in)
		assert.Contains(t, err.Error(), tc.fails)
	}
}

func TestContent(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"<a/>", ""}, {"<a>x</a>", "x"}, {"<a>&lt;x</a>", "<x"},
		{"<a b='&lt;'>&lt;<![CDATA[&lt;]]>&gt;<!-- c -->&amp;\r\n</a>", "<&lt;>&\n"},
		{"<a>x<b/></a>", `error line 1, column 5 (offset 4): element "b" where text is expected`},
		{"<a><b/></a>", `error line 1, column 4 (offset 3): element "b" where text is expected`},
		{"<a>x", "error line 1, column 5 (offset 4): the document ends too early"},
	} {
		var p pull.Parser
		p.Reset([]byte(tc.in))
		_, err := p.Next()
		require.NoError(t, err)
		text, err := p.Content()
		if err != nil {
			text = []byte("error " + err.Error())
			_, again := p.Next()
			assert.Equal(t, err, again, "an error stays")
		} else {
			assert.Zero(t, p.Depth())
		}
		assert.Equal(t, tc.want, string(text))
	}
}

// What stands in memory after steps is not overwritten by the steps that follow it, where it
// counts.
func TestNamespacesStay(t *testing.T) {
	got, err := trace([]byte(`<a xmlns="urn:&amp;1" b="&lt;"><c d="&gt;&gt;&gt;&gt;&gt;">` +
		`&amp;&amp;&amp;&amp;&amp;</c><e/></a>`))
	assert.Equal(t, io.EOF, err)
	assert.Equal(t, `<{urn:&1}a {}b="<"|<{urn:&1}c {}d=">>>>>"|"&&&&&"|>|<{urn:&1}e|>|>|`, got)
}

// A whole document has comments and instructions, and white space in attributes as one space.
func TestWholeDocuments(t *testing.T) {
	p := pull.Parser{Whole: true}
	p.Reset([]byte("<?xml version=\"1.0\"?><?t  d\r\n?><!--\r\n-->" +
		"<p:a xmlns:p='u' xmlns='v' b='x\r\n\ty&#10;'><!--&amp;--></p:a>"))
	var got []string
	for {
		found, err := p.Next()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		space, local := p.Name()
		switch found {
		case pull.Comment:
			got = append(got, fmt.Sprintf("comment %q", p.Text()))
		case pull.Instruction:
			got = append(got, fmt.Sprintf("instruction %s %q", local, p.Text()))
		case pull.StartTag:
			got = append(got, fmt.Sprintf("%s{%s}%s %q %q", p.Prefix(), space, local, p.Declared(), p.Attrs()))
		default:
		}
	}
	assert.Equal(t, []string{
		`instruction t "d\n"`, `comment "\n"`, `p{u}a [{"p" "u"} {"" "v"}] [{"" "" "b" "x  y\n"}]`, `comment "&amp;"`,
	}, got)
}

func TestReadingAllocatesNothing(t *testing.T) {
	src := []byte(`<a xmlns="urn:x" b="&lt;">` + strings.Repeat("<c>&amp;<![CDATA[x]]></c>", 10) + "</a>")
	var p pull.Parser
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		p.Reset(src)
		for {
			if _, err := p.Next(); errors.Is(err, io.EOF) {
				return
			}
		}
	}))
}

// FuzzParser: encoding/xml reads the same of whatever the parser reads.
func FuzzParser(f *testing.F) {
	for _, tc := range documents {
		f.Add([]byte(tc.in))
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "soap", "*.xml"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := trace(src)
		if !errors.Is(err, io.EOF) {
			return
		}
		want, err := reference(src)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, want, got)
	})
}
