package fastinfoset_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// canonical writes an XML text in one form for all texts of the same infoset, as canonical XML
// does, with comments: sorted attributes and namespaces, text in one piece.
func canonical(t testing.TB, text []byte) string {
	t.Helper()
	got, err := canonicalOf(text)
	require.NoError(t, err, "%.200s", text)
	return got
}

func canonicalOf(text []byte) (string, error) {
	p := pull.Parser{Whole: true, MaxDepth: 1 << 20}
	p.Reset(text)
	var out, chars bytes.Buffer
	for {
		found, err := p.Next()
		if found != pull.Chars && chars.Len() > 0 {
			fmt.Fprintf(&out, "%q\n", chars.Bytes())
			chars.Reset()
		}
		switch {
		case errors.Is(err, io.EOF):
			return out.String(), nil
		case err != nil:
			return "", err
		}
		space, local := p.Name()
		switch found {
		case pull.StartTag:
			fmt.Fprintf(&out, "<%s {%s}%s", p.Prefix(), space, local)
			declared := slices.SortedFunc(slices.Values(p.Declared()), func(a, b pull.NSDecl) int {
				return bytes.Compare(a.Prefix, b.Prefix)
			})
			for _, d := range declared {
				fmt.Fprintf(&out, " xmlns:%s=%q", d.Prefix, d.Space)
			}
			attrs := slices.SortedFunc(slices.Values(p.Attrs()), func(a, b pull.Attr) int {
				return cmp.Or(bytes.Compare(a.Space, b.Space), bytes.Compare(a.Local, b.Local))
			})
			for _, a := range attrs {
				fmt.Fprintf(&out, " %s {%s}%s=%q", a.Prefix, a.Space, a.Local, a.Value)
			}
			out.WriteString("\n")
		case pull.EndTag:
			out.WriteString(">\n")
		case pull.Chars:
			chars.Write(p.Text())
		case pull.Comment:
			fmt.Fprintf(&out, "comment %q\n", p.Text())
		case pull.Instruction:
			fmt.Fprintf(&out, "instruction %s %q\n", local, p.Text())
		}
	}
}

// known is the external vocabulary of the vectors.
func known(uri string) *fastinfoset.Vocabulary {
	if uri != "urn:voc:1" {
		return nil
	}
	return &fastinfoset.Vocabulary{
		Prefixes: [][]byte{[]byte("p")}, Namespaces: [][]byte{[]byte("urn:x")}, Locals: [][]byte{[]byte("a")},
		Elements: []fastinfoset.Name{{Prefix: []byte("p"), Space: []byte("urn:x"), Local: []byte("a")}},
	}
}

// vectors are documents with their XML, by name.
func vectors(t testing.TB) map[string][2][]byte {
	t.Helper()
	list := map[string][2][]byte{}
	for _, name := range shared.Files(t, shared.Dir(t, "specs", "vectors", "fi"), func(path string) bool {
		return filepath.Ext(path) == ".fi"
	}) {
		name = strings.TrimSuffix(name, ".fi")
		list[filepath.Base(name)] = [2][]byte{shared.Read(t, name+".fi"), shared.Read(t, name+".xml")}
	}
	return list
}

// copied writes the events of a document again.
func copied(doc []byte) ([]byte, error) {
	r := fastinfoset.Reader{External: known}
	r.Reset(doc)
	var w fastinfoset.InfosetWriter
	w.Reset(nil)
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			return w.Bytes(), nil
		}
		if err == nil {
			err = w.Write(ev)
		}
		if err != nil {
			return nil, err
		}
	}
}

func TestVectors(t *testing.T) {
	// In these the vectors have what the XML does not say, or the Java library writes it otherwise.
	unlike := []string{
		"fi-additional-data", "fi-extvocab", "fi-initvocab", "fi-initvocab-ns", "fi-initvocab-strings", "fi-utf16",
		"fi-xmldecl", "fi-cdata",
	}
	var w fastinfoset.InfosetWriter
	r := fastinfoset.Reader{External: known}
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			doc, text := v[0], v[1]
			want := canonical(t, text)
			if name == "fi-alpha-numeric" {
				want = strings.ReplaceAll(want, "E", "e") // which the Java library writes for e
			}
			got, err := r.ToXML(nil, doc)
			require.NoError(t, err)
			assert.Equal(t, want, canonical(t, got))

			made, err := w.FromXML(nil, text)
			require.NoError(t, err)
			again, err := r.ToXML(nil, made)
			require.NoError(t, err)
			assert.Equal(t, canonical(t, text), canonical(t, again))

			same, err := copied(doc)
			require.NoError(t, err)
			again, err = r.ToXML(nil, same)
			require.NoError(t, err)
			assert.Equal(t, string(got), string(again), "events written as they were read")

			typed := strings.HasPrefix(name, "fi-al") || name == "fi-attr-alg"
			if !slices.Contains(unlike, name) && !typed {
				assert.Equal(t, doc, made, "the Java library writes the same bytes")
			}
			if typed && !strings.HasPrefix(name, "fi-alpha") { // which are not indexed
				assert.Equal(t, doc, same, "typed values stay such, byte for byte")
			}
		})
	}
}

// The XML messages of the corpus come back as the same infosets.
func TestCorpus(t *testing.T) {
	var w fastinfoset.InfosetWriter
	var r fastinfoset.Reader
	read, skipped, before, after := 0, 0, 0, 0
	for _, name := range shared.Files(t, shared.Dir(t, "corpus"), func(path string) bool {
		return slices.Contains([]string{".xml", ".wsdl", ".xsd"}, filepath.Ext(path))
	}) {
		text := shared.Read(t, name)
		want, err := canonicalOf(text)
		if err != nil { // no XML, another charset, or a document type declaration
			skipped++
			continue
		}
		doc, err := w.FromXML(nil, text)
		require.NoError(t, err, name)
		got, err := r.ToXML(nil, doc)
		require.NoError(t, err, name)
		require.Equal(t, want, canonical(t, got), name)
		read, before, after = read+1, before+len(text), after+len(doc)
	}
	t.Logf("%d texts of %d bytes, %d as Fast Infoset; %d no texts of this kind", read, before, after, skipped)
	assert.Greater(t, read, 200)
}

// A document that the Java library wrote, not this package.
func TestForeignDocument(t *testing.T) {
	name := filepath.Join(shared.Dir(t, "corpus", "fastinfoset", "jaxb-fi"), "UBL-example")
	var r fastinfoset.Reader
	got, err := r.ToXML(nil, shared.Read(t, name+".finf"))
	require.NoError(t, err)
	_, want, _ := strings.Cut(canonical(t, shared.Read(t, name+".xml")), "\n") // a comment that the XML got later
	assert.Equal(t, want, canonical(t, got))
}
