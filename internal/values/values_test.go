package values_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/values"
	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// schemaOfAll has what messages are made of: Put has all of it, below one element each.
const schemaOfAll = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:s="urn:s" targetNamespace="urn:s"
  elementFormDefault="qualified">
<xs:element name="Put"><xs:complexType><xs:sequence>
  <xs:element name="text" type="xs:string" minOccurs="0" nillable="true"/>
  <xs:element name="count" type="s:Small" minOccurs="0" maxOccurs="3"/>
  <xs:element name="price" type="xs:decimal" minOccurs="0"/>
  <xs:element name="ratio" type="xs:double" minOccurs="0"/>
  <xs:element name="on" type="xs:boolean" minOccurs="0"/>
  <xs:element name="at" type="xs:dateTime" minOccurs="0"/>
  <xs:element name="data" type="xs:base64Binary" minOccurs="0"/>
  <xs:element name="name" type="xs:QName" minOccurs="0"/>
  <xs:element name="sizes" type="s:Sizes" minOccurs="0"/>
  <xs:element name="either" type="s:Either" minOccurs="0"/>
  <xs:element name="money" type="s:Money" minOccurs="0"/>
  <xs:element name="person" type="s:Person" minOccurs="0"/>
  <xs:element ref="s:shape" minOccurs="0"/>
  <xs:choice minOccurs="0" maxOccurs="unbounded">
    <xs:element name="red" type="xs:int"/><xs:element name="blue" type="xs:int"/>
  </xs:choice>
  <xs:sequence minOccurs="0" maxOccurs="unbounded">
    <xs:element name="key" type="xs:string"/><xs:element name="value" type="xs:string"/>
  </xs:sequence>
  <xs:element name="note" minOccurs="0"><xs:complexType mixed="true"><xs:sequence>
    <xs:element name="b" type="xs:string" minOccurs="0" maxOccurs="unbounded"/>
  </xs:sequence></xs:complexType></xs:element>
  <xs:element name="free" minOccurs="0"/>
  <xs:element name="code" minOccurs="0"><xs:simpleType><xs:restriction base="xs:int">
    <xs:pattern value="0[0-9]+"/></xs:restriction></xs:simpleType></xs:element>
  <xs:element name="which" type="s:Which" minOccurs="0"/>
  <xs:any namespace="##other" processContents="lax" minOccurs="0"/>
</xs:sequence><xs:attribute name="id" type="xs:int"/></xs:complexType></xs:element>
<xs:element name="shape" type="xs:string" abstract="true"/>
<xs:element name="circle" type="xs:string" substitutionGroup="s:shape"/>
<xs:element name="square" type="xs:string" substitutionGroup="s:shape"/>
<xs:simpleType name="Small"><xs:restriction base="xs:int"><xs:maxInclusive value="9"/></xs:restriction></xs:simpleType>
<xs:simpleType name="Sizes"><xs:list itemType="xs:int"/></xs:simpleType>
<xs:simpleType name="Which"><xs:union memberTypes="xs:int xs:QName"/></xs:simpleType>
<xs:simpleType name="Either"><xs:union memberTypes="xs:int xs:boolean xs:string"/></xs:simpleType>
<xs:complexType name="Money"><xs:simpleContent><xs:extension base="xs:decimal">
  <xs:attribute name="currency" type="xs:string" use="required"/></xs:extension></xs:simpleContent></xs:complexType>
<xs:complexType name="Person"><xs:sequence><xs:element name="first" type="xs:string"/></xs:sequence></xs:complexType>
<xs:complexType name="Boss"><xs:complexContent><xs:extension base="s:Person"><xs:sequence>
  <xs:element name="office" type="xs:string"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>
</xs:schema>`

func translator(t testing.TB) *values.Translator {
	t.Helper()
	d, err := wsdl.Parse(t.Context(), []byte(schemaOfAll))
	require.NoError(t, err)
	require.Empty(t, d.Problems)
	return values.New(d.Set(), d.Elements[0].Contents(), 11)
}

func body(t testing.TB, envelope []byte) *xsd.DocumentNode {
	t.Helper()
	root, err := xsd.ParseMessage("message", envelope)
	require.NoError(t, err, "%s", envelope)
	return root.Children[len(root.Children)-1]
}

// What is read of a message is the same JSON that makes it.
func TestValues(t *testing.T) {
	for name, c := range map[string]struct{ inside, json string }{
		"nothing":             {``, `{}`},
		"attribute":           {`id="7">`, `{"@id":7}`},
		"text":                {`<text>a&lt;b  </text>`, `{"text":"a<b  "}`},
		"empty text":          {`<text/>`, `{"text":""}`},
		"nil":                 {`<text xsi:nil="true"/>`, `{"text":null}`},
		"repeated":            {`<count>1</count><count>2</count>`, `{"count":[1,2]}`},
		"once of several":     {`<count>1</count>`, `{"count":[1]}`},
		"long decimal":        {`<price>12345678901234567890.10</price>`, `{"price":12345678901234567890.10}`},
		"decimal, short":      {`<price>+01.</price>`, `{"price":1}`},
		"decimal, fraction":   {`<price>-.50</price>`, `{"price":-0.50}`},
		"double":              {`<ratio>-1.5E-3</ratio>`, `{"ratio":-1.5E-3}`},
		"no number":           {`<ratio>-INF</ratio>`, `{"ratio":"-INF"}`},
		"not a number":        {`<ratio>NaN</ratio>`, `{"ratio":"NaN"}`},
		"boolean":             {`<on> 1 </on>`, `{"on":true}`},
		"time":                {`<at>2026-11-27T10:00:00+01:00</at>`, `{"at":"2026-11-27T10:00:00+01:00"}`},
		"binary":              {`<data>AAEC</data>`, `{"data":"AAEC"}`},
		"name":                {`<name xmlns:q="urn:q">q:local</name>`, `{"name":"{urn:q}local"}`},
		"list":                {`<sizes>1 2 3</sizes>`, `{"sizes":[1,2,3]}`},
		"empty list":          {`<sizes/>`, `{"sizes":[]}`},
		"union, number":       {`<either>5</either>`, `{"either":5}`},
		"union, boolean":      {`<either>true</either>`, `{"either":true}`},
		"union, text":         {`<either>five</either>`, `{"either":"five"}`},
		"value and attribute": {`<money currency="EUR">5.00</money>`, `{"money":{"@currency":"EUR","$":5.00}}`},
		"elements":            {`<person><first>Ann</first></person>`, `{"person":{"first":"Ann"}}`},
		"derived type": {`<person xsi:type="s:Boss"><first>Ann</first><office>1</office></person>`,
			`{"person":{"$type":"{urn:s}Boss","first":"Ann","office":"1"}}`},
		"substituted":     {`<circle>round</circle>`, `{"circle":"round"}`},
		"grouped choice":  {`<red>1</red><red>2</red><blue>3</blue>`, `{"red":[1,2],"blue":[3]}`},
		"other way round": {`<blue>3</blue><red>1</red>`, `{"blue":[3],"red":[1]}`},
		"repeated group": {`<key>a</key><value>1</value><key>b</key><value>2</value>`,
			`{"key":["a","b"],"value":["1","2"]}`},
		"text in between": {`<note>one <b>two</b> three</note>`, `{"note":{"#":["one ",{"b":"two"}," three"]}}`},
		"text alone":      {`<note>one</note>`, `{"note":"one"}`},
		"anything, text":  {`<free>5</free>`, `{"free":"5"}`},
		"leading zeros":   {`<code>007</code>`, `{"code":"007"}`},
		"union, name":     {`<which xmlns:q="urn:q">q:local</which>`, `{"which":"{urn:q}local"}`},
		"anything, typed": {`<free xsi:type="xs:int">5</free>`, `{"free":{"$type":"xs:int","$":5}}`},
		"anything":        {`<free a="1"><c xmlns="">x</c></free>`, `{"free":{"@a":"1","c":"x"}}`},
		"open content":    {`<o:x xmlns:o="urn:o"><o:y>1</o:y></o:x>`, `{"{urn:o}x":{"{urn:o}y":"1"}}`},
		"mixed order": {`<red>1</red><blue>2</blue><red>3</red>`,
			`{"#":[{"red":1},{"blue":2},{"red":3}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			attrs, inside, found := strings.Cut(c.inside, ">")
			if !found || strings.Contains(attrs, "<") {
				attrs, inside = "", c.inside
			}
			tr := translator(t)
			envelope := `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns:s="urn:s" ` +
				`xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">` +
				`<e:Body><Put xmlns="urn:s" ` + attrs + `>` + inside + `</Put></e:Body></e:Envelope>`
			read, err := tr.Read(body(t, []byte(envelope))).MarshalJSON()
			require.NoError(t, err)
			assert.Equal(t, c.json, string(read))

			v, err := values.ParseJSON("json", []byte(c.json))
			require.NoError(t, err)
			text, err := tr.Write(v, "")
			require.NoError(t, err)
			again, err := tr.Read(body(t, text)).MarshalJSON()
			require.NoError(t, err)
			assert.Equal(t, c.json, string(again), "%s", text)
		})
	}
}

// A name of JSON may come before others of the content model: the message has the order of that.
func TestOrderIsThatOfTheModel(t *testing.T) {
	v, err := values.ParseJSON("json", []byte(`{"ratio": 1, "count": 2, "text": "a"}`))
	require.NoError(t, err)
	text, err := translator(t).Write(v, "<h/>")
	require.NoError(t, err)
	assert.Equal(t, `<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/" xmlns:n1="urn:s">`+
		`<soap:Header><h/></soap:Header><soap:Body><n1:Put><n1:text>a</n1:text><n1:count>2</n1:count>`+
		`<n1:ratio>1</n1:ratio></n1:Put></soap:Body></soap:Envelope>`, string(text))
}

// What does not fit is reported with its place, and what was expected.
func TestMisfits(t *testing.T) {
	for name, c := range map[string]struct{ json, want string }{
		"unknown name": {`{"text":"a",` + "\n" + ` "txet":"b"}`,
			`json:2:9: Put: txet is not expected: text, count,`},
		"wrong type":       {`{"on":5}`, `json:1:7: Put/on: a number, where a boolean is expected`},
		"number for text":  {`{"text":5}`, `json:1:9: Put/text: a number, where a string is expected`},
		"facet":            {`{"count":[1,12]}`, `json:1:13: Put/count: 12 is out of its range`},
		"too many":         {`{"count":[1,2,3,4]}`, `json:1:17: Put: {urn:s}count is too many, or not declared`},
		"missing":          {`{"person":{}}`, `json:1:11: Put/person: ends, where {urn:s}first is expected`},
		"attribute":        {`{"money":5}`, `json:1:10: Put/money: the attribute currency is missing`},
		"not nillable":     {`{"ratio":null}`, `json:1:10: Put/ratio: nil, and not nillable`},
		"object for value": {`{"ratio":{"x":1}}`, `json:1:15: Put/ratio: x beside "$", which is all there is`},
		"array for object": {`{"person":[[1]]}`,
			`json:1:12: Put/person: an array, where an object is expected: in it first is`},
		"array for value": {`{"ratio":[[1]]}`, `json:1:11: Put/ratio: an array, where a double is expected`},
		"null in text":    {`{"text":"a\u0000"}`, `json:1:9: Put/text: "\x00", which XML cannot have`},
		"no such type": {`{"person":{"$type":"None","first":"a"}}`,
			`json:1:20: Put/person: there is no type None for this element`},
		"other type": {`{"person":{"$type":"Money","first":"a"}}`,
			`json:1:20: Put/person: there is no type Money for this element`},
		"blank in a list": {`{"sizes":["1 2"]}`, `json:1:10: Put/sizes: item 1 of a list has white space in it`},
		"open content":    {`{"o":1}`, `json:1:6: Put: o is not expected: text, count, price,`},
		"beside elements": {`{"$":"lost","text":"a"}`, `json:1:6: Put: $ is not expected: text, count,`},
		"unknown, with $": {`{"$foo":"lost","text":"a"}`, `json:1:9: Put: $foo is not expected: text, count,`},
		"beside an order": {`{"#":[{"text":"a"}],"on":true}`, `json:1:26: Put: on beside "#", which is all there is`},
		"beside nil": {`{"text":{"$":null,"x":"lost"}}`,
			`json:1:23: Put/text: x beside "$", which is all there is`},
		"no name":         {`{"{urn:o}x/><y":1}`, `json:1:17: Put: "x/><y" is no name in XML`},
		"no attribute":    {`{"@a b":1}`, `json:1:9: Put/@a b: "a b" is no name in XML`},
		"attribute twice": {`{"@id":1,"@{}id":2}`, `json:1:18: Put/@{}id: the attribute is there twice`},
		"declaration":     {`{"@xmlns":"urn:x"}`, `json:1:11: Put/@xmlns: xmlns declares a namespace`},
		"namespace of declarations": {`{"{http://www.w3.org/2000/xmlns/}x":1}`,
			`json:1:37: Put: {http://www.w3.org/2000/xmlns/}x declares a namespace`},
		"namespace of no characters": {`{"{urn:\u0001}x":1}`, `json:1:18: Put: "urn:\x01" has what no namespace`},
		"no ordered list":            {`{"note":{"#":1}}`, `json:1:14: Put/note: "#" is a number`},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := values.ParseJSON("json", []byte(c.json))
			require.NoError(t, err)
			text, err := translator(t).Write(v, "")
			require.Error(t, err, "%s", text)
			assert.Contains(t, err.Error(), c.want)
			assert.Nil(t, text)
		})
	}
}

func TestParseJSON(t *testing.T) {
	for text, want := range map[string]string{
		``:                       `json:1:1: no JSON: it ends too early`,
		`{"a":`:                  `json:1:6: no JSON: it ends too early`,
		"{\n \"a\" 1}":           `json:2:6: no JSON: invalid character '1' after object key`,
		"{\"é\":1,\n\"é\":2}":    `json:2:1: no JSON: the name "é" is there twice`,
		`{} {}`:                  `json:1:4: no JSON: more than one value`,
		strings.Repeat("[", 300): `json:1:257: no JSON: nested deeper than 256`,
		"{\"a\":\"\xff\"}":       `json:1:6: no JSON: a string that is not in UTF-8`,
		`{"a":"\\u0041\ud800"}`:  `json:1:6: no JSON: a string with half a character, \ud800`,
		`{"\udc00\ud800":1}`:     `json:1:2: no JSON: a string with half a character, \udc00`,
		`{"a":"\ud83d\u0041"}`:   `json:1:6: no JSON: a string with half a character, \ud83d`,
		`{"a":tru}`:              `json:1:6: no JSON: invalid character '}' in literal true (expecting 'e')`,
		`{"a":"` + "\x01" + `"}`: `json:1:6: no JSON: invalid character '\x01' in string literal`,
	} {
		_, err := values.ParseJSON("json", []byte(text))
		require.Error(t, err, text)
		assert.Equal(t, want, err.Error(), text)
	}
}

// Characters beyond the first plane, and U+FFFD itself, are nothing wrong; a byte order mark is no
// part of the text.
func TestStringsAreWhole(t *testing.T) {
	v, err := values.ParseJSON("json", []byte("\ufeff"+`{"a":"\ud83d\ude00 \\ud800 \ufffd`+"\ufffd"+`"}`))
	require.NoError(t, err)
	assert.Equal(t, "\U0001F600 \\ud800 \ufffd\ufffd", v.Get("a").Text)
}

// Values of one text stand one behind the other, and each is there before the next is read.
func TestParseJSONValues(t *testing.T) {
	r, w := io.Pipe()
	got := make(chan string)
	go func() {
		defer close(got)
		for v, err := range values.ParseJSONValues("stdin", r, 100) {
			if err != nil {
				got <- err.Error()
				return
			}
			got <- v.Place.String()
		}
	}()
	for _, c := range []struct{ text, want string }{
		{"{\n  \"a\": 1\n}", "stdin:1:1"},
		{"\n{}", "stdin:4:1"},
		{" [1] ", "stdin:4:4"},
		{`"` + strings.Repeat("x", 120), "stdin:4:8: no JSON: a value that is too long"},
	} {
		go func() { _, _ = io.WriteString(w, c.text) }()
		assert.Equal(t, c.want, <-got)
	}
	<-got
	require.NoError(t, r.Close())
	for _, err := range values.ParseJSONValues("stdin", iotest.ErrReader(errors.New("torn")), 100) {
		require.EqualError(t, err, "stdin: torn")
	}
}

// What a reply has beyond its description is read as it stands, and nothing of it is left out.
func TestBeyondTheDescription(t *testing.T) {
	for inside, want := range map[string]string{
		`<Put xmlns="urn:s"><price>1<c>2</c></price></Put>`:                `{"price":{"#":["1",{"{urn:s}c":"2"}]}}`,
		`<Put xmlns="urn:s"><text xsi:nil="true">kept</text></Put>`:        `{"text":"kept"}`,
		`<Put xmlns="urn:s"/><Other>1</Other><Other>2</Other><Put>3</Put>`: `{"Put":[{},"3"],"Other":["1","2"]}`,
	} {
		read, err := translator(t).Read(body(t, []byte(`<Envelope `+
			`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><Body>`+inside+`</Body></Envelope>`))).MarshalJSON()
		require.NoError(t, err)
		assert.Equal(t, want, string(read))
	}
}

// A reply is compared with its description: element by element, and in their number.
func TestMisfitsOfReplies(t *testing.T) {
	for inside, want := range map[string]string{
		`<Put xmlns="urn:s"><text>a</text></Put>`:       "",
		`<Put xmlns="urn:s"><text>a</text></Put><Put/>`: "message:1:56: Put: Put is too many",
		``: "message:1:11: Body: {urn:s}Put is missing",
		`<Put xmlns="urn:s"><on>maybe</on></Put>`: `message:1:36: Put/on: "maybe" is no boolean`,
	} {
		var found []string
		for _, one := range translator(t).Misfits(body(t, []byte(`<Envelope><Body>`+inside+`</Body></Envelope>`))) {
			found = append(found, one.String())
		}
		assert.Equal(t, want, strings.Join(found, "\n"))
	}
}

func TestPaths(t *testing.T) {
	v := &values.JSON{Kind: values.Object}
	for _, one := range []struct{ path, value string }{
		{"a", "1"}, {"b/c", "2"}, {"b/d", "3"}, {"e", "4"}, {"e", "5"}, {"e", "6"}, {"f/0/g", "7"}, {"f/0/h", "8"},
		{"f/1/g", "9"}, {"{urn:x/y}k/@l", "10"},
	} {
		require.NoError(t, v.Assign(one.path, &values.JSON{Kind: values.Loose, Text: one.value}), one.path)
	}
	text, err := v.MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, `{"a":"1","b":{"c":"2","d":"3"},"e":["4","5","6"],"f":[{"g":"7","h":"8"},{"g":"9"}],`+
		`"{urn:x/y}k":{"@l":"10"}}`, string(text))
	assert.Equal(t, []string{
		"a=1", "b/c=2", "b/d=3", "e/0=4", "e/1=5", "e/2=6", "f/0/g=7", "f/0/h=8", "f/1/g=9", "{urn:x/y}k/@l=10",
	}, v.Lines())
	for _, line := range v.Lines() {
		path, want, _ := strings.Cut(line, "=")
		found, err := v.At(path)
		require.NoError(t, err, path)
		assert.Equal(t, want, found.Plain())
	}
	for path, want := range map[string]string{
		"x": "there is no x: there is a, b, e, f, {urn:x/y}k", "b/x": "there is no x of b/x: there is c, d",
		"e/3": "there is no item 3 of 3 in e/3", "a/x": "there is no x of a/x: nothing is there",
		"f/g": "before g in f/g stands an array of 2 items: which one? The first is 0",
	} {
		_, err := v.At(path)
		assert.EqualError(t, err, want)
	}
	for path, want := range map[string]string{
		"a/b": "a/b goes through a value", "b//c": `the path "b//c" has an empty name`,
		"f/3/g": "3 of f/3/g is no number of an item: the next is 2", "e/0": "e/0 is there twice",
	} {
		assert.EqualError(t, v.Assign(path, &values.JSON{Kind: values.Loose}), want)
	}
}

const encodedCalls = `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:s="urn:s" targetNamespace="urn:s"
  xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xs="http://www.w3.org/2001/XMLSchema"
  xmlns:enc="http://schemas.xmlsoap.org/soap/encoding/" xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/">
<types><xs:schema targetNamespace="urn:s"><xs:complexType name="Row"><xs:sequence>
<xs:element name="id" type="xs:int"/><xs:element name="next" type="s:Row" nillable="true"/></xs:sequence>
</xs:complexType><xs:complexType name="Rows"><xs:complexContent><xs:restriction base="enc:Array">
<xs:attribute ref="enc:arrayType" wsdl:arrayType="s:Row[]"/></xs:restriction></xs:complexContent></xs:complexType>
</xs:schema></types><message name="m"><part name="rows" type="s:Rows"/><part name="count" type="xs:int"/></message>
<portType name="t"><operation name="Put"><input message="s:m"/></operation></portType>
<binding name="b" type="s:t"><soap:binding style="rpc" transport="http://schemas.xmlsoap.org/soap/http"/>
<operation name="Put"><input><soap:body use="encoded" namespace="urn:s"
  encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"/></input></operation></binding></definitions>`

// Values in SOAP's encoding say their types and the number of items; references are read as what
// they refer to.
func TestEncoded(t *testing.T) {
	d, err := wsdl.Parse(t.Context(), []byte(encodedCalls))
	require.NoError(t, err)
	require.Empty(t, d.Operations[0].Problems)
	tr := values.New(d.Set(), d.Operations[0].Input.Contents(), 11)
	const text = `{"rows":[{"id":1,"next":null},{"id":2,"next":{"id":3,"next":null}}],"count":2}`
	v, err := values.ParseJSON("json", []byte(text))
	require.NoError(t, err)
	envelope, err := tr.Write(v, "")
	require.NoError(t, err)
	assert.Contains(t, string(envelope), `<n1:Put soap:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">`+
		`<rows xsi:type="soapenc:Array" soapenc:arrayType="n1:Row[2]"><item xsi:type="n1:Row">`+
		`<id xsi:type="xsd:int">1</id><next xsi:type="n1:Row" xsi:nil="true"></next></item>`)
	read, err := tr.Read(body(t, envelope)).MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, text, string(read))

	for _, lost := range []string{`{"rows":{"item":[]},"count":1}`, `{"rows":{"$":5},"count":1}`} {
		v, err := values.ParseJSON("json", []byte(lost))
		require.NoError(t, err)
		_, err = tr.Write(v, "")
		assert.ErrorContains(t, err, "json:1:9: Put/rows: an object, where an array is expected", lost)
	}

	const multi = `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns:s="urn:s" ` +
		`xmlns:enc="http://schemas.xmlsoap.org/soap/encoding/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">` +
		`<e:Body><s:Put><rows enc:arrayType="s:Row[2]" xsi:type="enc:Array"><r href="#a"/><r href="#b"/></rows>` +
		`<count href="#c"/></s:Put><m id="a" xsi:type="s:Row"><id>1</id><next href="#b"/></m>` +
		`<m id="b" xsi:type="s:Row"><id>2</id><next href="#b"/></m><m id="c">2</m></e:Body></e:Envelope>`
	read, err = tr.Read(body(t, []byte(multi))).MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, `{"rows":[{"id":1,"next":{"id":2,"next":{"@href":"#b"}}},{"id":2,"next":{"@href":"#b"}}],`+
		`"count":2}`, string(read))

	sample, err := tr.Sample(0)
	require.NoError(t, err)
	assert.Contains(t, string(sample), `soapenc:arrayType="n1:Row[1]"><item xsi:type="n1:Row"><id xsi:type="xsd:int">`)
}

// Samples are as described, the same for one seed, and between them have each optional part and
// each choice.
func TestSamples(t *testing.T) {
	tr := translator(t)
	met := map[string]int{}
	const seeds = 60
	for seed := range uint64(seeds) {
		text, err := tr.Sample(seed)
		require.NoError(t, err)
		again, err := tr.Sample(seed)
		require.NoError(t, err)
		assert.Equal(t, string(text), string(again))
		comesBack(t, tr, text, "sample")
		for _, what := range []string{
			":text>", `:nil="true"`, ":count>", ":circle>", ":square>", ":red>", ":blue>",
			":Boss", ":person>", ":key>", `id="`,
		} {
			if strings.Contains(string(text), what) {
				met[what]++
			}
		}
	}
	assert.Len(t, met, 11, "%v", met)
	for what, n := range met {
		assert.Less(t, n, seeds, what)
	}
}

// A type that contains itself in any case has no sample, and one that may end has some.
func TestSamplesEnd(t *testing.T) {
	const schema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:s="urn:s" targetNamespace="urn:s">` +
		`<xs:element name="Endless" type="s:E"/><xs:complexType name="E"><xs:sequence>` +
		`<xs:element name="e" type="s:E"/></xs:sequence></xs:complexType>` +
		`<xs:element name="Tree" type="s:T"/><xs:complexType name="T"><xs:choice>` +
		`<xs:element name="t" type="s:T" maxOccurs="unbounded"/><xs:element name="leaf" type="xs:int"/>` +
		`</xs:choice></xs:complexType></xs:schema>`
	d, err := wsdl.Parse(t.Context(), []byte(schema))
	require.NoError(t, err)
	_, err = values.New(d.Set(), d.Elements[0].Contents(), 11).Sample(0)
	assert.ErrorContains(t, err, "contains itself")
	for seed := range uint64(20) {
		text, err := values.New(d.Set(), d.Elements[1].Contents(), 12).Sample(seed)
		require.NoError(t, err)
		assert.Less(t, len(text), 1<<20)
	}
}

// Two children of its own type that may be nil, in each, have a sample all the same: it ends.
func TestSamplesOfNilTreesEnd(t *testing.T) {
	schema := `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:s="urn:s" targetNamespace="urn:s">` +
		`<xs:element name="Tree" type="s:T"/><xs:complexType name="T"><xs:sequence>` +
		`<xs:element name="l" type="s:T" nillable="true"/><xs:element name="r" type="s:T" nillable="true"/>` +
		`</xs:sequence></xs:complexType><xs:element name="Wide" type="s:W0"/>` + wideTypes(40) + `</xs:schema>`
	d, err := wsdl.Parse(t.Context(), []byte(schema))
	require.NoError(t, err)
	for seed := range uint64(8) {
		text, err := values.New(d.Set(), d.Elements[0].Contents(), 11).Sample(seed)
		require.NoError(t, err)
		assert.Less(t, len(text), 1<<20)
	}
	_, err = values.New(d.Set(), d.Elements[1].Contents(), 11).Sample(0)
	assert.ErrorContains(t, err, "is in a message of more than 1048576 bytes")
}

// wideTypes have two elements each of the next one: 2 to the n.
func wideTypes(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `<xs:complexType name="W%d"><xs:sequence><xs:element name="a" type="s:W%d" minOccurs="2" `+
			`maxOccurs="2"/></xs:sequence></xs:complexType>`, i, i+1)
	}
	fmt.Fprintf(&b, `<xs:complexType name="W%d"/>`, n)
	return b.String()
}

// References that refer to one another do not make a message of any length.
func TestReferencesAreBounded(t *testing.T) {
	d, err := wsdl.Parse(t.Context(), []byte(encodedCalls))
	require.NoError(t, err)
	tr := values.New(d.Set(), d.Operations[0].Input.Contents(), 11)
	var b strings.Builder
	b.WriteString(`<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/" xmlns:s="urn:s"><e:Body><s:Put>` +
		`<rows><r href="#i0"/></rows><count>1</count></s:Put>`)
	for i := range 40 {
		fmt.Fprintf(&b, `<m id="i%d"><a href="#i%d"/><b href="#i%d"/></m>`, i, i+1, i+1)
	}
	b.WriteString(`<m id="i40"><id>1</id></m></e:Body></e:Envelope>`)
	text, err := tr.Read(body(t, []byte(b.String()))).MarshalJSON()
	require.NoError(t, err)
	assert.Less(t, len(text), 32<<20)
	assert.Contains(t, string(text), `{"@href":"#i`)
}

func FuzzWrite(f *testing.F) {
	for _, seed := range []string{
		`{"text":null,"count":[1,2],"note":{"#":["a",{"b":"c"}]}}`,
		`{"person":{"$type":"Boss","first":"a","office":"b"}}`,
		`{"free":{"{urn:x}y":[1,{"@a":true}]},"sizes":[1,2],"money":{"@currency":"x","$":1e3}}`,
		`[]`, `{"#":[{"red":1}]}`,
		`{"{urn:o}x/><y":1,"@a b=\"":2}`,
	} {
		f.Add(seed)
	}
	tr := translator(f)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := values.ParseJSON("json", []byte(text))
		if err != nil {
			return
		}
		again, err := v.MarshalJSON()
		require.NoError(t, err)
		_, err = values.ParseJSON("json", again)
		require.NoError(t, err, "%s", again)
		envelope, err := tr.Write(v, "")
		if err != nil {
			return
		}
		comesBack(t, tr, envelope, text)
	})
}

func BenchmarkWrite(b *testing.B) {
	tr := translator(b)
	text, err := tr.Sample(0)
	require.NoError(b, err)
	v := tr.Read(body(b, text))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, err = tr.Write(v, "")
	}
	require.NoError(b, err)
}

func BenchmarkRead(b *testing.B) {
	tr := translator(b)
	text, err := tr.Sample(0)
	require.NoError(b, err)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tr.Read(body(b, text))
	}
}
