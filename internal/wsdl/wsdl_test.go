package wsdl_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// document is a WSDL around its parts.
func document(parts string) string {
	return `<w:definitions targetNamespace="urn:s" xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:s="urn:s"
		xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
		xmlns:soap12="http://schemas.xmlsoap.org/wsdl/soap12/" xmlns:mime="http://schemas.xmlsoap.org/wsdl/mime/">` +
		parts + `</w:definitions>`
}

// types are the schemas of all documents here: two of one namespace, and one that the first needs.
const types = `<w:types>
	<xs:schema targetNamespace="urn:s" elementFormDefault="qualified" xmlns:o="urn:o">
		<xs:element name="get"><xs:complexType><xs:sequence><xs:element name="id" type="o:id"/></xs:sequence>
			</xs:complexType></xs:element>
	</xs:schema>
	<xs:schema targetNamespace="urn:s"><xs:element name="got" type="xs:string"/>
		<xs:element name="who" type="xs:string"/>
		<xs:element name="wrong" type="xs:string"/></xs:schema>
	<xs:schema targetNamespace="urn:o"><xs:simpleType name="id"><xs:restriction base="xs:int"/></xs:simpleType>
		</xs:schema>
</w:types>`

const messages = `
	<w:message name="get"><w:part name="body" element="s:get"/><w:part name="who" element="s:who"/></w:message>
	<w:message name="got"><w:part name="body" element="s:got"/></w:message>
	<w:message name="wrong"><w:part name="body" element="s:wrong"/></w:message>
	<w:message name="add"><w:part name="a" type="xs:int"/><w:part name="b" type="xs:int"/></w:message>
	<w:message name="added"><w:part name="sum" type="xs:int"/></w:message>
	<w:message name="empty"/>
	<w:portType name="port">
		<w:operation name="Get"><w:input message="s:get"/><w:output message="s:got"/>
			<w:fault name="Wrong" message="s:wrong"/></w:operation>
		<w:operation name="Add"><w:input message="s:add"/><w:output message="s:added"/></w:operation>
		<w:operation name="Ping"><w:input message="s:empty"/></w:operation>
		<w:operation name="Lost"><w:input message="s:lost"/></w:operation>
	</w:portType>`

const bindings = `
	<w:binding name="doc" type="s:port"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>
		<w:operation name="Get"><soap:operation soapAction="urn:get"/>
			<w:input><soap:body use="literal" parts="body"/>
				<soap:header message="s:get" part="who" use="literal"/></w:input>
			<w:output><soap:body use="literal"/></w:output></w:operation>
		<w:operation name="Ping"><soap:operation/><w:input><soap:body use="literal"/></w:input></w:operation>
		<w:operation name="Lost"><soap:operation/><w:input><soap:body use="literal"/></w:input></w:operation>
	</w:binding>
	<w:binding name="rpc" type="s:port"><soap12:binding style="rpc"/>
		<w:operation name="Add"><w:input><soap12:body use="literal" namespace="urn:add"/></w:input>
			<w:output><soap12:body use="literal" namespace="urn:add"/></w:output></w:operation>
	</w:binding>
	<w:binding name="enc" type="s:port"><soap:binding style="rpc"/>
		<w:operation name="Add"><w:input><soap:body use="encoded" namespace="urn:add"/></w:input>
			<w:output><soap:body use="encoded" namespace="urn:add"/></w:output></w:operation>
	</w:binding>
	<w:binding name="none" type="s:port"/>`

func write(t *testing.T, text map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range text {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

func tree(t *testing.T, list []*xsd.ElementDecl) string {
	t.Helper()
	var b strings.Builder
	for _, e := range list {
		require.NoError(t, xsd.Tree(&b, e))
	}
	return b.String()
}

func TestOperations(t *testing.T) {
	dir := write(t, map[string]string{"a.wsdl": document(types + messages + bindings)})
	d, err := wsdl.Load(t.Context(), filepath.Join(dir, "a.wsdl"), wsdl.SourceOptions{})
	require.NoError(t, err)
	require.Empty(t, d.Problems)
	of := map[string]*wsdl.Operation{}
	for _, o := range d.Operations {
		of[o.Binding.Local+" "+o.Name] = o
	}
	require.Len(t, of, 5)

	get := of["doc Get"]
	assert.Empty(t, get.Problems)
	assert.Equal(t, "urn:get", get.Action)
	assert.Equal(t, 11, get.SOAP)
	assert.Equal(t, "{urn:s}get  elements\n  id  int\n", tree(t, get.Input.Body))
	assert.Equal(t, "{urn:s}who  string\n", tree(t, get.Input.Headers))
	assert.Equal(t, "{urn:s}got  string\n", tree(t, get.Output.Body))
	require.Len(t, get.Faults, 1)
	assert.Equal(t, "wrong", get.Faults[0].Detail.Name.Local)

	ping := of["doc Ping"]
	assert.Empty(t, ping.Problems)
	assert.Nil(t, ping.Output, "one-way")
	assert.Empty(t, ping.Input.Body)

	require.NotEmpty(t, of["doc Lost"].Problems)
	assert.Contains(t, of["doc Lost"].Problems[0].Error(), "message {urn:s}lost is not declared")

	add := of["rpc Add"]
	assert.Empty(t, add.Problems)
	assert.Equal(t, 12, add.SOAP)
	assert.False(t, add.Encoded)
	assert.Equal(t, "{urn:add}Add  elements\n  {}a  int  nillable\n  {}b  int  nillable\n", strings.ReplaceAll(
		strings.ReplaceAll(tree(t, add.Input.Body), "  a ", "  {}a "), "  b ", "  {}b "))
	assert.Equal(t, "AddResponse", add.Output.Body[0].Name.Local)
	assert.True(t, of["enc Add"].Encoded)

	for name, want := range map[string][]string{"Add": {"rpc Add", "enc Add"}, "Get": {"doc Get"}, "None": nil} {
		d, err := wsdl.Load(t.Context(), filepath.Join(dir, "a.wsdl"), wsdl.SourceOptions{Operation: name})
		require.NoError(t, err)
		var got []string
		for _, o := range d.Operations {
			id := o.Binding.Local + " " + o.Name
			got = append(got, id)
			assert.Empty(t, o.Problems, id)
			assert.Equal(t, tree(t, of[id].Input.Body), tree(t, o.Input.Body), id)
		}
		assert.Equal(t, want, got)
	}
}

// A description may be spread over files, of the same namespace or others, whose locations are
// relative to the file that names them.
func TestImports(t *testing.T) {
	whole, err := wsdl.Load(t.Context(), filepath.Join(write(t, map[string]string{
		"a.wsdl": document(types + messages + bindings),
	}), "a.wsdl"), wsdl.SourceOptions{})
	require.NoError(t, err)
	parts := map[string]string{
		"a.wsdl": document(`<w:import namespace="urn:s" location="b/port.wsdl"/>` + bindings),
		"b/port.wsdl": document(`<w:import namespace="urn:s" location="../a.wsdl"/><w:types><xs:schema>
			<xs:import namespace="urn:s" schemaLocation="../c/s.xsd"/></xs:schema></w:types>` + messages),
		"c/s.xsd": `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:s"
			elementFormDefault="qualified" xmlns:o="urn:o"><xs:import namespace="urn:o" schemaLocation="o.xsd"/>
			<xs:element name="get"><xs:complexType><xs:sequence><xs:element name="id" type="o:id"/>
				</xs:sequence></xs:complexType></xs:element>
			<xs:element name="got" type="xs:string"/><xs:element name="who" type="xs:string"/>
				<xs:element name="wrong" type="xs:string"/></xs:schema>`,
		"c/o.xsd": `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o">
			<xs:simpleType name="id">
			<xs:restriction base="xs:int"/></xs:simpleType></xs:schema>`,
	}
	same := func(location string, opt wsdl.SourceOptions) {
		t.Helper()
		d, err := wsdl.Load(t.Context(), location, opt)
		require.NoError(t, err)
		assert.Empty(t, d.Problems)
		require.Len(t, d.Operations, len(whole.Operations))
		for i, o := range d.Operations {
			assert.Equal(t, len(whole.Operations[i].Problems), len(o.Problems), o.Name)
			if len(o.Problems) == 0 {
				assert.Equal(t, fingerprint(whole.Operations[i].Input.Body...), fingerprint(o.Input.Body...),
					o.Name)
			}
		}
	}
	folder := write(t, parts)
	same(filepath.Join(folder, "a.wsdl"), wsdl.SourceOptions{})

	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()
	same(server.URL+"/a.wsdl", wsdl.SourceOptions{Fetch: true})
	same(server.URL+"/a.wsdl?wsdl", wsdl.SourceOptions{}) // of the same origin

	// Other origins are fetched only when that is asked for, also behind redirections.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "wsdl" {
			_, _ = w.Write([]byte(strings.Replace(parts["a.wsdl"], "b/port.wsdl", "moved", 1)))
			return
		}
		http.Redirect(w, r, server.URL+"/b/port.wsdl", http.StatusFound)
	}))
	defer other.Close()
	far := filepath.Join(write(t, map[string]string{
		"far.wsdl": strings.Replace(parts["a.wsdl"], "b/port.wsdl", server.URL+"/b/port.wsdl", 1),
	}), "far.wsdl")
	for _, at := range []string{far, other.URL + "/s?wsdl"} {
		d, err := wsdl.Load(t.Context(), at, wsdl.SourceOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, d.Problems, at)
		assert.Contains(t, d.Problems[0].Error(), "fetched only when that is asked for")
		for _, o := range d.Operations {
			assert.Contains(t, o.Problems[0].Error(), "portType {urn:s}port is not declared")
		}
		same(far, wsdl.SourceOptions{Fetch: true})
	}

	// A catalog has files for them, by location, by what locations begin with, and by namespace.
	for _, entry := range []string{
		`<uri name="` + server.URL + `/b/port.wsdl" uri="b/port.wsdl"/>`,
		`<rewriteURI uriStartString="` + server.URL + `" rewritePrefix="wrong"/>
			<rewriteSystem systemIdStartString="` + server.URL + `/" rewritePrefix="./"/>`,
		`<uri name="urn:s" uri="b/port.wsdl"/>`,
	} {
		at := filepath.Join(folder, "catalog.xml")
		require.NoError(t, os.WriteFile(at, []byte(
			`<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">`+entry+`</catalog>`), 0o600))
		same(far, wsdl.SourceOptions{Catalog: at})
	}

	// Downloaded into one folder, under other names: imports find them by their namespace.
	same(filepath.Join(write(t, map[string]string{
		"main.wsdl": strings.ReplaceAll(parts["a.wsdl"], "b/port.wsdl", "http://far.example/?wsdl=1"),
		"1.wsdl": strings.ReplaceAll(strings.ReplaceAll(parts["b/port.wsdl"], "../a.wsdl",
			"http://far.example/?wsdl"), "../c/s.xsd", "http://far.example/?xsd=0"),
		"0.xsd": parts["c/s.xsd"], "o.xsd": parts["c/o.xsd"],
	}), "main.wsdl"), wsdl.SourceOptions{})
}

func TestNoDescription(t *testing.T) {
	dir := write(t, map[string]string{
		"20.wsdl": `<description xmlns="http://www.w3.org/ns/wsdl"/>`, "a.html": "<html/>",
		"cut.wsdl": "<w:definitions",
	})
	for name, why := range map[string]string{
		"20.wsdl": "WSDL 2.0, which is not supported", "a.html": "neither a WSDL nor an XML Schema",
		"cut.wsdl": "cut.wsdl:1:15: not well-formed", "none": "no such file",
	} {
		_, err := wsdl.Load(t.Context(), filepath.Join(dir, name), wsdl.SourceOptions{})
		assert.ErrorContains(t, err, why, name)
	}
}

// What is built in compiles, alone.
func TestStandards(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("known", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		d, err := wsdl.Load(t.Context(), f, wsdl.SourceOptions{})
		require.NoError(t, err, f)
		assert.Empty(t, d.Problems, f)
		for _, e := range d.Elements {
			assert.Empty(t, e.Problems, "%s: %s", f, e.Element.Name)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(document(types + messages + bindings))
	known, err := filepath.Glob(filepath.Join("known", "*.wsdl"))
	require.NoError(f, err)
	require.NotEmpty(f, known)
	for _, at := range known {
		text, err := os.ReadFile(at)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		d, err := wsdl.Load(t.Context(), filepath.Join(write(t, map[string]string{"a.wsdl": text}), "a.wsdl"),
			wsdl.SourceOptions{})
		if err != nil {
			return
		}
		for _, o := range d.Operations {
			if o.Input != nil {
				fingerprint(o.Input.Body...)
			}
		}
	})
}

// fingerprint is that of elements in a Body.
func fingerprint(elements ...*xsd.ElementDecl) [32]byte {
	return xsd.Prints(&xsd.Contents{Body: elements})[0].Fingerprint
}
