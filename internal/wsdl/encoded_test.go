package wsdl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

// archive has operations in SOAP's encoding, as Axis 1.4 declares them.
func archive(t *testing.T) *wsdl.ServiceDescription {
	d, err := wsdl.Load(t.Context(), filepath.Join("testdata", "encoded", "archive.wsdl"), wsdl.SourceOptions{})
	require.NoError(t, err)
	require.Empty(t, d.Problems)
	for _, o := range d.Operations {
		require.Empty(t, o.Problems)
	}
	return d
}

// encodedBody is an envelope in SOAP's encoding.
func encodedBody(inside string) string {
	return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:t="urn:example:archive"` +
		` xmlns:e="http://schemas.xmlsoap.org/soap/encoding/" xmlns:xsd="http://www.w3.org/2001/XMLSchema"` +
		` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:map="http://xml.apache.org/xml-soap">` +
		`<s:Body s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">` + inside + `</s:Body></s:Envelope>`
}

// What Axis 1.4 and gSOAP write is as it is described.
func TestEncodedMessages(t *testing.T) {
	d := archive(t)
	files, err := filepath.Glob(filepath.Join("testdata", "encoded", "*.xml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		root, err := xsd.ParseMessage(file, text)
		require.NoError(t, err)
		assert.Empty(t, d.Check(root), file)
	}
}

// Messages in SOAP's encoding are right and wrong as sections 5 and 7.1 of SOAP 1.1 say, which no
// schema does.
func TestEncodedChecks(t *testing.T) {
	d := archive(t)
	list := func(parts string) string { return `<t:list>` + parts + `</t:list>` }
	folders := func(attributes, items string) string {
		return list(`<folders` + attributes + `>` +
			items + `</folders>`)
	}
	counts := func(attributes, items string) string {
		return `<t:store><counts` + attributes + `>` + items + `</counts></t:store>`
	}
	properties := func(attributes, items string) string {
		return `<t:store><properties` + attributes + `>` + items + `</properties></t:store>`
	}
	entry := func(attributes, inside string) string {
		return `<t:store><entry` + attributes + `>` + inside + `</entry></t:store>`
	}
	const ints = ` e:arrayType="xsd:int[3]"`
	for _, tc := range []struct{ what, body, wrong string }{
		// section 5.1: values and their types
		{"bare values", list(`<mailbox>a</mailbox><most>1</most>`), ""},
		{"values with their types",
			list(`<mailbox xsi:type="xsd:string">a</mailbox><most xsi:type="xsd:int">1</most>`), ""},
		{"types of the encoding", list(`<mailbox xsi:type="e:string">a</mailbox><most xsi:type="e:int">1</most>`), ""},
		{"a derived type", list(`<most xsi:type="xsd:short">1</most>`), ""},
		{"a value that its type does not have", list(`<most xsi:type="xsd:int">many</most>`),
			`list/most: "many" is no int`},
		{"a value that the named type does not have", list(`<most xsi:type="xsd:byte">300</most>`), `"300" is no byte`},
		{"a type that is not derived", list(`<most xsi:type="xsd:string">1</most>`),
			"xsi:type xsd:string is not derived from its type"},
		{"a wider type", list(`<most xsi:type="xsd:long">1</most>`), "xsi:type xsd:long is not derived from its type"},
		{"a type that is not there", list(`<most xsi:type="t:Most">1</most>`), `xsi:type "t:Most" is no type`},
		{"a prefix that is not declared", list(`<most xsi:type="x:int">1</most>`), `xsi:type "x:int" is no type`},
		{"elements in a value", list(`<most><n>1</n></most>`), "n inside a value"},
		{"an attribute as a value", list(`<from when="now"/>`), "the attribute when is not declared"},
		{"another encoding", list(`<most s:encodingStyle="urn:other">1</most>`),
			`encodingStyle is "urn:other", and not that of SOAP 1.1`},
		{"a value of a base that is enumerated", entry("", `<state xsi:type="xsd:string">Copy</state>`), ""},
		{"a value that is not enumerated", entry("", `<state xsi:type="xsd:string">Draft</state>`),
			`entry/state: "Draft" is not among its 2 values`},
		// sections 5.1 and 5.4.1: structs
		{"a struct in another order", entry(` xsi:type="t:Entry"`, `<subject>s</subject><mailId>1</mailId>`), ""},
		{"a struct with an unknown accessor", entry("", `<subject>s</subject><body/>`), "entry: body is not declared"},
		{"an accessor twice", entry("", `<subject>s</subject><subject>t</subject>`), "entry: subject is too many"},
		{"text in a struct", entry("", `text<subject>s</subject>`), `entry: text "text" between elements`},
		{"a derived struct", entry(` xsi:type="t:SignedEntry"`, `<signature>YQ==</signature>`), ""},
		{"an accessor of a derived struct", entry(` xsi:type="t:Entry"`, `<signature>YQ==</signature>`),
			"entry: signature is not declared"},
		{"a struct of another type", entry(` xsi:type="t:ArrayOfInt"`, ``), "xsi:type t:ArrayOfInt is not derived"},
		{"a struct inside itself", entry("", `<previous><previous><mailId>x</mailId></previous></previous>`),
			`entry/previous/previous/mailId: "x" is no int`},
		// section 7.1: parts
		{"all parts left out", list(``), ""},
		{"parts in another order", list(`<most>1</most><mailbox>a</mailbox>`),
			"list: mailbox, which stands before most"},
		{"a part that is not declared", list(`<least>1</least>`), "list: least is not declared"},
		{"a part in the namespace of the call", list(`<t:most>1</t:most>`),
			"{urn:example:archive}most is not declared"},
		// nil
		{"nil", entry("", `<referenceId xsi:nil="1"/>`), ""},
		{"nil with a value", entry("", `<referenceId xsi:nil="1">5</referenceId>`), "nil, and not empty"},
		// sections 5.1 and 5.2.2: references
		{"a reference", list(`<most href="#m"/>`) + `<multiRef id="m" xsi:type="xsd:int">5</multiRef>`, ""},
		{"a reference to a value that is embedded", list(`<mailbox id="a">5</mailbox><most href="#a"/>`), ""},
		{"a reference to what is not there",
			list(`<most href="#n"/>`) + `<multiRef id="m" xsi:type="xsd:int">5</multiRef>`,
			`list/most: refers to "#n", which is not there`},
		{"a reference to a wrong value",
			list(`<most href="#m"/>`) + `<multiRef id="m" xsi:type="xsd:int">five</multiRef>`,
			`"five" is no int`},
		{"a reference to another type",
			list(`<most href="#m"/>`) + `<multiRef id="m" xsi:type="xsd:date">2026-11-23</multiRef>`,
			"list/most: xsi:type xsd:date is not derived from its type"},
		{"a reference with a value", list(`<most href="#m">1</most>`) + `<m id="m">5</m>`,
			`refers to "#m", and is not empty`},
		{"an id twice", list(`<most href="#m"/>`) + `<m id="m">5</m><m id="m">6</m>`, `the id "m" is also that of`},
		{"a value beside the call without an id", list(``) + `<m>5</m>`, "stands beside the call, and has no id"},
		{"a reference to an attachment", list(`<mailbox href="cid:1@example.com"/>`), ""},
		{"values that refer to each other", entry(` href="#a"`, ``) + `<m id="a"><previous href="#b"/></m>` +
			`<m id="b" xsi:type="t:Entry"><previous href="#a"/><mailId>x</mailId></m>`, `"x" is no int`},
		{"a value that nothing refers to", list(``) + `<m id="a" xsi:type="xsd:int">x</m>`, `"x" is no int`},
		// section 5.4.2: arrays
		{"an array", folders(ints+` xsi:type="e:Array"`, `<item>1</item><item>2</item><item>3</item>`), ""},
		{"an array whose items have other names", folders(ints, `<a>1</a><b>2</b><c>3</c>`), ""},
		{"an array of its declared type", folders(ints+` xsi:type="t:ArrayOfInt"`, `<i>1</i><i>2</i><i>3</i>`), ""},
		{"an array without a size", folders(` e:arrayType="xsd:int[]"`, `<i>1</i>`), ""},
		{"an array that says nothing", folders(``, `<i>1</i>`), ""},
		{"an array with a wrong item", folders(ints, `<i>1</i><i>x</i><i>3</i>`), `list/folders/i[2]: "x" is no int`},
		{"an array with too many items", folders(ints, `<i>1</i><i>2</i><i>3</i><i>4</i>`),
			"4 items from place 0 on, in an array of 3 items"},
		{"an array of a derived type", folders(` e:arrayType="xsd:short[2]"`, `<i>1</i><i>2</i>`), ""},
		{"an array of another type", folders(` e:arrayType="xsd:string[2]"`, `<i>1</i><i>2</i>`),
			`arrayType "xsd:string[2]", where the items are {http://www.w3.org/2001/XMLSchema}int`},
		{"an array of what is not there", folders(` e:arrayType="t:Integer[2]"`, `<i>1</i><i>2</i>`),
			`arrayType "t:Integer" is no type`},
		{"no type of an array", folders(` e:arrayType="xsd:int"`, `<i>1</i>`),
			`arrayType "xsd:int" is no type with a size`},
		{"a size that is no number", folders(` e:arrayType="xsd:int[n]"`, `<i>1</i>`), "is no type with a size"},
		{"leading zeros, as CWMP has them", folders(` e:arrayType="xsd:int[0002]"`, `<i>1</i><i>2</i>`), ""},
		{"items that refer",
			folders(ints, `<i href="#a"/><i href="#a"/><i>3</i>`) + `<m id="a" xsi:type="xsd:int">7</m>`, ""},
		{"items that are nil", folders(ints, `<i xsi:nil="true"/><i>1</i><i>2</i>`), ""},
		{"another number of dimensions", folders(` e:arrayType="xsd:int[2,2]"`, `<i>1</i>`),
			`arrayType "xsd:int[2,2]", where the dimensions are []`},
		{"two dimensions", counts(` e:arrayType="xsd:int[2,2]"`, `<i>1</i><i>2</i><i>3</i><i>4</i>`), ""},
		{"too many for two dimensions", counts(` e:arrayType="xsd:int[2,1]"`, `<i>1</i><i>2</i><i>3</i>`),
			"3 items from place 0 on, in an array of 2 items"},
		{"anything", properties(` e:arrayType="xsd:ur-type[3]"`,
			`<i xsi:type="xsd:int">1</i><i xsi:type="t:Entry"><mailId>1</mailId></i><i>text</i>`), ""},
		{"anything that is wrong", properties(` e:arrayType="xsd:anyType[1]"`, `<i xsi:type="xsd:int">x</i>`),
			`"x" is no int`},
		{"a type of a namespace that is not known", properties(``, `<i xsi:type="map:Map"><item/></i>`), ""},
		{"an array in an array", properties(` e:arrayType="xsd:anyType[1]"`,
			`<i xsi:type="e:Array" e:arrayType="xsd:int[2]"><i>1</i><i>x</i></i>`), `i[1]/i[2]: "x" is no int`},
		{"an array of arrays", properties(` e:arrayType="xsd:int[][2]"`,
			`<i e:arrayType="xsd:int[2]"><n>1</n><n>2</n></i><i e:arrayType="xsd:int[1]"><n>x</n></i>`),
			`i[2]/n[1]: "x" is no int`},
		{"an array that contains itself", properties(` id="p" e:arrayType="xsd:anyType[][1]"`, `<i href="#p"/>`), ""},
		// sections 5.4.2.1 and 5.4.2.2: partial and sparse arrays
		{"a partial array", folders(ints+` e:offset="[1]"`, `<i>1</i><i>2</i>`), ""},
		{"the beginning of an array", folders(ints, `<i>1</i>`), ""},
		{"a partial array beyond the end", folders(ints+` e:offset="[2]"`, `<i>1</i><i>2</i>`),
			"2 items from place 2 on, in an array of 3 items"},
		{"an offset beyond the end", folders(ints+` e:offset="[3]"`, ``),
			`offset "[3]" is no place in an array of 3 items`},
		{"an offset that is no number", folders(ints+` e:offset="2"`, `<i>1</i>`), `offset "2" is no place`},
		{"a sparse array", folders(ints, `<i e:position="[0]">1</i><i e:position="[2]">2</i>`), ""},
		{"a position beyond the end", folders(ints, `<i e:position="[3]">1</i>`),
			`position "[3]" is no place in an array of 3 items`},
		{"a position twice", folders(ints, `<i e:position="[1]">1</i><i e:position="[1]">2</i>`),
			`position "[1]" is taken`},
		{"an item without a position", folders(ints, `<i e:position="[1]">1</i><i>2</i>`),
			"1 of 2 items have no position"},
		{"a sparse array of two dimensions", counts(` e:arrayType="xsd:int[9,9]"`, `<i e:position="[8,8]">1</i>`), ""},
		{"a position of another number of dimensions", counts(` e:arrayType="xsd:int[9,9]"`,
			`<i e:position="[8]">1</i>`),
			`position "[8]" is no place in an array of 81 items`},
	} {
		t.Run(tc.what, func(t *testing.T) {
			root, err := xsd.ParseMessage("m.xml", []byte(encodedBody(tc.body)))
			require.NoError(t, err)
			found := d.Check(root)
			if tc.wrong == "" {
				assert.Empty(t, found)
				return
			}
			require.NotEmpty(t, found)
			assert.Contains(t, found[0].String(), tc.wrong)
			assert.Contains(t, found[0].String(), "m.xml:1:")
		})
	}
}

// However often values refer to each other, and however deep they are nested, a message is compared
// in time and memory that go with its length.
func TestEncodedChecksAreBounded(t *testing.T) {
	d := archive(t)
	const n = 20_000
	var chain strings.Builder
	chain.WriteString(`<t:store><entry href="#m0"/></t:store>`)
	for i := range n {
		fmt.Fprintf(&chain, `<m id="m%d"><previous href="#m%d"/></m>`, i, i+1)
	}
	fmt.Fprintf(&chain, `<m id="m%d"><mailId>x</mailId></m>`, n)
	root, err := xsd.ParseMessage("m.xml", []byte(encodedBody(chain.String())))
	require.NoError(t, err)
	found := d.Check(root)
	require.Len(t, found, 1)
	assert.Less(t, len(found[0].Path), 300)
}

// Whatever a message in SOAP's encoding is, it is compared in bounded time.
func FuzzEncodedCheck(f *testing.F) {
	d, err := wsdl.Load(f.Context(), filepath.Join("testdata", "encoded", "archive.wsdl"), wsdl.SourceOptions{})
	require.NoError(f, err)
	files, err := filepath.Glob(filepath.Join("testdata", "encoded", "*.xml"))
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	for _, inside := range []string{
		`<properties id="p" e:arrayType="xsd:anyType[][1]"><i href="#p"/></properties>`,
		`<counts e:arrayType="xsd:int[9,9]" e:offset="[1,1]"><i e:position="[8,8]">1</i></counts>`,
	} {
		f.Add([]byte(encodedBody(`<t:store>` + inside + `</t:store>`)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := xsd.ParseMessage("m.xml", text)
		if err == nil && len(text) < 64<<10 {
			assert.LessOrEqual(t, len(d.Check(root)), 32)
		}
	})
}
