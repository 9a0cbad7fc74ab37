package soapjms

import (
	"io"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
)

const (
	envelope11 = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a/></s:Body></s:Envelope>`
	envelope12 = `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"><s:Body><a/></s:Body></s:Envelope>`
)

// jmsRequest is one as a client of JMS sends it.
func jmsRequest(class int8, body string, properties map[string]any) *amqp.Message {
	all := map[string]any{propRequestURI: "jms:queue:q", propContentType: "text/xml; charset=iso-8859-1"}
	m := pack(class, []byte(body), all)
	for name, value := range properties {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	reply := "answers"
	m.Properties.ReplyTo, m.Properties.MessageID = &reply, "ID:1"
	return m
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		m           *amqp.Message
		path        string
		contentType string
		action      string
	}{
		"bytes": {jmsRequest(classBytes, envelope11, map[string]any{propTargetService: "sum"}), "/sum",
			"text/xml; charset=iso-8859-1", `""`},
		"text, whose charset does not count": {
			jmsRequest(classText, envelope11, map[string]any{propSOAPAction: "urn:a"}), "/q",
			"text/xml; charset=utf-8", `"urn:a"`,
		},
		"1.2": {jmsRequest(classBytes, envelope12, map[string]any{
			propContentType: `application/soap+xml; action="urn:a"`, propSOAPAction: "urn:a"}), "/q",
			`application/soap+xml; action="urn:a"`, ""},
		"a path with a query": {jmsRequest(classBytes, envelope11, map[string]any{propTargetService: "/a/b%2Fc?d=e"}),
			"/a/b/c", "text/xml; charset=iso-8859-1", `""`},
		"no host": {jmsRequest(classBytes, envelope11, map[string]any{propTargetService: "//a.example/b"}),
			"//a.example/b", "text/xml; charset=iso-8859-1", `""`},
		"without a version": {jmsRequest(classBytes, envelope11, map[string]any{propBindingVersion: nil}), "/q",
			"text/xml; charset=iso-8859-1", `""`},
	} {
		a, wrong := read(c.m, "q")
		require.Nil(t, wrong, name)
		assert.Equal(t, c.path, a.URL.Path, name)
		assert.Equal(t, c.contentType, a.Header.Get("Content-Type"), name)
		assert.Equal(t, c.action, a.Header.Get("SOAPAction"), name)
		body, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		assert.Contains(t, string(body), "<a/>", name)
	}
}

// Section 2.8: each fault of the client has its code.
func TestReadFaults(t *testing.T) {
	object := jmsRequest(classBytes, "rO0AB", nil)
	object.Annotations[annotationClass] = int8(1)
	list := jmsRequest(classBytes, "", nil)
	list.Value = []any{"a"}
	with := func(property string, value any) *amqp.Message {
		return jmsRequest(classBytes, envelope11, map[string]any{property: value})
	}
	for code, m := range map[string]*amqp.Message{
		"unsupportedJMSMessageFormat":         object,
		"unrecognizedBindingVersion":          with(propBindingVersion, "2.0"),
		"missingContentType":                  with(propContentType, nil),
		"missingRequestURI":                   with(propRequestURI, nil),
		"malformedRequestURI":                 with(propRequestURI, "http://a"),
		"targetServiceNotAllowedInRequestURI": with(propRequestURI, "jms:queue:q?targetService=a"),
		"contentEncodingNotSupported":         with(propContentEncoding, "br"),
		"mismatchedSoapAction": jmsRequest(classBytes, envelope12, map[string]any{
			propContentType: `application/soap+xml; action="urn:a"`, propSOAPAction: "urn:b"}),
		"contentTypeMismatch": jmsRequest(classBytes, envelope12, nil),
	} {
		_, wrong := read(m, "q")
		require.NotNil(t, wrong, code)
		assert.Equal(t, code, wrong.Subcode)
		assert.Equal(t, namespace, wrong.SubcodeSpace)
		assert.Equal(t, soap.Client, wrong.Code)
	}
	_, wrong := read(list, "q")
	require.NotNil(t, wrong)
	assert.Equal(t, "unsupportedJMSMessageFormat", wrong.Subcode)
}

func TestAnswer(t *testing.T) {
	to := jmsRequest(classText, envelope11, nil)
	to.Header = &amqp.MessageHeader{Durable: true, Priority: 7}
	to.Annotations[annotationReplyTo] = destinationTemporary
	m := answer(to, classText, "text/xml", "", []byte(envelope11), false)
	assert.Equal(t, "ID:1", m.Properties.CorrelationID, "the message's own id, where it has none")
	assert.Equal(t, "answers", *m.Properties.To)
	assert.Equal(t, "jms:queue:q", m.ApplicationProperties[propRequestURI])
	assert.Equal(t, envelope11, m.Value)
	assert.True(t, m.Header.Durable)
	assert.EqualValues(t, 7, m.Header.Priority)
	assert.Equal(t, destinationTemporary, m.Annotations[annotationTo])
	to.Properties.CorrelationID = "mine"
	m = answer(to, classText, "text/xml", "gzip", []byte{1, 2}, false)
	assert.Equal(t, "mine", m.Properties.CorrelationID)
	assert.Equal(t, [][]byte{{1, 2}}, m.Data, "what is compressed is bytes")
	assert.Equal(t, classBytes, m.Annotations[annotationClass])
}

func TestResponse(t *testing.T) {
	for name, c := range map[string]struct {
		m      *amqp.Message
		status int
		err    string
	}{
		"reply": {jmsRequest(classText, envelope11, nil), 200, ""},
		"fault": {jmsRequest(classBytes, envelope11, map[string]any{propIsFault: true}), 500, ""},
		"without type": {jmsRequest(classBytes, envelope11, map[string]any{propContentType: nil}), 0,
			"it has no property SOAPJMS_contentType"},
	} {
		got, err := response(c.m, nil)
		if c.err != "" {
			require.ErrorIs(t, err, &Error{Code: Malformed}, name)
			assert.ErrorContains(t, err, c.err, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.status, got.StatusCode, name)
		assert.EqualValues(t, len(envelope11), got.ContentLength)
		require.NoError(t, got.Body.Close())
	}
}
