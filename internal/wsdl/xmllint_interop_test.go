//go:build interop

package wsdl_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/beevik/etree"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xsd"
)

// schemaExport writes the schemas of a WSDL as files that xmllint reads: one for each schema, and
// one for each namespace that includes those.
type schemaExport struct {
	dir     string
	names   map[string]string // of documents, by path
	spaces  map[string][]string
	written int
}

// bind declares on an element what is declared around it.
func bind(e *etree.Element, from *etree.Element) {
	seen := map[string]bool{}
	for _, a := range e.Attr {
		seen[a.FullKey()] = true
	}
	for p := from; p != nil; p = p.Parent() {
		for _, a := range p.Attr {
			if (a.Space == "xmlns" || a.FullKey() == "xmlns") && !seen[a.FullKey()] {
				seen[a.FullKey()] = true
				e.CreateAttr(a.FullKey(), a.Value)
			}
		}
	}
}

func (x *schemaExport) document(path string) {
	if x.names[path] != "" {
		return
	}
	x.names[path] = "-"
	doc := etree.NewDocument()
	if doc.ReadFromFile(path) != nil || doc.Root() == nil {
		return
	}
	switch root := doc.Root(); root.Tag {
	case "schema":
		x.schema(root, path, path)
	case "definitions":
		for _, i := range root.SelectElements("import") {
			x.document(filepath.Join(filepath.Dir(path), i.SelectAttrValue("location", "")))
		}
		for _, types := range root.SelectElements("types") {
			for _, s := range types.SelectElements("schema") {
				x.schema(s, path, "")
			}
		}
	}
}

// known are the schemas of standards by namespace.
var known = map[string]string{xmlns.WSA: "wsa.xsd", "http://www.w3.org/2005/05/xmlmime": "xmlmime.xsd",
	"http://www.w3.org/2004/08/xop/include": "xop.xsd", "http://docs.oasis-open.org/wsrf/bf-2": "wsrf-bf.xsd",
	"http://docs.oasis-open.org/wsn/b-2": "wsn-b.xsd", "http://docs.oasis-open.org/wsn/t-1": "wsn-t.xsd",
	xmlns.SOAP11: "soap11.xsd", xmlns.SOAP12: "soap12.xsd", "http://docs.oasis-open.org/wsrf/r-2": "wsrf-r.xsd"}

// schema writes one schema. Imports lead to the files of namespaces.
func (x *schemaExport) schema(s *etree.Element, path, own string) {
	x.written++
	name := fmt.Sprintf("s%d.xsd", x.written)
	if own != "" {
		x.names[own] = name
	}
	space := s.SelectAttrValue("targetNamespace", "")
	x.spaces[space] = append(x.spaces[space], name)
	c := s.Copy()
	bind(c, s.Parent())
	imported := map[string]bool{}
	for _, child := range c.ChildElements() {
		at := child.SelectAttrValue("schemaLocation", "")
		there := filepath.Join(filepath.Dir(path), filepath.FromSlash(at))
		switch child.Tag {
		case "import":
			of := child.SelectAttrValue("namespace", "")
			if _, err := os.Stat(there); at != "" && err == nil {
				x.document(there)
			} else if known[of] != "" && x.spaces[of] == nil {
				x.document(filepath.Join("known", known[of]))
			}
			c.RemoveChild(child)
			imported[of] = true
		case "include", "redefine":
			x.document(there)
			child.CreateAttr("schemaLocation", x.names[there])
		}
	}
	doc := etree.NewDocument()
	doc.SetRoot(c)
	c.CreateAttr("hhfr-imports", strings.Join(slices.Sorted(maps.Keys(imported)), " "))
	_ = doc.WriteToFile(filepath.Join(x.dir, name))
}

// finish writes the files of namespaces and one that imports all, and imports into each schema.
func (x *schemaExport) finish(t *testing.T) (driver string) {
	files := map[string]string{}
	spaces := slices.Sorted(maps.Keys(x.spaces))
	for i, space := range spaces {
		files[space] = fmt.Sprintf("n%d.xsd", i)
	}
	write := func(name string, lines ...string) string {
		path := filepath.Join(x.dir, name)
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
		return path
	}
	// Its own namespace is none that schemas have, nor no namespace: xmllint reads each but once.
	all := []string{`<xs:schema xmlns:xs="` + xmlns.XSD + `" targetNamespace="urn:example:all">`}
	for _, space := range spaces {
		lines := []string{`<xs:schema xmlns:xs="` + xmlns.XSD + `">`}
		if space != "" {
			lines = []string{`<xs:schema xmlns:xs="` + xmlns.XSD + `" targetNamespace="` + space + `">`}
			all = append(all, `<xs:import namespace="`+space+`" schemaLocation="`+files[space]+`"/>`)
		}
		for _, name := range x.spaces[space] {
			lines = append(lines, `<xs:include schemaLocation="`+name+`"/>`)
		}
		write(files[space], append(lines, `</xs:schema>`)...)
	}
	if files[""] != "" {
		all = append(all, `<xs:import schemaLocation="`+files[""]+`"/>`)
	}
	for _, space := range spaces {
		for _, name := range x.spaces[space] {
			doc := etree.NewDocument()
			require.NoError(t, doc.ReadFromFile(filepath.Join(x.dir, name)))
			root := doc.Root()
			root.RemoveAttr("hhfr-imports")
			prefix := ""
			if root.Space != "" {
				prefix = root.Space + ":"
			}
			for _, other := range spaces { // whether it says so or not: WSDLs often do not
				if other != space {
					e := etree.NewElement(prefix + "import")
					if other != "" {
						e.CreateAttr("namespace", other)
					}
					e.CreateAttr("schemaLocation", files[other])
					root.InsertChildAt(0, e)
				}
			}
			require.NoError(t, doc.WriteToFile(filepath.Join(x.dir, name)))
		}
	}
	return write("all.xsd", append(all, `</xs:schema>`)...)
}

// calls writes the schemas of what is in Body in rpc style: an element for each operation, which
// has one for each part.
func (x *schemaExport) calls(t *testing.T, list []*wsdl.EnvelopeParts) {
	done := map[xsd.QName]bool{}
	for _, m := range list {
		e := m.Body[0]
		if done[e.Name] {
			continue
		}
		done[e.Name] = true
		var b strings.Builder
		fmt.Fprintf(&b, `<xs:schema xmlns:xs="%s"`, xmlns.XSD)
		if e.Name.Space != "" {
			fmt.Fprintf(&b, ` targetNamespace="%s"`, e.Name.Space)
		}
		fmt.Fprintf(&b, `><xs:element name="%s"><xs:complexType><xs:sequence>`, e.Name.Local)
		for _, p := range e.Type.Particle.Parts {
			name, attribute := p.Element.Type.Name, `name="`+p.Element.Name.Local+`" nillable="true" type`
			if p.Element.Name.Space != "" { // a part that names an element
				name, attribute = p.Element.Name, "ref"
			}
			fmt.Fprintf(&b, `<xs:element xmlns:p="%s" %s="p:%s"/>`, name.Space, attribute, name.Local)
		}
		b.WriteString(`</xs:sequence></xs:complexType></xs:element></xs:schema>`)
		doc := etree.NewDocument()
		require.NoError(t, doc.ReadFromString(b.String()))
		x.schema(doc.Root(), "", "")
	}
}

// verdict is what both say of one message.
type verdict struct {
	file string
	ours []xsd.Misfit
	from string // the message, and what was done to it
}

// mutations are what is done to messages, each in every place of a few.
var mutations = map[string]func(e *etree.Element){
	"without":   func(e *etree.Element) { e.Parent().RemoveChild(e) },
	"twice":     func(e *etree.Element) { e.Parent().InsertChildAt(e.Index(), e.Copy()) },
	"renamed":   func(e *etree.Element) { e.Tag += "X" },
	"text":      func(e *etree.Element) { e.SetText("x y") },
	"empty":     func(e *etree.Element) { e.SetText("") },
	"number":    func(e *etree.Element) { e.SetText("-7") },
	"attribute": func(e *etree.Element) { e.CreateAttr("unheard", "of") },
	"last": func(e *etree.Element) {
		p := e.Parent()
		p.RemoveChild(e)
		p.AddChild(e)
	},
}

// bodyOf returns the one element in the Body of a message, as a document of its own.
func bodyOf(m []byte) *etree.Element {
	doc := etree.NewDocument()
	if doc.ReadFromBytes(m) != nil || doc.Root() == nil {
		return nil
	}
	body := doc.Root().SelectElement("Body")
	if body == nil || len(body.ChildElements()) != 1 || body.ChildElements()[0].Tag == "Fault" {
		return nil
	}
	e := body.ChildElements()[0]
	c := e.Copy()
	bind(c, body)
	return c
}

// textOf writes an element as a document.
func textOf(t *testing.T, e *etree.Element) []byte {
	doc := etree.NewDocument()
	doc.SetRoot(e.Copy())
	b, err := doc.WriteToBytes()
	require.NoError(t, err)
	return b
}

// fits matches what xmllint prints of each file.
var fits = regexp.MustCompile(`(?m)^(\S+) (validates|fails to validate)$`)

// TestInteropXmllintVerdicts: what the corpus has of messages that one of its WSDLs describes, and
// what becomes of them when they are changed a little, is valid by xmllint where it is valid by us.
func TestInteropXmllintVerdicts(t *testing.T) {
	tool := shared.Program(t, "xmllint")
	dir := filepath.Join(shared.Dir(t), "corpus")
	var paths []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".wsdl") {
			paths = append(paths, path)
		}
		return err
	}))
	made, err := filepath.Glob(filepath.Join("testdata", "judged", "*"))
	require.NoError(t, err)
	paths = append(paths, made...)
	var bodies []*etree.Element
	var names []string
	isMessage := func(p string) bool { return !slices.Contains([]string{".wsdl", ".xsd"}, filepath.Ext(p)) }
	for _, path := range append(shared.Files(t, filepath.Join(dir, "messages"), isMessage), made...) {
		if e := bodyOf(shared.Read(t, path)); e != nil {
			bodies, names = append(bodies, e), append(names, strings.TrimPrefix(path, dir))
		}
	}
	belongs := make([]bool, len(bodies))
	compared, refused, same, called := 0, 0, 0, 0
	for _, path := range paths {
		d, err := wsdl.Load(t.Context(), path, wsdl.SourceOptions{})
		if err != nil {
			continue
		}
		literal := map[xsd.QName]bool{}
		var calls []*wsdl.EnvelopeParts
		for _, o := range d.Operations {
			for _, m := range []*wsdl.EnvelopeParts{o.Input, o.Output} {
				if m == nil || o.Encoded || len(o.Problems) > 0 || len(m.Body) != 1 {
					continue
				}
				literal[m.Body[0].Name] = true
				if o.Style == "rpc" {
					calls = append(calls, m)
				}
			}
		}
		var list []verdict
		out := t.TempDir()
		for i, e := range bodies {
			if belongs[i] || !literal[xsd.QName{Space: e.NamespaceURI(), Local: e.Tag}] {
				continue
			}
			belongs[i] = true
			add := func(from string, e *etree.Element) {
				text := textOf(t, e)
				root, err := xsd.ParseMessage(from, text)
				require.NoError(t, err)
				file := filepath.Join(out, fmt.Sprintf("%d.xml", len(list)))
				require.NoError(t, os.WriteFile(file, text, 0o600))
				list = append(list, verdict{file, d.Check(root), from})
			}
			add(names[i], e)
			count := len(e.FindElements(".//*"))
			for how, change := range mutations {
				for at := 0; at < count; at += max(1, count/8) {
					c := etree.NewDocument()
					c.SetRoot(e.Copy())
					inner := c.Root().FindElements(".//*")[at]
					change(inner)
					add(fmt.Sprintf("%s, %s %s", names[i], how, inner.Tag), c.Root())
				}
			}
		}
		if len(list) == 0 {
			continue
		}
		x := schemaExport{dir: out, names: map[string]string{}, spaces: map[string][]string{}}
		x.document(path)
		x.calls(t, calls)
		args := []string{"--nonet", "--noout", "--schema", x.finish(t)}
		for _, v := range list {
			args = append(args, v.file)
		}
		says, _ := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
		valid := map[string]bool{}
		for _, m := range fits.FindAllSubmatch(says, -1) {
			valid[string(m[1])] = string(m[2]) == "validates"
		}
		if len(valid) == 0 {
			refused += len(list)
			first, _, _ := bytes.Cut(says, []byte("\n"))
			t.Logf("xmllint reads no schemas of %s: %s", path, first)
			continue
		}
		for _, v := range list {
			is, told := valid[v.file]
			if !told {
				continue
			}
			compared++
			called += min(len(calls), 1)
			if is == (len(v.ours) == 0) {
				same++
				continue
			}
			why := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(v.file) + `:.*Schemas validity.*$`).Find(says)
			t.Errorf("%s by %s\n ours: %v\n xmllint: %s", v.from, filepath.Base(path), v.ours, why)
		}
	}
	t.Logf("%d compared, %d of them in rpc style, %d the same; of %d xmllint does not read the schemas", compared,
		called, same, refused)
	assert.Greater(t, compared, 500)
	assert.Greater(t, called, 200)
}
