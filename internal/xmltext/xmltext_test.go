package xmltext_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xmltext"
)

var kinds = map[xmltext.Kind]string{
	xmltext.Text: "text", xmltext.Start: "start", xmltext.Empty: "empty", xmltext.End: "end",
	xmltext.Comment: "comment", xmltext.Inst: "pi", xmltext.CDATA: "cdata", xmltext.Doctype: "doctype",
}

var documents = []struct{ in, want string }{
	{"", ""},
	{"plain", "text plain|"},
	{"<a/>", "empty <a/>|"},
	{"<?xml version='1.0'?>\n<a b = \"1\"  c='<'/>", "error 2:16 < inside an attribute value"},
	{"<?xml version='1.0'?>\n<p:a b = \"1\"\n c='&lt;' >x</p:a >",
		"pi <?xml version='1.0'?>|text \n|start <p:a b = \"1\"\n c='&lt;' >|text x|end </p:a >|"},
	{"<a><!-- <b> --><![CDATA[<c>]]]></a>", "start <a>|comment <!-- <b> -->|cdata <![CDATA[<c>]]]>|end </a>|"},
	{"<![CDATA[<c>]]]]><d/>", "cdata <![CDATA[<c>]]]]>|empty <d/>|"},
	{"<!DOCTYPE a [<!ENTITY x \">\"><!-- ]> -->]><a/>",
		"doctype <!DOCTYPE a [<!ENTITY x \">\"><!-- ]> -->]>|empty <a/>|"},
	{"<a b=1>", "error 1:6 attribute value without quotes"},
	{"<a b>", "error 1:5 attribute without ="},
	{"<a b='1'c='2'>", "error 1:9 no white space before an attribute"},
	{"</a b>", "error 1:5 end tag with more than a name"},
	{"< a>", "error 1:2 a name is missing"},
	{"<!ELEMENT a>", "error 1:1 <! begins no comment, CDATA section or DOCTYPE"},
	{"<a/ >", "error 1:3 / inside a tag"},
	{"<a b='", "error truncated"}, {"<a", "error truncated"}, {"<", "error truncated"}, {"<!-", "error truncated"},
	{"<![CDATA[x", "error truncated"}, {"<? x", "error truncated"},
}

// trace writes the tokens of a document as one line.
func trace(t *testing.T, src string) string {
	var out strings.Builder
	tk := xmltext.New([]byte(src))
	for {
		tok, err := tk.Next()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		var e *xmltext.Error
		if errors.As(err, &e) {
			_, again := tk.Next()
			assert.Equal(t, err, again, "an error stays")
			if e.Code == xmltext.Truncated {
				return out.String() + "error truncated"
			}
			what := strings.TrimPrefix(e.Error(), "line ")
			what = strings.Replace(what, ", column ", ":", 1)
			before, after, _ := strings.Cut(what, " (offset ")
			_, after, _ = strings.Cut(after, "): ")
			return "error " + before + " " + after
		}
		require.NoError(t, err)
		out.WriteString(kinds[tok.Kind] + " " + src[tok.From:tok.To] + "|")
	}
}

func TestTokens(t *testing.T) {
	for _, d := range documents {
		got := trace(t, d.in)
		if strings.HasPrefix(d.want, "error") {
			assert.True(t, strings.HasSuffix(got, d.want), "%q: got %q", d.in, got)
			continue
		}
		assert.Equal(t, d.want, got, "%q", d.in)
	}
}

func TestAttributes(t *testing.T) {
	src := []byte("<p:a b = \"1\"\n c='' />")
	tk := xmltext.New(src)
	tok, err := tk.Next()
	require.NoError(t, err)
	assert.Equal(t, "p:a", string(src[tok.NameFrom:tok.NameTo]))
	assert.Equal(t, " />", string(src[tok.TagEnd:tok.To]))
	var got []string
	for _, a := range tk.Attrs() {
		got = append(got, string(src[a.From:a.To]), string(src[a.NameFrom:a.NameTo]),
			string(src[a.ValueFrom:a.ValueTo]))
	}
	assert.Equal(t, []string{" b = \"1\"", "b", "1", "\n c=''", "c", ""}, got)
}

func FuzzTokens(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d.in))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		tk := xmltext.New(src)
		at := 0
		for {
			tok, err := tk.Next()
			if err != nil {
				var e *xmltext.Error
				if errors.As(err, &e) {
					assert.True(t, e.At >= at && e.At <= len(src), "error at %d outside %d..%d", e.At, at, len(src))
				} else {
					assert.Equal(t, len(src), at)
				}
				return
			}
			require.Equal(t, at, tok.From, "tokens leave no gap")
			require.Greater(t, tok.To, tok.From)
			at = tok.To
		}
	})
}

func TestDocuments(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", ""}, {" \n", ""}, {"<a/>", "<a/>|"},
		{"<?xml version='1.0'?>\n<a><b>1</b></a>\n\n<!-- x --><c/>\n",
			"<?xml version='1.0'?>\n<a><b>1</b></a>|<!-- x --><c/>|"},
		{"<a></a><a><![CDATA[</a>]]></a>", "<a></a>|<a><![CDATA[</a>]]></a>|"},
		{"<a/><a><b></a", "<a/>|<a><b></a|"},
		{"<a/>no < xml", "<a/>|no < xml|"},
	} {
		for _, r := range []io.Reader{strings.NewReader(tc.in), iotest.OneByteReader(strings.NewReader(tc.in))} {
			got := ""
			for doc, err := range xmltext.Documents(r, 1000) {
				require.NoError(t, err)
				got += string(doc) + "|"
			}
			assert.Equal(t, tc.want, got)
		}
	}
	for _, err := range xmltext.Documents(strings.NewReader("<a>"+strings.Repeat("x", 40000)), 1000) {
		assert.ErrorContains(t, err, "more than 1000 bytes")
	}
	for _, err := range xmltext.Documents(iotest.ErrReader(io.ErrClosedPipe), 1000) {
		assert.ErrorIs(t, err, io.ErrClosedPipe)
	}
}
