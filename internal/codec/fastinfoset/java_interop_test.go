//go:build interop

package fastinfoset_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/shared"
)

// javaLibrary runs testdata/interop/fastinfoset/Convert.java.
func javaLibrary(t *testing.T) func(mode, folder string) {
	t.Helper()
	dir, lib := shared.Testdata(t, "interop", "fastinfoset"), t.TempDir()
	run := func(program string, args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", program, out)
	}
	run("mvn", "-q", "-B", "-f", filepath.Join(dir, "pom.xml"), "dependency:copy-dependencies",
		"-DoutputDirectory="+lib)
	run("javac", "-nowarn", "-cp", filepath.Join(lib, "*"), "-d", lib, filepath.Join(dir, "Convert.java"))
	return func(mode, folder string) {
		t.Helper()
		run("java", "-cp", filepath.Join(lib, "*")+string(os.PathListSeparator)+lib, "Convert", mode, folder)
	}
}

// randomXML writes a random document.
type randomXML struct {
	*rand.Rand
	strings.Builder
	prefixes []string // in scope
}

func (r *randomXML) name() string { return fmt.Sprintf("n%d", r.IntN(1+r.IntN(200))) }

// text has characters of one to four bytes in UTF-8, and all that is escaped. Its length is about
// that at which texts are no longer indexed, and sometimes about others at which lengths have
// another form.
func (r *randomXML) text() string {
	length := r.IntN(40)
	if r.IntN(20) == 0 {
		length = []int{60, 64, 65, 258, 259, 264, 265, 320, 321, 4000}[r.IntN(10)] + r.IntN(3)
	}
	var b strings.Builder
	parts := []string{"a", "b", "0", " ", "é", "€", "😀", "&amp;", "&lt;", "&gt;", "&#13;", "&#9;", "&#10;"}
	for b.Len() < length {
		b.WriteString(parts[r.IntN(1+r.IntN(len(parts)))])
	}
	return b.String()
}

func (r *randomXML) element(depth int) {
	declared := r.prefixes
	defer func() { r.prefixes = declared }()
	var attrs strings.Builder
	for range r.IntN(3) * r.IntN(2) {
		prefix := fmt.Sprintf("p%d", len(r.prefixes))
		fmt.Fprintf(&attrs, ` xmlns:%s="urn:%d"`, prefix, r.IntN(1000))
		r.prefixes = append(r.prefixes[:len(r.prefixes):len(r.prefixes)], prefix)
	}
	if r.IntN(10) == 0 {
		fmt.Fprintf(&attrs, ` xmlns="%s"`, []string{"", "urn:d"}[r.IntN(2)])
	}
	used := map[string]bool{}
	for range r.IntN(4) {
		name := r.name()
		if used[name] { // also with another prefix, of which the namespace may be the same
			continue
		}
		used[name] = true
		if len(r.prefixes) > 0 && r.IntN(3) == 0 {
			name = r.prefixes[r.IntN(len(r.prefixes))] + ":" + name
		}
		fmt.Fprintf(&attrs, ` %s="%s"`, name, strings.ReplaceAll(r.text(), `"`, "&quot;"))
	}
	if r.IntN(20) == 0 {
		attrs.WriteString(` xml:lang="en"`)
	}
	name := r.name()
	if len(r.prefixes) > 0 && r.IntN(2) == 0 {
		name = r.prefixes[r.IntN(len(r.prefixes))] + ":" + name
	}
	fmt.Fprintf(r, "<%s%s>", name, attrs.String())
	for range r.IntN(6) {
		switch n := r.IntN(20); {
		case n < 12 && depth < 8:
			r.element(depth + 1)
		case n == 18:
			fmt.Fprintf(r, "<!--%d-->", r.IntN(50))
		case n == 19:
			fmt.Fprintf(r, "<?t%d d%d?>", r.IntN(5), r.IntN(50))
		default:
			r.WriteString(r.text())
		}
	}
	fmt.Fprintf(r, "</%s>", name)
}

// typed is a document of values of all forms. What the Java library misreads the writer writes
// otherwise: booleans of some numbers, an e in the numeric alphabet, CDATA sections in attributes.
// Left out are infinity, which has another text in Java, and numbers of float for whose text Java
// before 19 takes more digits than are needed.
func typed(t *testing.T, random *rand.Rand, n int) []byte {
	t.Helper()
	var w fastinfoset.InfosetWriter
	w.Reset(nil)
	write := func(ev *fastinfoset.Event) { require.NoError(t, w.Write(ev)) }
	named := func(name string) fastinfoset.Name { return fastinfoset.Name{Local: []byte(name)} }
	values := make([]byte, 16*n)
	for i := range values {
		values[i] = byte(random.Uint32())
	}
	var floats, doubles []byte
	for range n {
		f := float64(int32(random.Uint32())) / 8
		floats = binary.BigEndian.AppendUint32(floats, math.Float32bits(float32(int16(f))/8))
		doubles = binary.BigEndian.AppendUint64(doubles, math.Float64bits(f))
	}
	booleans := make([]byte, (n+4+7)/8)
	booleans[0] = byte(len(booleans)*8-4-n) << 4
	for i := 4; i < n+4; i++ {
		booleans[i/8] |= byte(random.IntN(2)) << (7 - i%8)
	}
	write(&fastinfoset.Event{Kind: fastinfoset.StartElement, Name: named("v")})
	for i, v := range []fastinfoset.Value{
		{Form: fastinfoset.Encoded, Index: fastinfoset.Hexadecimal, Bytes: values},
		{Form: fastinfoset.Encoded, Index: fastinfoset.Base64, Bytes: values[:len(values)-n%3]},
		{Form: fastinfoset.Encoded, Index: fastinfoset.Short, Bytes: values},
		{Form: fastinfoset.Encoded, Index: fastinfoset.Int, Bytes: values},
		{Form: fastinfoset.Encoded, Index: fastinfoset.Long, Bytes: values},
		{Form: fastinfoset.Encoded, Index: fastinfoset.Boolean, Bytes: booleans},
		{Form: fastinfoset.Encoded, Index: fastinfoset.Float, Bytes: floats},
		{Form: fastinfoset.Encoded, Index: fastinfoset.Double, Bytes: doubles},
		{Form: fastinfoset.Encoded, Index: fastinfoset.UUID, Bytes: values},
		{Form: fastinfoset.Encoded, Index: fastinfoset.CDATA, Bytes: []byte("<&]]")},
		{Form: fastinfoset.UTF16, Bytes: []byte(strings.Repeat("é😀", n))},
		{Form: fastinfoset.Restricted, Index: fastinfoset.Numeric, Bytes: []byte(strings.Repeat("-1.5+7 ", n)[:6*n])},
		{Form: fastinfoset.Restricted, Index: fastinfoset.Numeric, Bytes: []byte("1.5e7")},
		{Form: fastinfoset.Restricted, Index: fastinfoset.DateTime, Bytes: []byte("2006-01-02T03:04:05Z")},
	} {
		name := named(fmt.Sprintf("v%d", i))
		write(&fastinfoset.Event{Kind: fastinfoset.StartElement, Name: name, Attrs: []fastinfoset.Attr{
			{Name: named("a"), Value: v},
		}})
		write(&fastinfoset.Event{Kind: fastinfoset.Characters, Value: v})
		write(&fastinfoset.Event{Kind: fastinfoset.EndElement})
	}
	write(&fastinfoset.Event{Kind: fastinfoset.EndElement})
	write(&fastinfoset.Event{Kind: fastinfoset.EndDocument})
	return w.Bytes()
}

// TestInteropJava: the Java library FastInfoset 2.1.1 makes the same bytes of random documents, and
// reads them as the same infosets.
func TestInteropJava(t *testing.T) {
	java, folder := javaLibrary(t), t.TempDir()
	texts := map[string]string{}
	for i := range 300 {
		r := randomXML{Rand: rand.New(rand.NewPCG(1, uint64(i)))}
		r.element(0)
		name := filepath.Join(folder, fmt.Sprint(i))
		texts[name] = r.String()
		require.NoError(t, os.WriteFile(name+".xml", []byte(texts[name]), 0o600))
		doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(texts[name]))
		require.NoError(t, err, "%s", texts[name])
		require.NoError(t, os.WriteFile(name+".fi", doc, 0o600))
	}
	java("from-xml", folder)
	java("to-xml", folder)
	var w fastinfoset.InfosetWriter
	var reader fastinfoset.Reader
	for name, text := range texts {
		want := canonical(t, []byte(text))
		theirs, err := os.ReadFile(name + ".finf")
		require.NoError(t, err)
		ours, err := w.FromXML(nil, []byte(text))
		require.NoError(t, err)
		require.True(t, bytes.Equal(theirs, ours), "%s: %x, not %x", text, ours, theirs)
		got, err := reader.ToXML(nil, theirs)
		require.NoError(t, err)
		require.Equal(t, want, canonical(t, got))
		got, err = os.ReadFile(name + ".fi.xml")
		require.NoError(t, err)
		require.Equal(t, want, canonical(t, got))
	}
}

// TestInteropJavaTypedValues: values of all forms that this package writes are read by the Java
// library as the same text, and what it writes is read here. Convert.java leaves out booleans of
// the numbers of which the library writes too few bytes, and hexadecimal values, of which it writes
// half.
func TestInteropJavaTypedValues(t *testing.T) {
	java, folder := javaLibrary(t), t.TempDir()
	random := rand.New(rand.NewPCG(2, 3))
	var reader fastinfoset.Reader
	want := map[string]string{}
	for n := 1; n < 40; n++ {
		doc := typed(t, random, n)
		name := filepath.Join(folder, fmt.Sprint("ours", n, ".fi"))
		require.NoError(t, os.WriteFile(name, doc, 0o600))
		text, err := reader.ToXML(nil, doc)
		require.NoError(t, err)
		want[name+".xml"] = canonical(t, text)
	}
	java("to-xml", folder)
	for name, want := range want {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, canonical(t, got))
	}

	theirs := t.TempDir()
	java("typed", theirs)
	files, err := filepath.Glob(filepath.Join(theirs, "*.finf"))
	require.NoError(t, err)
	require.Len(t, files, 39)
	for _, name := range files {
		doc, err := os.ReadFile(name)
		require.NoError(t, err)
		want, err := os.ReadFile(strings.TrimSuffix(name, "finf") + "xml")
		require.NoError(t, err)
		got, err := reader.ToXML(nil, doc)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), name)
	}
}
