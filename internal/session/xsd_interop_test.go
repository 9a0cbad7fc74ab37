//go:build interop

package session_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// envelopeSchema is enough of SOAP to validate the content of a Body against its own schema.
const envelopeSchema = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="NS" targetNamespace="NS"
 elementFormDefault="qualified">
<xs:element name="Envelope"><xs:complexType><xs:sequence>
 <xs:element ref="Header" minOccurs="0"/><xs:element ref="Body"/>
</xs:sequence></xs:complexType></xs:element>
<xs:element name="Header"><xs:complexType><xs:sequence>
 <xs:any minOccurs="0" maxOccurs="unbounded" processContents="lax"/>
</xs:sequence></xs:complexType></xs:element>
<xs:element name="Body"><xs:complexType><xs:sequence>
 <xs:any processContents="strict"/>
</xs:sequence></xs:complexType></xs:element>
<xs:element name="Fault"><xs:complexType><xs:sequence>
 <xs:any minOccurs="0" maxOccurs="unbounded" processContents="lax"/>
</xs:sequence></xs:complexType></xs:element>
</xs:schema>`

// lint returns a function that validates messages by xmllint against docs/negotiation.xsd.
func lint(t *testing.T) func(message []byte) error {
	tool := shared.Program(t, "xmllint")
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	xsd, err := os.ReadFile(filepath.Join("..", "..", "docs", "negotiation.xsd"))
	require.NoError(t, err)
	write("negotiation.xsd", string(xsd))
	write("soap11.xsd", strings.ReplaceAll(envelopeSchema, "NS", xmlns.SOAP11))
	write("soap12.xsd", strings.ReplaceAll(envelopeSchema, "NS", xmlns.SOAP12))
	driver := write("all.xsd", `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">`+
		`<xs:import namespace="`+xmlns.SOAP11+`" schemaLocation="soap11.xsd"/>`+
		`<xs:import namespace="`+xmlns.SOAP12+`" schemaLocation="soap12.xsd"/>`+
		`<xs:import namespace="`+xmlns.HHFRNegotiation+`" schemaLocation="negotiation.xsd"/></xs:schema>`)
	n := 0
	return func(message []byte) error {
		n++
		out, err := exec.CommandContext(t.Context(), tool, "--nonet", "--noout", "--schema", driver,
			write(strconv.Itoa(n)+".xml", string(message))).CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
		}
		return err
	}
}

var xmlBlock = regexp.MustCompile("(?s)```xml\n(.*?)```")

// TestInteropXmllint: every message of docs/negotiation.md, and of the tests, is valid against
// docs/negotiation.xsd.
func TestInteropXmllint(t *testing.T) {
	valid := lint(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "negotiation.md"))
	require.NoError(t, err)
	var messages [][]byte
	for _, m := range xmlBlock.FindAllSubmatch(page, -1) {
		ours := bytes.Contains(m[1], []byte(xmlns.HHFRNegotiation)) || bytes.Contains(m[1], []byte(":Fault>"))
		if ours && bytes.Contains(m[1], []byte(":Envelope")) { // the page shows a message of a service, too
			messages = append(messages, m[1])
		}
	}
	require.GreaterOrEqual(t, len(messages), 7, "messages on the page")
	made, err := learn.FromMessage([]byte(envelope("<a>1</a>")))
	require.NoError(t, err)
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		offer := fullOffer(t)
		offer.Reply = &negotiate.Description{Shape: made.Octets()}
		offer.Shapes = make([][32]byte, negotiate.MaxShapes)
		full, err := offer.Message(v)
		require.NoError(t, err)
		answer, err := fullAnswer(t).Message(v)
		require.NoError(t, err)
		messages = append(messages, offerMessage(t, v), answerMessage(t, v), full, answer)
		for _, m := range [][]byte{full, answer} {
			back, _ := turned(t, m)
			messages = append(messages, back)
		}
	}
	// What initiators and responders really write.
	s := startServices(t, nil)
	cfg := config(t)
	cfg.RequestSchema, cfg.ReplySchema, cfg.Headers = papersSchema(t,
		"strings.xsd"), papersSchema(t, "floats.xsd"), []string{addressing}
	agreed := dial(t, s.http.URL, cfg).Agreed()
	offer, err := agreed.Offer.Message(soap.V11)
	require.NoError(t, err)
	answer, err := agreed.Answer.Message(soap.V11)
	require.NoError(t, err)
	messages = append(messages, offer, answer)
	for _, m := range messages {
		require.NoError(t, valid(m), "%s", m)
	}

	one := offerMessage(t, soap.V11)
	foreign := bytes.Replace(one, []byte("<n:Scheme>"), []byte(`<x:More xmlns:x="urn:x"><x:y/></x:More><n:Scheme>`), 1)
	assert.NoError(t, valid(foreign), "foreign elements may stand anywhere")
	for name, bad := range map[string][]byte{
		"unknown":     bytes.Replace(one, []byte("<n:Scheme>"), []byte("<n:Other/><n:Scheme>"), 1),
		"lifetime":    bytes.Replace(one, []byte(">3600<"), []byte(">0<"), 1),
		"fingerprint": bytes.Replace(one, []byte("AAECAw"), []byte("AAEC!w"), 1),
		"two":         bytes.Replace(one, []byte("</soap:Body>"), []byte("<a/></soap:Body>"), 1),
	} {
		require.NotEqual(t, one, bad)
		assert.Error(t, valid(bad), name)
	}
}
