package envelope_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/envelope"
	"github.com/hhfr/hhfr/internal/xsd"
)

func of(version, inside string) string {
	space := map[string]string{
		"11": "http://schemas.xmlsoap.org/soap/envelope/", "12": "http://www.w3.org/2003/05/soap-envelope",
	}[version]
	return `<e:Envelope xmlns:e="` + space + `">` + inside + `</e:Envelope>`
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		soap  int
		fault bool
	}{
		"body":         {of("11", `<e:Body><a/></e:Body>`), 11, false},
		"empty":        {of("12", `<e:Header/><e:Body/>`), 12, false},
		"fault":        {of("12", `<e:Body><e:Fault/></e:Body>`), 12, true},
		"fault, other": {of("11", `<e:Body><Fault/></e:Body>`), 11, false},
		"behind Body":  {of("11", `<e:Body/><more/>`), 11, false},
		"another Body": {of("11", `<e:Body><Body/></e:Body>`), 11, false},
	} {
		tree, err := envelope.Parse("reply", "", []byte(c.text))
		require.NoError(t, err, name)
		assert.Equal(t, c.soap, tree.SOAP, name)
		assert.Equal(t, c.fault, tree.Fault, name)
		assert.Equal(t, "Body", tree.Body.Name.Local, name)
	}
	for text, want := range map[string]string{
		of("11", ``):                   "reply:1:1: the envelope has no Body",
		of("11", `<e:Header/>`):        "reply:1:1: the envelope has no Body",
		of("11", `<Body/>`):            "reply:1:1: Body is not expected in the envelope: Header and Body are",
		of("11", `<e:Body/><e:Body/>`): "reply:1:1: the envelope has a second Body",
		of("12", `<e:Body/><more/>`):   "reply:1:1: more is not expected in the envelope: Header and Body are",
		`<e xmlns="urn:x"><Body/></e>`: "reply:1:1: {urn:x}e is no envelope of SOAP 1.1 or 1.2",
		`<html>`:                       "reply:1:7: not well-formed: unexpected EOF",
	} {
		_, err := envelope.Parse("reply", "text/xml", []byte(text))
		require.EqualError(t, err, want)
	}
}

// The charset of HTTP goes before that of the first line (RFC 7303, section 3).
func TestCharset(t *testing.T) {
	tree, err := envelope.Parse("reply", "text/xml; charset=ISO-8859-1",
		[]byte(`<?xml version="1.0" encoding="utf-8"?>`+of("11", "<e:Body><a>\xe9</a></e:Body>")))
	require.NoError(t, err)
	assert.Equal(t, "é", tree.Body.Children[0].Text)
	_, err = envelope.Parse("reply", "text/xml; charset=utf-8", []byte(of("11", "<e:Body>\xe9</e:Body>")))
	require.ErrorContains(t, err, "invalid UTF-8")
}

// parts is a multipart message, whose parts are fields, an empty line and content each.
func parts(list ...string) string {
	var b strings.Builder
	for _, p := range list {
		b.WriteString("--b\r\n" + p + "\r\n")
	}
	return b.String() + "--b--\r\n"
}

func TestMultipart(t *testing.T) {
	root := "Content-ID: <root@x>\r\nContent-Type: application/xop+xml; charset=utf-8\r\n\r\n" + of("12",
		`<e:Body><file><x:Include xmlns:x="http://www.w3.org/2004/08/xop/include" href="cid:a%40x"/></file></e:Body>`)
	file := "Content-ID: <a@x>\r\n\r\n\x00\x01\x02"
	for name, c := range map[string]struct{ contentType, text, want string }{
		"first":   {`multipart/related; boundary=b`, parts(root, file), ""},
		"by name": {`multipart/related; boundary=b; start="<root@x>"`, parts(file, root), ""},
		"no root": {`multipart/related; boundary=b; start="<none>"`, parts(file, root),
			"reply: parts of multipart/related: none of 2 has the Content-ID <none> of the root"},
		"no part":     {`multipart/related; boundary=b`, parts(root), `there is no part "cid:a%40x"`},
		"cut":         {`multipart/related; boundary=b`, parts(root)[:200], "reply: parts of multipart/related: "},
		"no boundary": {`multipart/related`, parts(root), "reply: parts of multipart/related: "},
	} {
		tree, err := envelope.Parse("reply", c.contentType, []byte(c.text))
		if c.want != "" {
			require.ErrorContains(t, err, c.want, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, "AAEC", tree.Body.Children[0].Text, name)
		assert.Empty(t, tree.Body.Children[0].Children, name)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("text/xml", []byte(of("11", `<e:Body><a/></e:Body>`)))
	f.Add("multipart/related; boundary=b", []byte(parts("Content-ID: <r>\r\n\r\n"+of("12", "<e:Body/>"), "\r\nx")))
	f.Fuzz(func(t *testing.T, contentType string, text []byte) {
		tree, err := envelope.Parse("message", contentType, text)
		if err == nil {
			assert.Contains(t, tree.Root.Children, tree.Body)
			assert.Equal(t, xsd.QName{Space: tree.Root.Name.Space, Local: "Body"}, tree.Body.Name)
		}
	})
}
