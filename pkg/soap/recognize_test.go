package soap_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

const (
	open11 = `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `">`
	open12 = `<Envelope xmlns='` + xmlns.SOAP12 + `'>`
)

var recognizeTable = []struct {
	name, in string
	want     soap.Recognized
}{
	{"empty", "", soap.Recognized{}},
	{"no xml", "hello", soap.Recognized{}},
	{"html", "<html><body>Envelope</body></html>", soap.Recognized{}},
	{"other envelope", `<Envelope xmlns="urn:x"><Body><a/></Body></Envelope>`, soap.Recognized{}},
	{"1.1", open11 + `<s:Body><m:op xmlns:m="urn:m">`,
		soap.Recognized{Version: soap.V11, Operation: soap.Name{Space: "urn:m", Local: "op"}, Complete: true}},
	{"1.2 default namespace",
		"\xEF\xBB\xBF<?xml version='1.0'?>\n" + open12 + `<Header/><Body><op xmlns="urn:m"/></Body></Envelope>`,
		soap.Recognized{Version: soap.V12, Operation: soap.Name{Space: "urn:m", Local: "op"}, Complete: true}},
	{"no namespace child", open11 + `<s:Body><op/></s:Body>`,
		soap.Recognized{Version: soap.V11, Operation: soap.Name{Local: "op"}, Complete: true}},
	{"empty body", open11 + `<s:Body></s:Body></s:Envelope>`, soap.Recognized{Version: soap.V11, Complete: true}},
	{"empty body tag", open11 + `<s:Body/></s:Envelope>`, soap.Recognized{Version: soap.V11, Complete: true}},
	{"fault", open11 + `<s:Body><s:Fault>`, soap.Recognized{
		Version:   soap.V11,
		Operation: soap.Name{Space: xmlns.SOAP11, Local: "Fault"},
		Fault:     true,
		Complete:  true,
	}},
	{"cut in header", open11 + `<s:Header><a:Action xmlns:a="` + xmlns.WSA + `">urn:a&amp;b</a:Action><x>`,
		soap.Recognized{Version: soap.V11, Action: "urn:a&b"}},
	{"action",
		open12 + `<Header><a:Action xmlns:a="` + xmlns.WSA200408 + `"> urn:act </a:Action></Header><Body><o/></Body>`,
		soap.Recognized{
			Version:   soap.V12,
			Action:    "urn:act",
			Operation: soap.Name{Space: xmlns.SOAP12, Local: "o"},
			Complete:  true,
		}},
	{"Body inside a header block",
		open11 + `<s:Header><h><s:Body><no/></s:Body></h></s:Header><s:Body><!-- <c/> --><yes/></s:Body>`,
		soap.Recognized{Version: soap.V11, Operation: soap.Name{Local: "yes"}, Complete: true}},
	{"comment first", `<!-- ` + open12 + `<Body><no/> -->` + open11 + `<s:Body><yes/>`,
		soap.Recognized{Version: soap.V11, Operation: soap.Name{Local: "yes"}, Complete: true}},
	{"dtd first", `<!DOCTYPE x [<!ENTITY a "b">]>` + open11 + `<s:Body><yes/>`,
		soap.Recognized{Version: soap.V11, Operation: soap.Name{Local: "yes"}, Complete: true}},
	{"mime", "--b\r\nContent-ID: <root.xml>\r\n\r\n" + open11 + `<s:Body><yes/>`,
		soap.Recognized{Version: soap.V11, Operation: soap.Name{Local: "yes"}, Complete: true}},
	{"prefix bound again in the Body",
		open11 + `<s:Header><h xmlns:s="urn:z"/></s:Header><s:Body xmlns:m="urn:1"><m:o xmlns:m="urn:2">`,
		soap.Recognized{Version: soap.V11, Operation: soap.Name{Space: "urn:2", Local: "o"}, Complete: true}},
	{"greater-than in an attribute", open11 + `<s:Body><m:o a=">" xmlns:m='urn:m'>`,
		soap.Recognized{Version: soap.V11, Operation: soap.Name{Space: "urn:m", Local: "o"}, Complete: true}},
}

func TestRecognize(t *testing.T) {
	for _, c := range recognizeTable {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, soap.Recognize([]byte(c.in)))
			for _, order := range []string{"be", "le"} {
				if strings.HasPrefix(c.in, "<") && c.want.Version != soap.None {
					assert.Equal(t, c.want, soap.Recognize(utf16Of(c.in, order)), order)
				}
			}
		})
	}
}

func utf16Of(s, order string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune("\uFEFF" + s)) {
		if order == "be" {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return b
}

// Cutting a message anywhere never changes its meaning: a field is as in the whole message, or
// empty.
func TestRecognizeCut(t *testing.T) {
	for _, c := range recognizeTable {
		if c.want.Version == soap.None || strings.HasPrefix(c.in, "<!--") {
			continue
		}
		for i := range c.in {
			got := soap.Recognize([]byte(c.in[:i]))
			if got.Complete {
				assert.Equal(t, c.want, got, "%s cut at %d", c.name, i)
			}
			assert.Contains(t, []soap.Version{soap.None, c.want.Version}, got.Version, "%s cut at %d", c.name, i)
		}
	}
}

func TestRecognizeIsLinear(t *testing.T) {
	for _, unit := range []string{"<!--", "<Envelope ", "<Envelope a='", open11, "<", "<!-- --><Envelope x>"} {
		soap.Recognize(bytes.Repeat([]byte(unit), soap.MaxRecognize))
	}
}

// Every real message of the corpus that an XML parser takes for an envelope is recognized, with the
// version its folder names.
func TestRecognizeCorpus(t *testing.T) {
	paths := shared.Messages(t)
	known := 0
	for _, path := range paths {
		data := shared.Read(t, path)
		got := soap.Recognize(data)
		if got.Version != soap.None {
			known++
		}
		if e, err := soap.Parse(data, soap.Limits{MaxBytes: len(data), MaxElements: 1 << 20}); err == nil &&
			len(data) < soap.MaxRecognize {
			assert.Equal(t, e.Version, got.Version, path)
			if len(e.Body) > 0 {
				assert.Equal(t, e.Body[0].Name, got.Operation, path)
			}
			assert.True(t, got.Complete, path)
		}
	}
	t.Logf("%d of %d files hold an envelope", known, len(paths))
	assert.Greater(t, known, len(paths)*8/10)
}

func FuzzRecognize(f *testing.F) {
	for _, c := range recognizeTable {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got := soap.Recognize(in)
		if got.Version == soap.None && got != (soap.Recognized{}) {
			t.Fatalf("no envelope, but %+v", got)
		}
		if got.Fault && got.Operation.Local != "Fault" {
			t.Fatalf("fault without Fault: %+v", got)
		}
	})
}

// What every message is asked costs no memory.
func TestOperationNameAllocatesNothing(t *testing.T) {
	message := []byte(`<?xml version="1.0"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" ` +
		`xmlns:wsa="http://www.w3.org/2005/08/addressing"><s:Header><wsa:Action>urn:poll</wsa:Action></s:Header>` +
		`<s:Body><p:Poll xmlns:p="urn:p"><p:limit>10</p:limit></p:Poll></s:Body></s:Envelope>`)
	var name []byte
	require.Zero(t, testing.AllocsPerRun(100, func() { name = soap.OperationName(message) }))
	require.Equal(t, "Poll", string(name))
	require.Equal(t, "Poll", soap.Recognize(message).Operation.Local)
	require.Equal(t, "urn:poll", soap.Recognize(message).Action)
}

// TestFaultCodeIn: the code of either version is found without its prefix, where it is whole.
func TestFaultCodeIn(t *testing.T) {
	for text, want := range map[string]string{
		"<e:Fault><faultcode>e:Client</faultcode>":                      "Client",
		"<e:Fault><faultcode xmlns:x='u'>\n x:Client.Auth </faultcode>": "Client.Auth",
		"<e:Fault><e:Code><e:Value>e:Sender</e:Value>":                  "Sender",
		"<e:Fault><faultcode>":                                          "",
		"<e:Fault><faultcode>e:Cli":                                     "",
		"<e:Fault><faultcode/><faultstring>x</faultstring>":             "",
		"": "",
		"<faultcode>" + strings.Repeat("x", 65) + "</faultcode>": "",
	} {
		assert.Equal(t, want, string(soap.FaultCodeIn([]byte(text))), text)
	}
}
