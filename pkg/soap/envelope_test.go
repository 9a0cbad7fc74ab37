package soap_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

func name(space, local string) soap.Name { return soap.Name{Space: space, Local: local} }

func TestBuildParse(t *testing.T) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		t.Run(v.String(), func(t *testing.T) {
			in := &soap.Envelope{
				Version: v,
				Header: []soap.Element{
					{Name: name("urn:h", "Block"), Attrs: []soap.Attr{{Name: "a", Value: `<"&'>`}}, Text: "x"},
				},
				Body: []soap.Element{{Name: name("urn:m", "Op"), Children: []soap.Element{
					{Name: name("urn:m", "A"), Text: " 1 & 2 < 3 \u00e9"}, {Name: name("", "B")},
					{Name: name("urn:other", "C"), Children: []soap.Element{{Name: name("urn:m", "D"), Text: "d"}}},
				}}},
			}
			data, err := soap.Build(in)
			require.NoError(t, err)
			out, err := soap.Parse(data, soap.Limits{})
			require.NoError(t, err, string(data))
			assert.Equal(t, in, out)
			assert.Equal(t, soap.Recognized{Version: v, Operation: name("urn:m", "Op"), Complete: true},
				soap.Recognize(data))
		})
	}
	_, err := soap.Build(&soap.Envelope{})
	require.ErrorIs(t, err, &soap.Error{Code: soap.BadVersion})
}

func TestParseRefuses(t *testing.T) {
	deep := open11 + "<s:Body>" + strings.Repeat("<a>", 40) + strings.Repeat("</a>", 40) + "</s:Body></s:Envelope>"
	for _, c := range []struct {
		name, in string
		limits   soap.Limits
		code     soap.Code
	}{
		{"empty", "", soap.Limits{}, soap.Malformed},
		{"text", "hello", soap.Limits{}, soap.Malformed},
		{"html", "<html/>", soap.Limits{}, soap.NoEnvelope},
		{"cut", open11 + "<s:Body>", soap.Limits{}, soap.Malformed},
		{"two roots", open11 + "<s:Body/></s:Envelope><a/>", soap.Limits{}, soap.Malformed},
		{"no body", open11 + "</s:Envelope>", soap.Limits{}, soap.NoEnvelope},
		{"two bodies", open11 + "<s:Body/><s:Body/></s:Envelope>", soap.Limits{}, soap.NoEnvelope},
		{"dtd", "<!DOCTYPE a [<!ENTITY b 'c'>]>" + open11 + "<s:Body/></s:Envelope>", soap.Limits{}, soap.Forbidden},
		{"entity", open11 + "<s:Body><a>&b;</a></s:Body></s:Envelope>", soap.Limits{}, soap.Malformed},
		{"undeclared prefix", open11 + "<s:Body><x:a/></s:Body></s:Envelope>", soap.Limits{}, soap.Malformed},
		{"charset", `<?xml version="1.0" encoding="ISO-8859-1"?>` + open11 + "<s:Body/></s:Envelope>", soap.Limits{},
			soap.BadCharset},
		{"deep", deep, soap.Limits{}, soap.TooLarge},
		{"long", open11 + strings.Repeat(" ", 100) + "<s:Body/></s:Envelope>", soap.Limits{MaxBytes: 99},
			soap.TooLarge},
		{"many", open11 + "<s:Body>" + strings.Repeat("<a/>", 100) + "</s:Body></s:Envelope>",
			soap.Limits{MaxElements: 10}, soap.TooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := soap.Parse([]byte(c.in), c.limits)
			require.ErrorIs(t, err, &soap.Error{Code: c.code})
		})
	}
}

func TestElement(t *testing.T) {
	in := &soap.Element{Name: name("urn:m", "A"), Children: []soap.Element{{Name: name("urn:m", "B"), Text: "b"}}}
	data, err := soap.BuildElement(in)
	require.NoError(t, err)
	assert.Equal(t, `<n:A xmlns:n="urn:m"><n:B>b</n:B></n:A>`, string(data))
	out, err := soap.ParseElement(data, soap.Limits{})
	require.NoError(t, err)
	assert.Equal(t, in, out)
	_, err = soap.ParseElement([]byte("<a>"), soap.Limits{})
	require.ErrorIs(t, err, &soap.Error{Code: soap.Malformed})
}

func TestMustUnderstand(t *testing.T) {
	e, err := soap.Parse(
		[]byte(
			open11+`<s:Header><a s:mustUnderstand="1"/><b mustUnderstand="1"/><c s:mustUnderstand="0"/></s:Header>`+
				`<s:Body/></s:Envelope>`,
		),
		soap.Limits{},
	)
	require.NoError(t, err)
	require.Len(t, e.Header, 3)
	assert.True(t, e.Header[0].MustUnderstand)
	assert.False(t, e.Header[1].MustUnderstand)
	assert.False(t, e.Header[2].MustUnderstand)
}

func TestFaults(t *testing.T) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		for _, code := range []soap.FaultCode{soap.Client, soap.Server, soap.MustUnderstand, soap.VersionMismatch} {
			in := soap.Fault{
				Code:   code,
				Reason: "no <way>",
				Detail: []soap.Element{{Name: name("urn:d", "Why"), Text: "x"}},
			}
			data, err := soap.BuildFault(v, in)
			require.NoError(t, err)
			assert.True(t, soap.Recognize(data).Fault)
			e, err := soap.Parse(data, soap.Limits{})
			require.NoError(t, err, string(data))
			out, ok := e.Fault()
			require.True(t, ok)
			assert.Equal(t, in, out)
		}
	}
	e, err := soap.Parse(
		[]byte(
			open11+`<s:Body><s:Fault><faultcode>s:Client.Auth</faultcode><faultstring>x</faultstring></s:Fault>`+
				`</s:Body></s:Envelope>`,
		),
		soap.Limits{},
	)
	require.NoError(t, err)
	f, ok := e.Fault()
	require.True(t, ok)
	assert.Equal(t, soap.Fault{Code: soap.Client, Subcode: "Auth", Reason: "x"}, f)
	e, err = soap.Parse(
		[]byte(
			open12+`<Body><Fault><Code><Value>x:Sender</Value><Subcode><Value xmlns:m="urn:m">m:Timeout</Value>`+
				`</Subcode></Code></Fault></Body></Envelope>`,
		),
		soap.Limits{},
	)
	require.NoError(t, err)
	f, _ = e.Fault()
	assert.Equal(t, soap.Fault{Code: soap.Client, Subcode: "Timeout", SubcodeSpace: "urn:m"}, f)

	assert.Equal(t, 400, soap.FaultStatus(soap.V12, soap.Client))
	assert.Equal(t, 500, soap.FaultStatus(soap.V11, soap.Client))
}

func TestBinding(t *testing.T) {
	fields, err := soap.RequestFields(soap.V11, "urn:a")
	require.NoError(t, err)
	assert.Equal(t,
		[]soap.Field{{Name: "Content-Type", Value: "text/xml; charset=utf-8"}, {Name: "SOAPAction", Value: `"urn:a"`}},
		fields)
	fields, err = soap.RequestFields(soap.V12, "urn:a")
	require.NoError(t, err)
	assert.Equal(t, []soap.Field{{Name: "Content-Type", Value: `application/soap+xml; charset=utf-8; action="urn:a"`}},
		fields)
	_, err = soap.RequestFields(soap.V11, "a\r\nX: y")
	require.ErrorIs(t, err, &soap.Error{Code: soap.BadField})

	m := soap.ParseContentType(`Application/SOAP+XML; Charset=UTF-8; action="urn:a;b"`)
	assert.Equal(t, soap.Media{Type: "application/soap+xml", Charset: "utf-8", Action: "urn:a;b"}, m)
	assert.Equal(t, soap.V12, m.Version())
	m = soap.ParseContentType(`multipart/related; type="application/xop+xml"; start="<r>"; start-info="text/xml"; ` +
		`boundary=b`)
	assert.Equal(t, soap.Media{Type: "multipart/related", Start: "<r>", StartInfo: "text/xml", Boundary: "b"}, m)
	assert.Equal(t, soap.V11, m.Version())
	assert.Equal(t, soap.Media{Type: "text/xml"}, soap.ParseContentType("text/xml; charset="))
	assert.Equal(t, soap.Media{}, soap.ParseContentType(""))
	assert.Equal(t, "urn:a", soap.ParseAction(` "urn:a" `))
	assert.Equal(t, "urn:a", soap.ParseAction(`urn:a`))
	assert.Empty(t, soap.ParseAction(`""`))
}

func TestWrap(t *testing.T) {
	out, err := soap.Wrap(soap.V11, []byte("\xEF\xBB\xBF<?xml version='1.0' encoding='utf-8'?>\r\n<a>\r\n</a>\r\n"))
	require.NoError(t, err)
	want := `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<soap:Envelope xmlns:soap="` + xmlns.SOAP11 +
		`"><soap:Body>` + "<a>\r\n</a>\r\n" + `</soap:Body></soap:Envelope>`
	assert.Equal(t, want, string(out))
	_, err = soap.Wrap(soap.V12, []byte(`<?xml version="1.0" encoding="utf-16"?><a/>`))
	require.ErrorIs(t, err, &soap.Error{Code: soap.BadCharset})
	_, err = soap.Wrap(soap.V12, []byte(`<?xml version="1.0"?><!DOCTYPE a><a/>`))
	require.ErrorIs(t, err, &soap.Error{Code: soap.Forbidden})
	_, err = soap.Wrap(soap.None, nil)
	require.ErrorIs(t, err, &soap.Error{Code: soap.BadVersion})

	v, err := soap.ParseVersion("1.2")
	require.NoError(t, err)
	assert.Equal(t, soap.V12, v)
	_, err = soap.ParseVersion("2")
	require.ErrorIs(t, err, &soap.Error{Code: soap.BadVersion})
}

// What parses can be built, and parses to the same again.
func FuzzParse(f *testing.F) {
	for _, c := range recognizeTable {
		f.Add([]byte(c.in))
	}
	f.Add([]byte(open11 + `<s:Body><a b="c">d<e xmlns="urn:e">f</e></a></s:Body></s:Envelope>`))
	f.Fuzz(func(t *testing.T, in []byte) {
		e, err := soap.Parse(in, soap.Limits{})
		if err != nil {
			return
		}
		e.Fault()
		data, err := soap.Build(e)
		require.NoError(t, err)
		again, err := soap.Parse(data, soap.Limits{MaxBytes: 1 << 24})
		require.NoError(t, err, "%q", data)
		require.Equal(t, e.Version, again.Version)
		require.Len(t, again.Body, len(e.Body))
	})
}
