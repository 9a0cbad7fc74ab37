package peer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/soap"
)

func inFastInfoset(t testing.TB, text string) string {
	t.Helper()
	doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(text))
	require.NoError(t, err)
	return string(doc)
}

// Requests in Fast Infoset, and in XML that accept it, are answered in it, plain and over streams;
// faults as well.
func TestFastInfoset(t *testing.T) {
	s := start(t, peer.Concat())
	sessions := map[string]*session.Session{
		"http": dial(t, s.URL("/concat"), config(t, false)), "stream": dial(t, s.URL("/concat"), config(t, true)),
	}
	const one, two = "application/fastinfoset", "application/soap+fastinfoset"
	concat := func(v soap.Version) string { return envelope(v, "concat", "<item>ä</item><item>€</item>") }
	result, fault := "<result>ä€</result>", fmt.Sprintf("fault %d: ", soap.Client)
	for _, c := range []struct{ name, fields, body, kind, reply string }{
		{"SOAP 1.1", "Content-Type: " + one + "\n", inFastInfoset(t, concat(soap.V11)), one, result},
		{"SOAP 1.2", "Content-Type: " + two + "; action=\"a\"\n", inFastInfoset(t, concat(soap.V12)), two, result},
		{"another version's type", "Content-Type: " + one + "\n", inFastInfoset(t, concat(soap.V12)), two, result},
		{
			"in gzip", "Content-Type: " + one + "\nContent-Encoding: gzip\n",
			zipped(t, inFastInfoset(t, concat(soap.V11))), one, result,
		},
		{
			"XML that accepts it", "Content-Type: text/xml\nAccept: " + one + ", text/xml\n", concat(soap.V11), one,
			result,
		},
		{"XML", "Content-Type: text/xml\nAccept: text/xml\n", concat(soap.V11), "text/xml; charset=utf-8", result},
		{
			"no Fast Infoset", "Content-Type: " + two + "\n", concat(soap.V12), two,
			fault + "the request cannot be read: offset 0: no Fast Infoset: byte 0x3c where 0xe0 is expected: " +
				"no Fast Infoset of version 1",
		},
		{
			"a document type", "Content-Type: " + one + "\n", "\xE0\x00\x00\x01\x00\xC4\xF0\x3C\x00a\xFF", one,
			fault + "the request cannot be read: offset 5: Fast Infoset that is not allowed: a document type " +
				"declaration, or an entity or notation of one",
		},
		{
			"an index beyond", "Content-Type: " + two + "\n",
			strings.Replace(inFastInfoset(t, concat(soap.V12)), "\x91\xC3\xA4", "\xA9\xC3\xA4", 1), two,
			fault + "the request cannot be read: offset 110: no Fast Infoset: index 10 of a table of 0 texts of " +
				"content",
		},
		{
			"too long", "Content-Type: " + one + "\n", strings.Repeat("x", 4<<20+1), one,
			fault + "the request is longer than 4194304 bytes in Fast Infoset",
		},
	} {
		for path, sess := range sessions {
			request := "POST /concat HTTP/1.1\n" + c.fields + "\n"
			head, body, err := exchange(t.Context(), sess, request, strings.NewReader(c.body))
			require.NoError(t, err, "%s, %s", c.name, path)
			if head != "" { // which is that of XML
				assert.Contains(t, head, "Content-Type: "+c.kind+"\r\n", "%s, %s", c.name, path)
			}
			if strings.Contains(c.kind, "fastinfoset") {
				text, err := new(fastinfoset.Reader).ToXML(nil, []byte(body))
				require.NoError(t, err, "%s, %s", c.name, path)
				body = string(text)
			}
			assert.Equal(t, c.reply, inner(t, "concat", body), "%s, %s", c.name, path)
		}
	}

	// A service that reads nothing gets and gives bytes.
	head, body, err := exchange(t.Context(), sessions["http"],
		"POST /echo HTTP/1.1\nContent-Type: "+one+"\nAccept: "+one+"\n\n", strings.NewReader("anything"))
	require.NoError(t, err)
	assert.Contains(t, head, "Content-Type: "+one+"\r\n")
	assert.Equal(t, "anything", body)
}

// Accept has media ranges: what only looks like one of Fast Infoset is none.
func TestAcceptOfFastInfoset(t *testing.T) {
	s := start(t, peer.Concat())
	sess := dial(t, s.URL("/concat"), config(t, false))
	for accept, want := range map[string]bool{
		"application/fastinfoset":                                   true,
		"text/xml;q=0.9, Application/FastInfoset ; q=0.5":           true,
		`text/xml;a="x,\",y", application/soap+fastinfoset;q="1"`:   true,
		"text/xml\nAccept: application/soap+fastinfoset; action=a":  true,
		"text/xml, application/fastinfoset;q=0":                     false,
		"application/fastinfoset;q=0.000, application/fastinfosetx": false,
		"application/fastinfoset;q=much":                            false,
		`text/xml; a="application/fastinfoset"`:                     false,
		`text/xml; a="\", application/fastinfoset, "`:               false,
		"application/fastinfoset x, */*, ,":                         false,
	} {
		head, _, err := exchange(t.Context(), sess,
			"POST /concat HTTP/1.1\nContent-Type: text/xml\nAccept: "+accept+"\n\n",
			strings.NewReader(envelope(soap.V11, "concat", "<item>a</item>")))
		require.NoError(t, err, accept)
		assert.Equal(t, want, strings.Contains(head, "Content-Type: application/fastinfoset\r\n"), accept)
		assert.Equal(t, want, strings.Contains(head, "Vary: Accept\r\n"), accept)
	}
}

// A reply that is too long to be converted goes in XML.
func TestLongRepliesStayXML(t *testing.T) {
	s := start(t, peer.Concat())
	sess := dial(t, s.URL("/concat"), config(t, false))
	long := strings.Repeat("x", 5<<20)
	head, body, err := exchange(t.Context(), sess,
		"POST /concat HTTP/1.1\nContent-Type: text/xml\nAccept: application/fastinfoset\n\n",
		strings.NewReader(envelope(soap.V11, "concat", "<item>"+long+"</item>")))
	require.NoError(t, err)
	assert.Contains(t, head, "Content-Type: text/xml")
	assert.True(t, strings.Contains(body, "<result>"+long+"</result>"))
}
