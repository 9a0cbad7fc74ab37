package sender_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

func TestRequestHead(t *testing.T) {
	v11 := []byte(`<e:Envelope xmlns:e="` + soap.V11.Namespace() + `"><e:Body/></e:Envelope>`)
	v12 := []byte(`<e:Envelope xmlns:e="` + soap.V12.Namespace() + `"><e:Body/></e:Envelope>`)
	for _, c := range []struct {
		name, target, action string
		body                 []byte
		fields               []string
		head                 string
	}{
		{"the default one", "/echo", "", v11, nil, string(negotiate.DefaultRequestHead("/echo"))},
		{"no SOAP", "/echo", "", []byte("x"), nil, string(negotiate.DefaultRequestHead("/echo"))},
		{
			"an action", "/a%20b?q=1", "urn:a", v11, nil,
			"POST /a%20b?q=1 HTTP/1.1\r\nContent-Type: text/xml; charset=utf-8\r\nSOAPAction: \"urn:a\"\r\n\r\n",
		},
		{
			"SOAP 1.2", "/", "urn:a", v12, nil,
			"POST / HTTP/1.1\r\nContent-Type: application/soap+xml; charset=utf-8; action=\"urn:a\"\r\n\r\n",
		},
		{
			"fields, whose names keep their case", "/", "", v11, []string{"x-b:1", "X-a: 2 ", "x-b: 3"},
			"POST / HTTP/1.1\r\nContent-Type: text/xml; charset=utf-8\r\nSOAPAction: \"\"\r\nX-a: 2\r\n" +
				"x-b: 1\r\nx-b: 3\r\n\r\n",
		},
		{
			"a field of our own, replaced", "/", "", v11, []string{"content-type: text/plain"},
			"POST / HTTP/1.1\r\nSOAPAction: \"\"\r\ncontent-type: text/plain\r\n\r\n",
		},
	} {
		head, err := sender.RequestHead(c.target, c.body, c.action, c.fields)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.head, string(head), c.name)
	}
	for name, c := range map[string]struct{ target, action, field, says string }{
		"no field":    {"/", "", "X", `field "X" is not of the form Name: value`},
		"two lines":   {"/", "", "X: a\r\nY: b", "X"},
		"bad action":  {"/", "a\nb", "X: y", ""},
		"no target":   {"x", "", "X: y", "x"},
		"empty field": {"/", "", ": y", ""},
	} {
		_, err := sender.RequestHead(c.target, nil, c.action, []string{c.field})
		require.ErrorContains(t, err, c.says, name)
	}
}
