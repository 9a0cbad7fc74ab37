package wsdl_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// op is a WSDL with one operation, Op, whose input has the element s:e, or a part of a type.
func op(types, part string) string {
	return document(`<w:types>` + types + `</w:types><w:message name="m">` + part + `</w:message>
		<w:portType name="p"><w:operation name="Op"><w:input message="s:m"/></w:operation></w:portType>
		<w:binding name="b" type="s:p"><soap:binding/><w:operation name="Op"><w:input><soap:body use="literal"/>
			</w:input></w:operation></w:binding>`)
}

const (
	part   = `<w:part name="p" element="s:e"/>`
	inline = `<xs:schema targetNamespace="urn:s" elementFormDefault="qualified" xmlns:o="urn:o">`
)

// What breaks tools that read descriptions of real services.
func TestTraps(t *testing.T) {
	const number = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:o="urn:o" targetNamespace="urn:o"
		elementFormDefault="qualified">`
	for _, tc := range []struct {
		what  string
		files map[string]string
		tree  string
	}{
		{"includes three folders deep, each relative to its own file, which include each other", map[string]string{
			"a.wsdl": op(inline+`<xs:include schemaLocation="x/1.xsd"/></xs:schema>`, part),
			"x/1.xsd": `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="y/2.xsd"/>
				<xs:element name="e" type="n"/></xs:schema>`,
			"x/y/2.xsd": `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="../1.xsd"/>
				<xs:include schemaLocation="z%20z/3.xsd"/></xs:schema>`,
			"x/y/z z/3.xsd": `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
				<xs:simpleType name="n"><xs:restriction base="xs:int"/></xs:simpleType></xs:schema>`,
		}, "{urn:s}e  int\n"},
		{"the first of several schemas of one namespace counts, too", map[string]string{
			"a.wsdl": op(inline+`<xs:element name="e" type="s:n"/></xs:schema>`+inline+`<xs:simpleType name="n">
				<xs:restriction base="xs:int"/></xs:simpleType></xs:schema>`+inline+`</xs:schema>`, part),
		}, "{urn:s}e  int\n"},
		{"attributes of the namespace xml, declared by two schemas", map[string]string{
			"a.wsdl": op(inline+`<xs:import namespace="http://www.w3.org/XML/1998/namespace" schemaLocation="1.xsd"/>
				<xs:import namespace="http://www.w3.org/XML/1998/namespace" schemaLocation="2.xsd"/>
				<xs:element name="e"><xs:complexType><xs:attribute ref="xml:lang"/><xs:attribute ref="xml:base"/>
				</xs:complexType></xs:element></xs:schema>`, part),
			"1.xsd": `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"
				targetNamespace="http://www.w3.org/XML/1998/namespace"><xs:attribute name="lang" type="xs:language"/>
				<xs:attribute name="base" type="xs:anyURI"/></xs:schema>`,
			"2.xsd": `<x:schema xmlns:x="http://www.w3.org/2001/XMLSchema"
				targetNamespace="http://www.w3.org/XML/1998/namespace"><x:attribute name="lang" type="x:language"/>
				</x:schema>`,
		}, "{urn:s}e  elements\n  @base  anyURI\n  @lang  language\n"},
		{"a part with a type", map[string]string{
			"a.wsdl": op(inline+`</xs:schema>`, `<w:part name="p" type="xs:int"/>`),
		}, "Body  int\n"},
		{"prefixes that mean other namespaces inside", map[string]string{
			"a.wsdl": op(`<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema" xmlns:xs="urn:s" targetNamespace="urn:s">
				<s:element name="e" type="xs:soap"/><s:simpleType name="soap"><s:restriction base="s:int"/>
				</s:simpleType></s:schema>`, part),
		}, "{urn:s}e  int\n"},
		{"an extension across namespaces", map[string]string{
			"a.wsdl": op(inline+`<xs:import namespace="urn:o" schemaLocation="o.xsd"/><xs:element name="e">
				<xs:complexType><xs:complexContent><xs:extension base="o:base"><xs:sequence>
				<xs:element name="own" type="xs:int"/></xs:sequence></xs:extension></xs:complexContent>
				</xs:complexType></xs:element></xs:schema>`, part),
			"o.xsd": number + `<xs:complexType name="base"><xs:sequence><xs:element name="first" type="xs:int"/>
				</xs:sequence></xs:complexType></xs:schema>`,
		}, "{urn:s}e  elements\n  {urn:o}first  int\n  own  int\n"},
		{"an import whose location is a name", map[string]string{
			"a.wsdl": op(inline+`<xs:import namespace="urn:o" schemaLocation="urn:o"/>
				<xs:element name="e" type="o:n"/></xs:schema>`, part),
			"o.xsd": number + `<xs:simpleType name="n"><xs:restriction base="xs:int"/></xs:simpleType></xs:schema>`,
		}, "{urn:s}e  int\n"},
		{"content by XOP", map[string]string{
			"a.wsdl": op(inline+`<xs:import namespace="http://www.w3.org/2004/08/xop/include"/>
				<xs:element name="e"><xs:complexType><xs:sequence>
				<xs:element ref="x:Include" xmlns:x="http://www.w3.org/2004/08/xop/include"/></xs:sequence>
				</xs:complexType></xs:element></xs:schema>`, part),
		}, "{urn:s}e  elements\n  {http://www.w3.org/2004/08/xop/include}Include  elements\n" +
			"    @href  anyURI  required\n    @…\n    …  0..*  any element of ##other\n"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			d, err := wsdl.Load(t.Context(), filepath.Join(write(t, tc.files), "a.wsdl"), wsdl.SourceOptions{})
			require.NoError(t, err)
			require.Len(t, d.Operations, 1)
			require.Empty(t, d.Operations[0].Problems)
			assert.Empty(t, d.Problems)
			var b strings.Builder
			require.NoError(t, d.Operations[0].Input.Contents().Tree(&b))
			assert.Equal(t, tc.tree, b.String())
		})
	}
}

// Header blocks and details of faults that are missing refuse no operation; what Body needs does.
func TestWhatIsMissing(t *testing.T) {
	text := document(types + messages + strings.Replace(bindings, `part="who"`, `part="nobody"`, 1))
	text = strings.Replace(text, `message="s:wrong"`, `message="s:gone"`, 1)
	d, err := wsdl.Load(t.Context(), filepath.Join(write(t, map[string]string{"a.wsdl": text}), "a.wsdl"),
		wsdl.SourceOptions{})
	require.NoError(t, err)
	assert.Empty(t, d.Operations[0].Problems)
	require.Len(t, d.Problems, 2)
	assert.Contains(t, d.Problems[0].Error(), "header of Get: message s:get has no part nobody")
	assert.Contains(t, d.Problems[1].Error(), "fault of Get: message {urn:s}gone is not declared")
}

// Parts that travel outside the envelope are none of its Body.
func TestAttachments(t *testing.T) {
	text := strings.Replace(op(inline+`<xs:element name="e" type="xs:int"/></xs:schema>`,
		part+`<w:part name="image" type="xs:base64Binary"/>`), `<soap:body use="literal"/>`,
		`<mime:multipartRelated><mime:part><soap:body use="literal" parts="p"/></mime:part>
			<mime:part><mime:content part="image" type="image/png"/></mime:part></mime:multipartRelated>`, 1)
	d, err := wsdl.Load(t.Context(), filepath.Join(write(t, map[string]string{"a.wsdl": text}), "a.wsdl"),
		wsdl.SourceOptions{})
	require.NoError(t, err)
	assert.Equal(t, "{urn:s}e  int\n", tree(t, d.Operations[0].Input.Body))
	assert.Equal(t, []string{"image"}, d.Operations[0].Input.Attached)
}

// A byte order mark says which charset a document is in; without one the Content-Type says it, then
// the first line.
func TestCharsets(t *testing.T) {
	wide := func(text string, mark string) string {
		b := []byte(mark)
		for _, c := range text {
			b = append(b, byte(c), byte(c>>8))
		}
		return string(b)
	}
	const says1, says8 = `<?xml version="1.0" encoding="ISO-8859-1"?>`, `<?xml version="1.0" encoding="UTF-8"?>`
	const utf8 = `<xs:element name="é" type="xs:int"/></xs:schema>`
	const latin = "<xs:element name=\"\xe9\" type=\"xs:int\"/></xs:schema>"
	const start = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">`
	var text, contentType string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, text)
	}))
	defer server.Close()
	for _, tc := range []struct{ what, text, contentType string }{
		{"the first line", says1 + start + latin, "text/xml"},
		{"nothing", start + utf8, "text/xml"},
		{"the Content-Type against the first line", says1 + start + utf8, "text/xml; charset=utf-8"},
		{"the Content-Type, of others", says8 + start + latin, `text/xml; charset="ISO-8859-1"`},
		{"a mark against both", "\xef\xbb\xbf" + says1 + start + utf8, "text/xml; charset=iso-8859-1"},
		{"UTF-16 with a mark", wide(says8+start+utf8, "\xff\xfe"), "text/xml; charset=utf-8"},
		{"UTF-16 without one, and without a first line", wide(start+utf8, ""), "application/octet-stream"},
	} {
		text, contentType = tc.text, tc.contentType
		d, err := wsdl.Load(t.Context(), server.URL, wsdl.SourceOptions{})
		if assert.NoError(t, err, tc.what) && assert.Len(t, d.Elements, 1, tc.what) {
			assert.Equal(t, "é", d.Elements[0].Element.Name.Local, tc.what)
		}
	}
}

func TestResolve(t *testing.T) {
	for _, tc := range []struct{ base, reference, location string }{
		{"/a/b.wsdl", "c.xsd", "/a/c.xsd"},
		{"/a/b.wsdl", "../c%20d.xsd#x", "/c d.xsd"},
		{"/a/b.wsdl", `sub\c.xsd`, "/a/sub/c.xsd"},
		{"/a/b.wsdl", "file:/x/c.xsd", "/x/c.xsd"},
		{"/a/b.wsdl", "file:///x/c.xsd", "/x/c.xsd"},
		{"/a/b.wsdl", "/x/c.xsd", "/x/c.xsd"},
		{"/a/b.wsdl", "urn:x:y", ""},
		{"/a/b.wsdl", "http://h/c.xsd", "http://h/c.xsd"},
		{"http://h/a/s?wsdl", "?xsd=1", "http://h/a/s?xsd=1"},
		{"http://h/a/s?wsdl", "c.xsd", "http://h/a/c.xsd"},
		{"http://h/a/s?wsdl", "/c.xsd", "http://h/c.xsd"},
	} {
		at, err := xsd.Resolve(tc.base, tc.reference)
		if tc.location == "" {
			assert.Error(t, err, tc.reference)
			continue
		}
		require.NoError(t, err, tc.reference)
		assert.Equal(t, filepath.FromSlash(tc.location), at, tc.reference)
	}
}

// A description that never ends is cut: a server that makes up documents, and one that redirects.
func TestEndlessDescriptions(t *testing.T) {
	made := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/round" {
			http.Redirect(w, r, "/round", http.StatusFound)
			return
		}
		made++
		_, _ = fmt.Fprintf(w, `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="/%d"/>
			<xs:element name="e%d" type="xs:int"/></xs:schema>`, made, made)
	}))
	defer server.Close()
	d, err := wsdl.Load(t.Context(), server.URL, wsdl.SourceOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, d.Problems)
	assert.Contains(t, d.Problems[0].Error(), "more than 1000 documents")
	assert.LessOrEqual(t, made, xsd.MaxDocuments)

	_, err = wsdl.Load(t.Context(), server.URL+"/round", wsdl.SourceOptions{})
	require.ErrorContains(t, err, "more than 5 redirections")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = wsdl.Load(ctx, server.URL, wsdl.SourceOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestCatalogs(t *testing.T) {
	dir := write(t, map[string]string{
		"a.wsdl": op(inline+`<xs:element name="e" type="xs:int"/></xs:schema>`, part), "other.xml": "<a/>",
		"cut.xml": "<a>",
		"unknown.xml": `<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog"><nextCatalog catalog="x"/>
			</catalog>`,
		"half.xml": `<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog"><uri name="x"/>
			</catalog>`,
	})
	for name, why := range map[string]string{
		"other.xml": "other.xml:1:1: a is no catalog of OASIS", "cut.xml": "cut.xml:1:4: not well-formed",
		"unknown.xml": "nextCatalog is not supported", "half.xml": "uri without name and uri",
		"none.xml": "no such file",
	} {
		_, err := wsdl.Load(t.Context(), filepath.Join(dir, "a.wsdl"),
			wsdl.SourceOptions{Catalog: filepath.Join(dir, name)})
		assert.ErrorContains(t, err, why)
	}
}
