package capture_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

const (
	envelope11 = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"`
	envelope12 = `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope"`
	other      = `<w:Other xmlns:w="urn:w"><w:Sequence/><!-- </w:Other> --><w:x a="/w:Other>"/>` +
		`<![CDATA[</w:Other>]]></w:Other>`
)

// What a listing says of sequences is what a parser of the whole message finds, wherever their
// namespace is declared, and whatever stands beside them.
func TestSequencesOfMessages(t *testing.T) {
	sequence := func(prefix, declared string) string {
		return fmt.Sprintf(`<%[1]sSequence%[2]s><%[1]sIdentifier>urn:a&amp;b</%[1]sIdentifier>`+
			`<%[1]sMessageNumber> 7 </%[1]sMessageNumber></%[1]sSequence>`, prefix, declared)
	}
	r, none := ` xmlns:r="`+xmlns.WSRM+`"`, ` xmlns="`+xmlns.WSRM10+`"`
	for name, message := range map[string]string{
		"on the envelope": envelope11 + r + `><s:Header>` + other + sequence("r:", "") + other +
			`</s:Header><s:Body>` + other + `</s:Body></s:Envelope>`,
		"on the header": envelope12 + `><s:Header` + r + `>` + other + sequence("r:", "") +
			`</s:Header><s:Body/></s:Envelope>`,
		"on the block": envelope11 + `><s:Header>` + sequence("r:", r) + other + `</s:Header><s:Body>` + other +
			`</s:Body></s:Envelope>`,
		"without a prefix": envelope11 + `><s:Header>` + other + sequence("", none) +
			`</s:Header><s:Body>text</s:Body></s:Envelope>`,
		"in single quotes, behind a declaration": `<?xml version='1.0'?><!-- x -->` + envelope11 +
			` xmlns:r='` + xmlns.WSRM + `'><s:Header>` + other + sequence("r:", "") +
			`</s:Header><s:Body/></s:Envelope>`,
		"a control in the body": envelope11 + `><s:Header>` + other + `</s:Header><s:Body><TerminateSequence` + none +
			`><Identifier>urn:c</Identifier></TerminateSequence></s:Body></s:Envelope>`,
		"a fault of 1.2": envelope12 + r + `><s:Header>` + other + `</s:Header><s:Body><s:Fault><s:Code>` +
			`<s:Value>s:Sender</s:Value><s:Subcode><s:Value>r:UnknownSequence</s:Value></s:Subcode></s:Code>` +
			`<s:Reason><s:Text xml:lang="en">no</s:Text></s:Reason><s:Detail><r:Identifier>urn:d</r:Identifier>` +
			`</s:Detail></s:Fault></s:Body></s:Envelope>`,
		"an unknown element": envelope11 + r + `><s:Header><r:UsesSequenceSTR/>` + other +
			`</s:Header><s:Body/></s:Envelope>`,
		"another prefix": envelope11 + ` xmlns:rr="` + xmlns.WSRM + `" xmlns:r="urn:r"><s:Header>` +
			sequence("r:", "") + `</s:Header><s:Body/></s:Envelope>`,
		"a text": envelope11 + `><s:Header/><s:Body><a>` + xmlns.WSRM + `</a></s:Body></s:Envelope>`,
		"attributes without space": envelope11 + r + `><s:Header><w a="1"b="2"/>` + sequence("r:", "") +
			`</s:Header><s:Body/></s:Envelope>`,
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := soap.Parse([]byte(message), soap.Limits{})
			require.NoError(t, err)
			found := decode(t, recordedPosts(t, []byte(message)), nil)
			require.Len(t, found.Messages, 2)
			want := header.Parse(parsed)
			if got := found.Messages[0].Reliable; want == nil {
				assert.Nil(t, got)
			} else {
				assert.Equal(t, want, got)
			}
		})
	}
}

// A message that names a sequence is not parsed as a whole: it takes hardly more than the same one
// without, however long it is.
func TestSequencesTakeLittle(t *testing.T) {
	const messages = 20
	allocations := func(id, more string) float64 {
		var all [][]byte
		for i := range messages {
			all = append(all, inSequence(id, uint64(i+1), more))
		}
		if id == "" {
			for i := range all {
				all[i] = bytes.ReplaceAll(all[i], []byte(xmlns.WSRM), []byte("urn:none"))
			}
		}
		file := recordedPosts(t, all...)
		return testing.AllocsPerRun(3, func() {
			r := capture.NewReader(t.Context(), capture.DecodeConfig{Starts: true})
			for _, err := range r.Captures(t.Context(), capture.Input{Octets: bytes.NewReader(file)}) {
				require.NoError(t, err)
			}
		}) / messages
	}
	short := allocations("urn:a", "") - allocations("", "")
	items := strings.Repeat("<item>1</item>", 500)
	assert.Less(t, allocations("urn:a", items)-allocations("", items), short+20)
}
