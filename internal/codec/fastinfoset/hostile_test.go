package fastinfoset_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

const head = "\xE0\x00\x00\x01\x00"

// readAll reads a document to its end.
func readAll(r *fastinfoset.Reader, doc []byte) (events int, err error) {
	r.Reset(doc)
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events++
	}
}

// TestEndedTwice: Apache CXF writes the end of a document twice.
func TestEndedTwice(t *testing.T) {
	for _, doc := range []string{head + "\x3C\x00a\xFF\xF0", head + "\x3C\x00a\xF0\xF0\xF0"} {
		text, err := new(fastinfoset.Reader).ToXML(nil, []byte(doc))
		require.NoError(t, err)
		assert.Equal(t, "<a/>", string(text))
	}
}

func TestWrongDocuments(t *testing.T) {
	for _, tc := range []struct{ name, doc, want string }{
		{"empty", "", "offset 0: the Fast Infoset document ends too early"},
		{"XML", "<a/>", "offset 0: no Fast Infoset: byte 0x3c where 0xe0 is expected: no Fast Infoset of version 1"},
		{"version", "\xE0\x00\x00\x02\x00", "offset 3: no Fast Infoset: byte 0x02 where 0x01 is expected"},
		{"declaration", "<?xml version='1.0'?>" + head, "offset 0: no Fast Infoset: an XML declaration that is none"},
		{"reserved", "\xE0\x00\x00\x01\x80", "offset 4: no Fast Infoset: unknown parts of a document"},
		{"no root", head + "\xF0", "offset 5: no Fast Infoset: the end of the document before"},
		{"content", head + "\x90a", "offset 5: no Fast Infoset: content outside of the root"},
		{"two roots", head + "\x3C\x00a\xF0\x00\xFF", "offset 9: no Fast Infoset: a second root element"},
		{"behind", head + "\x3C\x00a\xFFx", "offset 9: no Fast Infoset: something behind the end"},
		{"ends", head + "\x3C\x00a\xF0\xFF", "offset 10: no Fast Infoset: something behind the end"},
		{"ended thrice", head + "\x3C\x00a\xFF\xF0\xF0", "offset 9: no Fast Infoset: something behind the end"},
		{"index", head + "\x05", "offset 5: no Fast Infoset: index 6 of a table of 0 names of elements"},
		{"chunk", head + "\x3C\x00a\xA0", "offset 8: no Fast Infoset: index 1 of a table of 0 texts of content"},
		{"attribute", head + "\x7C\x00a\x00\x40x", "offset 5: no Fast Infoset: index 1 of a table of 0 names of attr"},
		{"twice", head + "\x7C\x00a\x78\x00b\x40x\x00\x40y\xF0",
			"offset 5: no Fast Infoset: an attribute that stands twice",
		},
		{"prefix alone", head + "\x3E\x80\x00a",
			"offset 5: no Fast Infoset: a name with a prefix and without a namespace",
		},
		{"undeclared", head + "\x3F\x00p\x00u\x00a\xFF",
			"offset 5: no Fast Infoset: a name of an element whose prefix",
		},
		{"no default", head + "\x3D\x00u\x00a\xFF", "offset 5: no Fast Infoset: a name of an element whose prefix"},
		{"xmlns", head + "\x38\xCF\x04xmlns\x00u\xF0\x3C\x00a", "offset 5: no Fast Infoset: a prefix that cannot"},
		{"xml", head + "\x38\xCF\x80\x00u\xF0\x3C\x00a",
			"offset 5: no Fast Infoset: a prefix that cannot be declared so",
		},
		{"attribute xmlns", head + "\x7C\x00a\x78\x04xmlns\x00u\xF0",
			"offset 5: no Fast Infoset: a name of an attribute",
		},
		{"declared twice", head + "\x38\xCF\x00p\x00u\xCF\x81\x00v\xF0\x3C\x00a", "a prefix that is declared twice"},
		{"name", head + "\x3C\x00<", `offset 7: no Fast Infoset: "<" is no name`},
		{"colon", head + "\x3C\x02a:b", `offset 7: no Fast Infoset: "a:b" is no name`},
		{"UTF-8", head + "\x3C\x00a\x91x\xFF", "offset 10: no Fast Infoset: byte 0xff is or begins no character"},
		{"control", head + "\x3C\x00a\x90\x00", "offset 9: no Fast Infoset: byte 0x00 is or begins no character"},
		{"UTF-16", head + "\x3C\x00a\x85\xD8\x00", "offset 9: no Fast Infoset: half a character in UTF-16"},
		{"odd", head + "\x3C\x00a\x84a", "offset 9: no Fast Infoset: UTF-16 of an odd number of bytes"},
		{"alphabet", head + "\x3C\x00a\x88\x0C\x12", "offset 10: Fast Infoset with something unknown: alphabet 4"},
		{"algorithm", head + "\x3C\x00a\x8C\x7C\x12",
			"offset 10: Fast Infoset with something unknown: encoding algorithm 32",
		},
		{"int", head + "\x3C\x00a\x8C\x0C\x12",
			"offset 10: no Fast Infoset: encoding algorithm 4: 1 bytes of values of 4",
		},
		{"boolean", head + "\x3C\x00a\x8C\x14\x92", "encoding algorithm 6: 9 unused bits of 4"},
		{"huge", head + "\x3C\x00a\x83\xFF\xFF\xFF\xFF",
			"offset 13: the Fast Infoset document ends too early: a string of 429496",
		},
		{"length", head + "\x3C\x70", "offset 6: no Fast Infoset: byte 0x70 begins no length"},
		{"big index", head + "\x3C\xEF\xFF\xFF", "offset 9: no Fast Infoset: index 1056832 of a table"},
		{"item", head + "\x3C\x00a\xE3", "offset 8: no Fast Infoset: byte 0xe3 begins no item"},
		{"half an end", head + "\x3C\x00a\xF1", "offset 8: no Fast Infoset: byte 0xf1 begins no item"},
		{"vocabulary", "\xE0\x00\x00\x01\x20\x10\x00\x00u\x3C",
			"offset 5: Fast Infoset with something unknown: the external",
		},
		{"doctype", head + "\xC4\xF0\xC4", "a document type declaration behind a first one"},
		{"in doctype", head + "\xC4\xE2\xFF", "a document type declaration has instructions and nothing else"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r fastinfoset.Reader
			_, err := readAll(&r, []byte(tc.doc))
			require.ErrorContains(t, err, tc.want)
			var e *fastinfoset.Error
			require.ErrorAs(t, err, &e)
			assert.LessOrEqual(t, int(e.At), len(tc.doc))
			_, again := r.Next()
			assert.Equal(t, err, again, "an error stays")
		})
	}
}

func TestNoDoctypeInSOAP(t *testing.T) {
	doc := []byte(head + "\xC6\x00s\xE1\x00t\xFF\xF0\x3C\x00a\xCA\x00e\x80\xFF")
	var r fastinfoset.Reader
	got, err := r.ToXML(nil, doc)
	require.NoError(t, err)
	assert.Equal(t, `<?t?><!DOCTYPE a SYSTEM "s"><a>&e;</a>`, string(got))
	same, err := copied(doc)
	require.NoError(t, err)
	assert.Equal(t, doc, same)

	r.NoDoctype = true
	_, err = r.ToXML(nil, doc)
	require.ErrorContains(t, err, "offset 5: Fast Infoset that is not allowed: a document type declaration")
	_, err = new(fastinfoset.InfosetWriter).FromXML(nil, []byte(`<!DOCTYPE a SYSTEM "s"><a/>`))
	require.ErrorContains(t, err, "a document type declaration is not allowed")
}

// What is cut is an error at where it ends, and never a panic.
func TestCutAtEveryByte(t *testing.T) {
	for name, v := range vectors(t) {
		for n := range v[0] {
			r := fastinfoset.Reader{External: known}
			_, err := readAll(&r, v[0][:n])
			var e *fastinfoset.Error
			require.ErrorAs(t, err, &e, "%s[:%d]", name, n)
			if name != "fi-xmldecl" { // where half a declaration is none
				require.Equal(t, fastinfoset.Truncated, e.Code, "%s[:%d]: %v", name, n, err)
			}
			require.LessOrEqual(t, int(e.At), n)
		}
	}
}

// Each bit changed: an error, or a document that can be written again.
func TestEveryBitFlipped(t *testing.T) {
	for name, v := range vectors(t) {
		doc := bytes.Clone(v[0])
		for bit := range len(doc) * 8 {
			doc[bit/8] ^= 0x80 >> (bit % 8)
			r := fastinfoset.Reader{External: known}
			if text, err := r.ToXML(nil, doc); err == nil {
				_, err := canonicalOf(text)
				require.NoError(t, err, "%s, bit %d: %.200s", name, bit, text)
			}
			doc[bit/8] ^= 0x80 >> (bit % 8)
		}
	}
}

func TestLimits(t *testing.T) {
	deep := head + strings.Repeat("\x3C\x00a", 1001)
	many := head + "\x3C\x00a" + strings.Repeat("\x92\x00abc", 20)
	long := "\x83\x00\x00\x20\x00" + strings.Repeat("x", 8192+259) // 8,451 bytes, in the table below
	bomb := head + "\x3C\x00a\x93" + long[1:] + strings.Repeat("\xA0", 1000)
	for _, tc := range []struct {
		doc, want string
		limits    fastinfoset.Limits
	}{
		{deep, "offset 3005: Fast Infoset beyond a limit: elements nest too deep", fastinfoset.Limits{}},
		{many, "Fast Infoset beyond a limit: a table of more than 10 entries", fastinfoset.Limits{Entries: 10}},
		{many, "Fast Infoset beyond a limit: tables of more than 25 bytes", fastinfoset.Limits{TableBytes: 25}},
		{bomb, "Fast Infoset beyond a limit: more than 1048576 bytes of text", fastinfoset.Limits{TextBytes: 1 << 20}},
	} {
		r := fastinfoset.Reader{Limits: tc.limits}
		_, err := readAll(&r, []byte(tc.doc))
		require.ErrorContains(t, err, tc.want)
	}
	attrs := head + "\x7C\x00a"
	for range 129 {
		attrs += "\x78\x00b\xFF"
	}
	_, err := readAll(new(fastinfoset.Reader), []byte(attrs))
	require.ErrorContains(t, err, "more than 128 attributes of one element")
}

// longNamespaces is a document of elements with an attribute of each of some long namespaces, which
// differ at their ends.
func longNamespaces(tb testing.TB, namespaces, elements int) []byte {
	tb.Helper()
	var text, attrs strings.Builder
	text.WriteString("<r")
	for i := range namespaces {
		fmt.Fprintf(&text, " xmlns:p%[1]d='%[2]s%[1]d'", i, strings.Repeat("u", 16<<10))
		fmt.Fprintf(&attrs, " p%d:a=''", i)
	}
	text.WriteString(">" + strings.Repeat("<b"+attrs.String()+"/>", elements) + "</r>")
	doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(text.String()))
	require.NoError(tb, err)
	return doc
}

// A namespace counts wherever a name has it: it is compared there.
func TestNamespacesCount(t *testing.T) {
	doc := longNamespaces(t, 100, 10)
	_, err := readAll(&fastinfoset.Reader{Limits: fastinfoset.Limits{TextBytes: 20 << 20}}, doc)
	require.NoError(t, err)
	_, err = readAll(&fastinfoset.Reader{Limits: fastinfoset.Limits{TextBytes: 10 << 20}}, doc)
	require.ErrorContains(t, err, "Fast Infoset beyond a limit: more than 10485760 bytes of text")
}

// Attributes are the same where their namespaces are, whatever the prefixes.
func TestAttributesByNamespace(t *testing.T) {
	for text, want := range map[string]string{
		`<r xmlns:a="u" xmlns:b="u" a:n="" b:n=""/>`:                           "an attribute that stands twice: \"r\"",
		`<r xmlns:a="u"><e xmlns:b="v" xmlns:c="u" a:n="" b:n="" c:n=""/></r>`: "an attribute that stands twice: \"e\"",
		`<r xmlns:a="u" xmlns:b="u" a:n="" b:m=""/>`:                           "",
		`<r xmlns:a="u" xmlns:b="v" a:n="" b:n="" n="" xml:n=""/>`:             "",
		`<r xmlns:a="u" xmlns:b="v"><e xmlns:a="w" a:n="" b:n=""/></r>`:        "",
		`<r xmlns="u" xmlns:a="u" n="" a:n=""/>`:                               "",
	} {
		_, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(text))
		if want == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, want, text)
		}
	}
}

// Indexes of every length: more texts and names than the shorter ones can count, and more than the
// writer puts into tables.
func TestManyEntries(t *testing.T) {
	for _, n := range []int{40, 3_000, 300_000} {
		var text strings.Builder
		text.WriteString("<r>")
		for range 2 {
			for i := range n {
				fmt.Fprintf(&text, "<e%[2]d a%[2]d='v%[1]d'>c%[1]d</e%[2]d>", i, i%8_500)
			}
		}
		text.WriteString("</r>")
		doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(text.String()))
		require.NoError(t, err)
		got, err := new(fastinfoset.Reader).ToXML(nil, doc)
		require.NoError(t, err)
		require.Equal(t, strings.ReplaceAll(text.String(), "'", `"`) == string(got), true)
		t.Logf("%d elements: %d bytes, %d as Fast Infoset", 2*n, text.Len(), len(doc))
	}
}

func TestWriterRefuses(t *testing.T) {
	start := &fastinfoset.Event{Kind: fastinfoset.StartElement, Name: fastinfoset.Name{Local: []byte("a")}}
	end := &fastinfoset.Event{Kind: fastinfoset.EndElement}
	text := func(v fastinfoset.Value) *fastinfoset.Event {
		return &fastinfoset.Event{Kind: fastinfoset.Characters, Value: v}
	}
	for _, tc := range []struct {
		want   string
		events []*fastinfoset.Event
	}{
		{"offset 5: no Fast Infoset: content outside of the root", []*fastinfoset.Event{text(fastinfoset.Value{})}},
		{"a second root element", []*fastinfoset.Event{start, end, start}},
		{"the end of an element that did not begin", []*fastinfoset.Event{start, end, end}},
		{"the end of the document before", []*fastinfoset.Event{start, {Kind: fastinfoset.EndDocument}}},
		{"a second beginning", []*fastinfoset.Event{start, {Kind: fastinfoset.StartDocument}}},
		{`"a b" is no name`, []*fastinfoset.Event{
			{Kind: fastinfoset.StartElement, Name: fastinfoset.Name{Local: []byte("a b")}},
		}},
		{"byte 0x01 is or begins no character", []*fastinfoset.Event{
			start, text(fastinfoset.Value{Bytes: []byte("a\x01")}),
		}},
		{"an encoding algorithm that is not built in", []*fastinfoset.Event{
			start, text(fastinfoset.Value{Bytes: []byte("a"), Form: fastinfoset.Encoded, Index: 40}),
		}},
		{"3 bytes of values of 2", []*fastinfoset.Event{
			start, text(fastinfoset.Value{Bytes: []byte("abc"), Form: fastinfoset.Encoded, Index: fastinfoset.Short}),
		}},
		{"no event of kind 99", []*fastinfoset.Event{start, {Kind: 99}}},
	} {
		var w fastinfoset.InfosetWriter
		w.Reset([]byte("before"))
		var err error
		for _, ev := range tc.events {
			err = w.Write(ev)
		}
		require.ErrorContains(t, err, tc.want)
		assert.Equal(t, err, w.Write(start), "an error stays")
	}
}

// What the Java library would misread is written otherwise.
func TestNothingThatTheJavaLibraryMisreads(t *testing.T) {
	written := func(v fastinfoset.Value) string {
		var w fastinfoset.InfosetWriter
		w.Reset(nil)
		for _, ev := range []*fastinfoset.Event{
			{Kind: fastinfoset.StartElement, Name: fastinfoset.Name{Local: []byte("v")}},
			{Kind: fastinfoset.Characters, Value: v},
			{Kind: fastinfoset.EndElement}, {Kind: fastinfoset.EndDocument},
		} {
			require.NoError(t, w.Write(ev))
		}
		return string(w.Bytes())
	}
	booleans := func(bits byte, n int) fastinfoset.Value {
		b := make([]byte, (4+n+7)/8)
		b[0] = byte(len(b)*8-4-n) << 4
		b[0] |= bits
		return fastinfoset.Value{Bytes: b, Form: fastinfoset.Encoded, Index: fastinfoset.Boolean}
	}
	for n := range 40 {
		asText := strings.Contains(written(booleans(0, n)), "false")
		assert.Equal(t, n > 12 && n%8 >= 5, asText, "%d booleans", n)
	}
	numeric := func(text string) fastinfoset.Value {
		return fastinfoset.Value{Bytes: []byte(text), Form: fastinfoset.Restricted, Index: fastinfoset.Numeric}
	}
	assert.Equal(t, head+"\x3C\x00v\x88\x00\x15\xFF", written(numeric("15")))
	assert.Contains(t, written(numeric("1e5")), "1e5")
	assert.Contains(t, written(numeric("1x5")), "1x5")
	var w fastinfoset.InfosetWriter
	w.Reset(nil)
	section := fastinfoset.Value{Bytes: []byte("x<y"), Form: fastinfoset.Encoded, Index: fastinfoset.CDATA}
	number := fastinfoset.Value{Bytes: []byte{0, 7}, Form: fastinfoset.Encoded, Index: fastinfoset.Short}
	name := fastinfoset.Name{Local: []byte("v")}
	require.NoError(t, w.Write(&fastinfoset.Event{Kind: fastinfoset.StartElement, Name: name,
		Attrs: []fastinfoset.Attr{{Name: name, Value: section}}}))
	require.NoError(t, w.Write(&fastinfoset.Event{Kind: fastinfoset.Comment, Value: number}))
	assert.Equal(t, head+"\x7C\x00v\x78\x80\x42x<y\xF0\xE2\x407", string(w.Bytes()))
	utf16 := fastinfoset.Value{Bytes: []byte("é😀"), Form: fastinfoset.UTF16}
	assert.Equal(t, head+"\x3C\x00v\x86\x03\x00\xE9\xD8\x3D\xDE\x00\xFF", written(utf16))
	got, err := new(fastinfoset.Reader).ToXML(nil, []byte(written(utf16)))
	require.NoError(t, err)
	assert.Equal(t, "<v>é😀</v>", string(got))
}

func TestProperties(t *testing.T) {
	var w fastinfoset.InfosetWriter
	w.Reset(nil)
	properties := &fastinfoset.DocumentProperties{
		XMLDeclaration: true,
		Notations:      []fastinfoset.NotationOrEntity{{Name: []byte("n"), System: []byte("s")}},
		Unparsed: []fastinfoset.NotationOrEntity{
			{Name: []byte("e"), System: []byte("s"), Public: []byte("p"), Notation: []byte("n")},
		},
		Encoding: []byte("UTF-8"), Standalone: "yes", Version: []byte("1.0"),
	}
	require.NoError(t, w.Write(&fastinfoset.Event{Kind: fastinfoset.StartDocument}), "it has none")
	assert.Equal(t, head, string(w.Bytes()))
	w.Reset(nil)
	for range 200 {
		properties.Additional = append(properties.Additional,
			fastinfoset.Additional{URI: []byte("urn:x"), Data: []byte{0, 1}})
	}
	for _, ev := range []*fastinfoset.Event{
		{Kind: fastinfoset.StartDocument, Properties: properties},
		{Kind: fastinfoset.StartElement, Name: fastinfoset.Name{Local: []byte("a")}},
		{Kind: fastinfoset.EndElement}, {Kind: fastinfoset.EndDocument},
	} {
		require.NoError(t, w.Write(ev))
	}
	assert.True(t, strings.HasPrefix(string(w.Bytes()), "<?xml encoding='finf'?>\xE0\x00\x00\x01"))
	var r fastinfoset.Reader
	r.Reset(w.Bytes())
	ev, err := r.Next()
	require.NoError(t, err)
	assert.Equal(t, properties, ev.Properties)
}

func TestExternalVocabulary(t *testing.T) {
	w := fastinfoset.InfosetWriter{ExternalURI: "urn:voc:1", External: known("urn:voc:1")}
	doc, err := w.FromXML(nil, vectors(t)["fi-extvocab"][1])
	require.NoError(t, err)
	r := fastinfoset.Reader{External: known}
	got, err := r.ToXML(nil, doc)
	require.NoError(t, err)
	assert.Equal(t, `<p:a xmlns:p="urn:x" q="7">hi</p:a>`, string(got))
	assert.Less(t, len(doc), 36)
	_, err = new(fastinfoset.Reader).ToXML(nil, doc)
	require.ErrorContains(t, err, `Fast Infoset with something unknown: the external vocabulary "urn:voc:1"`)
}

// Own alphabets and algorithms, and names and texts, of an initial vocabulary.
func TestInitialVocabulary(t *testing.T) {
	doc := "\xE0\x00\x00\x01\x20\x0E\xFF" + "\x00\x02abc" + "\x00\x04urn:f" + "\x00\x00p" +
		"\x00\x00k" + "\x00\x00n" + "\x00\x00u" + "\x00\x00v" + "\x00\x01hi" + "\x00\x02cmt" +
		"\x00\x00\x00" + "\x00\x00\x00" +
		"\x40\x00\x80\xF0" + "\xA0" + "\x88\x3C\x1B" + "\xE2\x80" + "\xF0\xF0"
	var r fastinfoset.Reader
	got, err := r.ToXML(nil, []byte(doc))
	require.NoError(t, err)
	assert.Equal(t, `<k k="v">hiabc<!--cmt--></k>`, string(got))
	assert.Equal(t, "urn:f", string(r.AlgorithmURI(32)))
	assert.Nil(t, r.AlgorithmURI(33))
}

func TestWrittenVocabulary(t *testing.T) {
	values := func(texts ...string) (list []fastinfoset.Value) {
		for _, text := range texts {
			list = append(list, fastinfoset.Value{Bytes: []byte(text)})
		}
		return list
	}
	w := fastinfoset.InfosetWriter{Initial: &fastinfoset.Vocabulary{
		Prefixes: [][]byte{[]byte("p")}, Namespaces: [][]byte{[]byte("urn:p")},
		Locals:  [][]byte{[]byte("a"), []byte("k")},
		NCNames: [][]byte{[]byte("t")}, URIs: [][]byte{[]byte("urn:u")}, Values: values("v"),
		Chunks: values("hi", "longer than eight"), Others: values("o"),
	}}
	const text = `<p:a xmlns:p="urn:p" k="v">hi<?t o?>longer than eight<!--o--></p:a>`
	doc, err := w.FromXML(nil, []byte(text))
	require.NoError(t, err)
	body := "\x78\xCF\x81\x81\xF0\x3F\x81\x81\x80\x78\x81\x80\xF0\xA0\xE1\x80\x80\xA1\xE2\x80\xFF"
	assert.Equal(t, body, string(doc[len(doc)-len(body):]), "all by index")
	got, err := new(fastinfoset.Reader).ToXML(nil, doc)
	require.NoError(t, err)
	assert.Equal(t, text, string(got))
}

func TestTokens(t *testing.T) {
	const text = `<e:Envelope xmlns:e="urn:e"><e:Body><!--x--><?t d?><item xmlns="urn:i" a="1" e:b="2">x<n/></item>` +
		`</e:Body></e:Envelope>`
	doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(text))
	require.NoError(t, err)
	var r fastinfoset.Reader
	r.Reset(doc)
	got, want := xml.NewTokenDecoder(fastinfoset.NewTokenReader(&r)), xml.NewDecoder(strings.NewReader(text))
	for {
		w, err := want.Token()
		g, gotErr := got.Token()
		require.Equal(t, err, gotErr)
		require.Equal(t, w, g)
		if err != nil {
			return
		}
	}
}

// The text that is read in pieces is the one that is made at once, and so is the error.
func TestTextInPieces(t *testing.T) {
	for name, v := range vectors(t) {
		r := fastinfoset.Reader{External: known}
		for _, doc := range [][]byte{v[0], v[0][:len(v[0])-1]} {
			want, wantErr := r.ToXML(nil, doc)
			r.Reset(doc)
			got, err := io.ReadAll(iotest.OneByteReader(fastinfoset.NewTextReader(&r)))
			assert.Equal(t, wantErr, err, name)
			assert.Equal(t, string(want), string(got), name)
		}
	}
}

// messages are those of the tour, with the documents of them.
func messages(tb testing.TB) (texts, docs [][]byte) {
	tb.Helper()
	for _, text := range shared.Envelopes(tb, false) {
		doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, text)
		require.NoError(tb, err)
		texts, docs = append(texts, text), append(docs, doc)
	}
	return texts, docs
}

func TestNothingIsAllocatedInTheLongRun(t *testing.T) {
	texts, docs := messages(t)
	texts = slices.DeleteFunc(texts, func(text []byte) bool { // reading rare instructions takes memory
		return bytes.Contains(text[1:], []byte("<?")) || !bytes.Contains(text, []byte(`?>`)) ||
			!bytes.HasPrefix(text, []byte(`<?xml version="1.0" encoding="`)) ||
			bytes.Contains(text, []byte("standalone"))
	})
	require.NotEmpty(t, texts)
	var r fastinfoset.Reader
	var w fastinfoset.InfosetWriter
	var buf []byte
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		for _, doc := range docs {
			if _, err := readAll(&r, doc); err != nil {
				panic(err)
			}
			buf, _ = r.ToXML(buf[:0], doc)
		}
		for _, text := range texts {
			buf, _ = w.FromXML(buf[:0], text)
		}
	}))
}

func BenchmarkRead(b *testing.B) {
	_, docs := messages(b)
	var r fastinfoset.Reader
	b.ReportAllocs()
	for b.Loop() {
		for _, doc := range docs {
			if _, err := readAll(&r, doc); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.SetBytes(int64(len(bytes.Join(docs, nil))))
}

// BenchmarkLongNamespaces: what differs late is not compared in pairs.
func BenchmarkLongNamespaces(b *testing.B) {
	doc := longNamespaces(b, 120, 50)
	var r fastinfoset.Reader
	for b.Loop() {
		_, err := readAll(&r, doc)
		require.NoError(b, err)
	}
}

func BenchmarkToXML(b *testing.B) {
	_, docs := messages(b)
	var r fastinfoset.Reader
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		for _, doc := range docs {
			buf, _ = r.ToXML(buf[:0], doc)
		}
	}
	b.SetBytes(int64(len(bytes.Join(docs, nil))))
}

func BenchmarkFromXML(b *testing.B) {
	texts, _ := messages(b)
	var w fastinfoset.InfosetWriter
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		for _, text := range texts {
			buf, _ = w.FromXML(buf[:0], text)
		}
	}
	b.SetBytes(int64(len(bytes.Join(texts, nil))))
}

func BenchmarkParseXML(b *testing.B) {
	texts, _ := messages(b)
	p := pull.Parser{Whole: true}
	for b.Loop() {
		for _, text := range texts {
			p.Reset(text)
			for {
				if _, err := p.Next(); err != nil {
					break
				}
			}
		}
	}
	b.SetBytes(int64(len(bytes.Join(texts, nil))))
}

// FuzzRead: what is read can be written, and is read the same then; its XML is well-formed, and
// comes back as the same XML.
func FuzzRead(f *testing.F) {
	_, docs := messages(f)
	for _, doc := range docs {
		f.Add(doc)
	}
	f.Add([]byte(head + "\xC6\x00s\xE1\x00t\xFF\xF0\x3C\x00a\xCA\x00e\x80\xFF"))
	f.Add([]byte("\xE0\x00\x00\x01\x7F\x00\x00u\x00d\x0F\xFC" +
		"\x00\x01ab\x00\x00u\x00\x00p\x00\x00u\x00\x00l\x00\x00n\xF0\xF0"))
	f.Add([]byte(head + "\x7C\x00v\x78\x00i\x30\x37\x00\x00\x00\x07\xFF\xFF\xFF\xFF" +
		"\xF0\x98\x02\x01\xA1\x2C\x5D\xB3\x8C\x15\x0B\x71\xFF"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		limits := fastinfoset.Limits{TextBytes: 1 << 20}
		r := fastinfoset.Reader{Limits: limits, External: known}
		text, err := r.ToXML(nil, doc)
		if err != nil {
			return
		}
		if same, err := copied(doc); err == nil { // an algorithm that is not built in is not written
			again, err := r.ToXML(nil, same)
			require.NoError(t, err)
			require.Equal(t, len(text), len(again))
		}
		if bytes.Contains(text, []byte("<!DOCTYPE")) || bytes.Contains(text, []byte("&")) {
			return
		}
		doc, err = new(fastinfoset.InfosetWriter).FromXML(nil, text)
		require.NoError(t, err, "%q", text)
		again, err := r.ToXML(nil, doc)
		require.NoError(t, err)
		require.Equal(t, canonical(t, text), canonical(t, again))
	})
}
