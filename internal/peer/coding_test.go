package peer_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/soap"
)

func zipped(t testing.TB, s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(s))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func inUTF16(order binary.AppendByteOrder, s string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func inLatin1(s string) string {
	var b []byte
	for _, r := range s {
		b = append(b, byte(r))
	}
	return string(b)
}

// Requests in the codings and encodings that clients use are read, by either way; what cannot be
// read is told.
func TestCodings(t *testing.T) {
	s := start(t, peer.Concat())
	const declared = `<?xml version="1.0" encoding="%s"?>` + "\n"
	plain := envelope(soap.V11, "concat", "<item>ä</item><item>€😀</item>")
	narrow := envelope(soap.V11, "concat", "<item>ä</item>")
	both, one := "<result>ä€😀</result>", "<result>ä</result>"
	sender := fmt.Sprintf("fault %d: ", soap.Client)
	le, be, mark := binary.LittleEndian, binary.BigEndian, "\uFEFF"
	sessions := map[string]*session.Session{
		"http": dial(t, s.URL("/concat"), config(t, false)), "stream": dial(t, s.URL("/concat"), config(t, true)),
	}
	for _, c := range []struct{ name, fields, body, reply string }{
		{"gzip", "Content-Encoding: gzip\n", zipped(t, plain), both},
		{"the old name of gzip", "Content-Encoding: X-GZIP\n", zipped(t, plain), both},
		{"identity", "Content-Encoding: identity\n", plain, both},
		{"gzip of UTF-16", "Content-Encoding: gzip\n", zipped(t, inUTF16(be, mark+plain)), both},
		{"UTF-16, the high octet first", "", inUTF16(be, mark+plain), both},
		{"UTF-16, the low octet first", "", inUTF16(le, mark+plain), both},
		{"UTF-16, also declared", "", inUTF16(le, mark+fmt.Sprintf(declared, "UTF-16")+plain), both},
		{"UTF-16, declared alone, high", "", inUTF16(be, fmt.Sprintf(declared, "utf-16")+plain), both},
		{"UTF-16, declared alone, low", "", inUTF16(le, fmt.Sprintf(declared, "utf-16")+plain), both},
		{"UTF-16 by its field", "Content-Type: text/xml; charset=utf-16le\n", inUTF16(le, plain), both},
		{"ISO-8859-1, declared", "", inLatin1(fmt.Sprintf(declared, "ISO-8859-1") + narrow), one},
		{"ISO-8859-1 by its field", "Content-Type: text/xml; charset=\"ISO-8859-1\"\n", inLatin1(narrow), one},
		{
			"the field counts more", "Content-Type: text/xml; charset=utf-8\n",
			fmt.Sprintf(declared, "ISO-8859-1") + plain, both,
		},
		{"the mark counts more", "Content-Type: text/xml; charset=ISO-8859-1\n", mark + plain, both},
		{
			"another encoding", "", fmt.Sprintf(declared, "EBCDIC-CP-US") + plain,
			sender + `the encoding "ebcdic-cp-us" is not read, only UTF-8, UTF-16 and ISO-8859-1`,
		},
		{"half a character", "", inUTF16(be, mark+plain) + "\x00", sender + "the request is no UTF-16"},
		{"half a pair", "", inUTF16(be, mark) + "\xD8\x00\x00<", sender + "the request is no UTF-16"},
		{"no gzip", "Content-Encoding: gzip\n", plain, sender + "the request is no gzip: gzip: invalid header"},
		{"nothing", "Content-Encoding: gzip\n", "", sender + "the request is no gzip: it is empty"},
		{
			"half a gzip", "Content-Encoding: gzip\n", zipped(t, plain)[:60],
			sender + "the request is no gzip: unexpected EOF",
		},
		{
			"a bomb", "Content-Encoding: gzip\n", zipped(t, strings.Repeat(" ", 60<<20)+plain),
			sender + "the request unfolds to more than 200 times its octets",
		},
		{"a coding that is not known", "Content-Encoding: br\n", plain, ""},
		{"codings one over the other", "Content-Encoding: gzip, gzip\n", zipped(t, zipped(t, plain)), ""},
	} {
		for way, sess := range sessions {
			fields := c.fields
			if !strings.Contains(fields, "Content-Type") {
				fields += "Content-Type: text/xml\n"
			}
			request := "POST /concat HTTP/1.1\n" + fields + "\n"
			head, body, err := exchange(t.Context(), sess, request, strings.NewReader(c.body))
			require.NoError(t, err, "%s, %s", c.name, way)
			if c.reply == "" {
				assert.Contains(t, head, "HTTP/1.1 415 ", "%s, %s", c.name, way)
				assert.Contains(t, head, "\r\nAccept-Encoding: gzip\r\n", "%s, %s", c.name, way)
				continue
			}
			assert.Equal(t, c.reply, inner(t, "concat", body), "%s, %s", c.name, way)
		}
	}
}

// A SOAP 1.2 fault about header blocks that must be understood names all of them (SOAP 1.2 part 1,
// section 5.4.8); one of SOAP 1.1 has no place for that.
func TestHeadersNotUnderstood(t *testing.T) {
	const header = `<e:Header><a:One xmlns:a="urn:a" e:mustUnderstand="1"/><a:Two xmlns:a="urn:a"/>` +
		`<b:Three xmlns:b="urn:b" e:mustUnderstand="true"><x/></b:Three>` +
		`<c:Four xmlns:c="urn:c" e:mustUnderstand="1" e:role="urn:other" e:actor="urn:other"/></e:Header>`
	s := start(t, peer.Concat(), peer.Ledger(newStore(t)))
	sess := dial(t, s.URL("/concat"), config(t, true))
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		for _, path := range []string{"/concat", "/ledger"} {
			request := strings.Replace(envelope(v, "concat", ""), "<e:Body>", header+"<e:Body>", 1)
			head := "POST " + path + " HTTP/1.1\nContent-Type: text/xml\n\n"
			_, body, err := exchange(t.Context(), sess, head, strings.NewReader(request))
			require.NoError(t, err)
			reply, err := soap.Parse([]byte(body), soap.Limits{})
			require.NoError(t, err)
			f, ok := reply.Fault()
			require.True(t, ok)
			assert.Equal(t, soap.MustUnderstand, f.Code)
			assert.Equal(t, "header block {urn:a}One is not understood", f.Reason)
			if v == soap.V12 {
				both := []soap.Name{{Space: "urn:a", Local: "One"}, {Space: "urn:b", Local: "Three"}}
				assert.Equal(t, both, f.NotUnderstood)
			} else {
				assert.Empty(t, f.NotUnderstood)
			}
		}
	}
}
