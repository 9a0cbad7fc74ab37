package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/schema"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// sumWSDL describes two operations; what it refers to for the second is replaced in tests.
const sumWSDL = `<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:sum" targetNamespace="urn:sum"
	xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/">
	<w:types><xs:schema targetNamespace="urn:sum" elementFormDefault="qualified">
		<xs:element name="add"><xs:complexType><xs:sequence>
			<xs:element name="n" type="xs:int" maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element>
		<xs:element name="sum" type="xs:int"/><xs:element name="reset"><xs:complexType/></xs:element>
	</xs:schema></w:types>
	<w:message name="add"><w:part name="p" element="t:add"/></w:message>
	<w:message name="sum"><w:part name="p" element="t:sum"/></w:message>
	<w:message name="reset"><w:part name="p" element="t:reset"/></w:message>
	<w:portType name="Sum">
		<w:operation name="Add"><w:input message="t:add"/><w:output message="t:sum"/></w:operation>
		<w:operation name="Reset"><w:input message="t:reset"/></w:operation>
	</w:portType>
	<w:binding name="Sum" type="t:Sum"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>
		<w:operation name="Add"><soap:operation soapAction="urn:add"/>
			<w:input><soap:body use="literal"/></w:input><w:output><soap:body use="literal"/></w:output></w:operation>
		<w:operation name="Reset"><soap:operation soapAction="urn:reset"/>
			<w:input><soap:body use="literal"/></w:input></w:operation>
	</w:binding>
</w:definitions>`

func TestSchemaCommands(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		at := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
		return at
	}
	whole := file("sum.wsdl", sumWSDL)
	broken := file("broken.wsdl", strings.Replace(sumWSDL, `element="t:reset"`, `element="t:gone"`, 1))
	longer := file("long.wsdl", strings.Replace(sumWSDL, `type="xs:int" maxOccurs`, `type="xs:long" maxOccurs`, 1))

	code, out, errs := do(t, "schema", "compile", whole)
	assert.Equal(t, exit.Done, code)
	assert.Empty(t, errs)
	assert.Regexp(t, `(?m)^OPERATION +SOAP +STYLE +INPUT +OUTPUT *\nAdd +1\.1 +document +[0-9a-f]{12} `+
		`+[0-9a-f]{12} *\nReset +1\.1 +document +[0-9a-f]{12} +- *\n$`, out)

	code, out, errs = do(t, "schema", "compile", broken, "-o", "json")
	assert.Equal(t, exit.Partial, code)
	assert.Contains(t, errs, "1 operation of 2 refused")
	var got struct{ Compiled []schema.Compiled }
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got.Compiled, 2)
	assert.Equal(t, "urn:add", got.Compiled[0].Action)
	assert.Len(t, got.Compiled[0].Messages, 2)
	require.Len(t, got.Compiled[1].Problems, 1)
	assert.Contains(t, got.Compiled[1].Problems[0], broken+":10:26:")
	assert.Contains(t, got.Compiled[1].Problems[0], "element {urn:sum}gone is not declared")

	code, _, errs = do(t, "schema", "compile", broken)
	assert.Equal(t, exit.Partial, code)
	assert.Contains(t, errs, "Reset: "+broken+":10:26:")

	code, out, _ = do(t, "schema", "show", whole, "Add")
	assert.Equal(t, exit.Done, code)
	assert.Equal(t, "Add, input\n{urn:sum}add  elements\n  n  1..*  int\n\nAdd, output\n{urn:sum}sum  int\n\n", out)
	code, _, errs = do(t, "schema", "show", whole, "Sub")
	assert.Equal(t, exit.WrongUsage, code)
	assert.Contains(t, errs, "has no operation or element Sub that compiles")

	code, out, errs = do(t, "schema", "diff", whole, whole)
	assert.Equal(t, exit.Done, code)
	assert.Equal(t, "streams are not affected\n", out)
	assert.Contains(t, errs, "3 messages the same, 0 not")
	code, out, _ = do(t, "schema", "diff", whole, longer)
	assert.Equal(t, exit.Failed, code)
	assert.Equal(t, "Add, input: add/n: int became long\nstreams are affected: 1 message\n", out)
	code, out, _ = do(t, "schema", "diff", broken, whole)
	assert.Equal(t, exit.Failed, code)
	assert.Equal(t, "Reset, input: new\nstreams are not affected\n", out)

	code, _, errs = do(t, "schema", "compile", file("no.wsdl", "<a>"))
	assert.Equal(t, exit.Malformed, code)
	assert.Contains(t, errs, "no.wsdl:1:4: not well-formed")
	code, _, errs = do(t, "schema", "compile", filepath.Join(dir, "none.wsdl"))
	assert.Equal(t, exit.Failed, code)
	assert.Contains(t, errs, "none.wsdl")

	code, _, errs = do(t, "schema", "compile", file("bare.wsdl", sumWSDL[:strings.Index(sumWSDL, "<w:binding")]+
		"</w:definitions>"))
	assert.Equal(t, exit.Done, code)
	assert.Contains(t, errs, "bare.wsdl describes no messages: a WSDL does by a binding of SOAP")
	code, _, errs = do(t, "schema", "compile", file("far.wsdl", strings.Replace(sumWSDL, "<w:types>",
		`<w:types><xs:schema><xs:include schemaLocation="http://127.0.0.1:1/x.xsd"/></xs:schema>`, 1)))
	assert.Equal(t, exit.Done, code)
	assert.Contains(t, errs, "--fetch fetches documents of other machines")

	fits := file("fits.xml", `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`+
		`<add xmlns="urn:sum"><n>1</n><n>2</n></add></s:Body></s:Envelope>`)
	wrong := file("wrong.xml", `<add xmlns="urn:sum"><n>one</n></add>`)
	code, out, errs = do(t, "schema", "check", fits, "--schema", whole)
	assert.Equal(t, exit.Done, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "1 message, 0 not as described")
	code, out, _ = do(t, "schema", "check", fits, wrong, "--schema", whole)
	assert.Equal(t, exit.Failed, code)
	assert.Equal(t, wrong+":1:22: add/n: \"one\" is no int\n", out)
	code, out, _ = do(t, "schema", "check", file("other.xml", "<other/>"), "--schema", whole)
	assert.Equal(t, exit.Failed, code)
	assert.Contains(t, out, "other: other is not described")
	code, _, errs = do(t, "schema", "check", fits)
	assert.Equal(t, exit.WrongUsage, code)
	assert.Contains(t, errs, "--schema is missing")
}

// A description may be in any charset that XML has, also where a stream takes it, and begin with
// comments.
func TestSchemaCharsets(t *testing.T) {
	for name, text := range map[string][]byte{
		"UTF-16LE": inUTF16(binary.LittleEndian, sumWSDL), "UTF-16BE": inUTF16(binary.BigEndian, sumWSDL),
		"UTF-8 with a mark": append([]byte("\xef\xbb\xbf"), sumWSDL...),
		"line ends":         []byte(strings.ReplaceAll(sumWSDL, "\n", "\r\n")),
		"comments": []byte("<!-- one -->" +
			strings.Replace(sumWSDL, "<xs:element", "<!-- two --><xs:element", 1)),
	} {
		file := filepath.Join(t.TempDir(), "sum.wsdl")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		code, out, errs := do(t, "schema", "compile", file)
		assert.Equal(t, exit.Done, code, "%s: %s", name, errs)
		assert.Contains(t, out, "Reset", name)
		code, _, errs = do(t, "negotiate", "http://127.0.0.1:1/", "--schema", file)
		assert.Equal(t, exit.NoPeer, code, name)
		assert.NotContains(t, errs, "schema", name)
	}
}

// inUTF16 writes a text with a byte order mark.
func inUTF16(order binary.AppendByteOrder, text string) (out []byte) {
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

// A description may be in any charset of Windows that has one byte for a character. The characters
// here are from the tables of Unicode for these.
func TestSchemaInCharsetsOfWindows(t *testing.T) {
	for charset, tc := range map[string]struct {
		bytes string
		text  string
	}{
		"windows-1250": {"\xe8\xf8", "čř"}, "windows-1251": {"\xcf\xb8", "Пё"}, "Windows-1252": {"\x80\xe9", "€é"},
		"windows-1253": {"\xc1\xfe", "Αώ"}, "windows-1254": {"\xf0\xfe", "ğş"}, "windows-1255": {"\xe0\xfa", "את"},
		"windows-1256": {"\xc7\x8e", "اژ"}, "windows-1257": {"\xe0\xfe", "ąž"}, "windows-1258": {"\xf0\xfe", "đ₫"},
		"ISO-8859-1": {"\xa4\xe9", "¤é"},
	} {
		file := filepath.Join(t.TempDir(), "a.xsd")
		text := `<?xml version="1.0" encoding="` + charset + `"?>
			<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="` + tc.bytes + `"/></xs:schema>`
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		code, out, errs := do(t, "schema", "show", file)
		assert.Equal(t, exit.Done, code, "%s: %s", charset, errs)
		assert.Contains(t, out, tc.text+"  anything\n", charset)
	}
	file := filepath.Join(t.TempDir(), "a.xsd")
	require.NoError(t, os.WriteFile(file, []byte(`<?xml version="1.0" encoding="windows-1259"?><a/>`), 0o600))
	code, _, errs := do(t, "schema", "compile", file)
	assert.Equal(t, exit.Malformed, code)
	assert.Contains(t, errs, `not supported (UTF-8, UTF-16, ISO-8859-1, windows-125x): "windows-1259"`)
}
