package session_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

const (
	mustHeader = `<t:Tenant xmlns:t="urn:example:tenant" xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"` +
		` s:mustUnderstand="1">7</t:Tenant>`
	mark = "<hhfr:header-"
	// The references to the two.
	one = mark + "945caf21865fd82d/>"
	two = mark + "a91e0e2cf5516b24/>"
)

var twoHeaders = []string{addressing, mustHeader}

func withHeader(blocks, body string) string {
	return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header>` + blocks +
		`</s:Header><s:Body>` + body + `</s:Body></s:Envelope>`
}

// What travels of a message, and what does not.
func TestTakeOutHeaders(t *testing.T) {
	long := strings.Repeat(" ", 64<<10-len(addressing))
	almost := withHeader(strings.Replace(addressing, "urn:me", "urn:you", 1), "x")
	for _, c := range []struct{ name, message, travels string }{
		{"none", envelope("x"), envelope("x")},
		{"one", withHeader(addressing, "x"), withHeader(one, "x")},
		{"both", withHeader(addressing+mustHeader, "x"), withHeader(one+two, "x")},
		{"in another order", withHeader(mustHeader+"<o/>"+addressing, "x"), withHeader(two+"<o/>"+one, "x")},
		{"twice", withHeader(addressing+addressing, "x"), withHeader(one+addressing, "x")},
		{"almost", almost, almost},
		{"cut", addressing[:len(addressing)-1], addressing[:len(addressing)-1]},
		{"its own mark", envelope(mark + "1/>"), envelope(mark + "-/>1/>")},
		{"what stands for another", envelope(one), envelope(mark + "-/>" + one[len(mark):])},
		{"marks of marks", mark + "-/>" + mark, mark + "-/>-/>" + mark + "-/>"},
		{"the beginning of a mark", "<hhfr:head", "<hhfr:head"},
		{"within the window", long + addressing, long + one},
		{"beyond the window", long + " " + addressing, long + " " + addressing},
		{"a mark beyond it", long + long + mark, long + long + mark + "-/>"},
		{"empty", "", ""},
	} {
		got := unchanging.TakeOut(twoHeaders, []byte(c.message))
		assert.Equal(t, c.travels, string(got), c.name)
		back, err := unchanging.PutBack(twoHeaders, got)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.message, string(back), c.name)
		assert.Empty(t, unchanging.Lacks(twoHeaders, got), c.name)
		lacking := strings.Contains(c.travels, one) || strings.Contains(c.travels, two)
		assert.Equal(t, lacking, unchanging.Lacks(nil, got) != "", c.name)
	}
	equal := []string{addressing, addressing}
	got := unchanging.TakeOut(equal, []byte(addressing+addressing+addressing))
	assert.Equal(t, one+one+addressing, string(got))
}

// What no sender makes is refused, with its offset; a reader gets what comes before.
func TestPutBackRefuses(t *testing.T) {
	for _, rest := range []string{
		"945caf21865fd82e/>", "945CAF21865FD82D/>", "945caf21865fd82/>", "945caf21865fd82d0/>", "945caf21865fd82d",
		"945caf21865fd82d/",
		"945caf21865fd82d>", "945caf21865fd82d />", "1/>", "/>", "x/>", "--/>", "",
	} {
		in := "before" + mark + rest
		out, err := unchanging.PutBack(twoHeaders, []byte(in))
		var e *negotiate.Error
		require.ErrorAs(t, err, &e, rest)
		assert.Equal(t, negotiate.Malformed, e.Code)
		assert.EqualValues(t, len("before"), e.At, rest)
		assert.Equal(t, "before", string(out))
	}
	_, err := unchanging.PutBack(twoHeaders, []byte(one+two+one))
	assert.ErrorContains(t, err, "stands twice")
	assert.Empty(t, unchanging.Lacks(nil, []byte(envelope(mark+"x/>"))), "nobody has taken anything out of that")
	assert.Equal(t, "a91e0e2cf5516b24", unchanging.Lacks(twoHeaders[:1], []byte(one+mark+"-/>"+two+one)))
}

// A header enters an agreement only as one element, with a namespace of its own, without anything
// secret or signed; and it stays, byte for byte, over offers and contexts.
func TestCheckHeader(t *testing.T) {
	for _, good := range []string{
		addressing, mustHeader, `<a xmlns="urn:x"/>`, `<p:a xmlns:p="urn:x" xml:lang="de"><p:b p:c="1"/></p:a>`,
		"<a xmlns=\"urn:x\"\r\n b='\"'>\r\n\t\u00e9 &amp; &#13; ]]&gt; <![CDATA[<x>]]><!-- c --> <?pi x?>\u2028</a >",
		`<a xmlns="urn:x">` + strings.Repeat("x", 4096-21) + `</a>`,
	} {
		require.NoError(t, negotiate.CheckHeader(good), "%q", good)
		o := exampleOffer()
		o.Headers = []string{good, addressing}
		data, err := o.Message(soap.V12)
		require.NoError(t, err)
		read, _, err := negotiate.ParseOffer(data)
		require.NoError(t, err)
		assert.Equal(t, o.Headers, read.Headers)
		answer := exampleAnswer(t)
		facts := negotiate.Facts{
			Session: answer.Session, Scheme: answer.Scheme, Representation: answer.Representation,
			Transport: answer.Transport, Path: "/echo", Address: answer.Address,
			Expires: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC), Headers: o.Headers,
		}
		document, err := session.ContextDocument(facts, [16]byte{})
		require.NoError(t, err)
		again, err := negotiate.ParseFacts(document)
		require.NoError(t, err)
		assert.Equal(t, o.Headers, again.Headers)
	}
	const (
		wsse = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
		wsu  = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
		ds   = "http://www.w3.org/2000/09/xmldsig#"
	)
	for bad, why := range map[string]string{
		"":                          "header block",
		"x":                         "header block",
		"<a/>":                      "no namespace",
		"<a":                        "header block",
		"<a>":                       "header block",
		`<p:a/>`:                    "not declared",
		`<a xmlns="urn:x"/> `:       "does not end with its tag",
		"\n" + `<a xmlns="urn:x"/>`: "does not begin with its tag",
		`<?xml version="1.0"?><a xmlns="urn:x"/>`: "does not begin with its tag",
		`<!-- c --><a xmlns="urn:x"/>`:            "does not begin with its tag",
		`<a xmlns="urn:x"/><a xmlns="urn:x"/>`:    "root elements",
		`<!DOCTYPE a><a xmlns="urn:x"/>`:          "header block",
		`<a xmlns="urn:x" s:mustUnderstand="1"/>`: "prefix of s:mustUnderstand is " +
			"not declared",
		`<a xmlns="urn:x">&unknown;</a>`:               "header block",
		`<a xmlns="` + wsse + `"/>`:                    "may hold a secret",
		`<a xmlns="urn:x"><b xmlns="` + ds + `"/></a>`: "may hold a secret",
		`<a xmlns="urn:x" xmlns:u="` + wsu + `" u:Id="1"/>`: "{" + wsu +
			"}Id may hold a secret, or be part of a signature",
		`<a xmlns="urn:x"><b xmlns:u="&#x68;` + wsu[1:] + `" u:Id="1"/></a>`:      "may hold a secret",
		`<a xmlns="urn:x"><E xmlns="http://www.w3.org/2001/04/xmlenc#"/></a>`:     "may hold a secret",
		`<a xmlns="urn:x"><A xmlns="urn:oasis:names:tc:SAML:2.0:assertion"/></a>`: "may hold a secret",
		`<a xmlns="urn:x">` + strings.Repeat("x", 4096-20) +
			`</a>`: "4097 bytes, at most 4096 are allowed",
	} {
		err := negotiate.CheckHeader(bad)
		require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.BadConfig}, "%q", bad)
		assert.ErrorContains(t, err, why, "%q", bad)
	}
}

// fragments are the pieces of messages that attack the taking out.
func fragments() []string {
	list := []string{
		"<", ">", "/>", "-/>", one[len(mark):], "<hhfr:", mark, one, two, mark + "-", "<hhfr:header",
		"x", "\r\n", "<s:Body>", addressing, mustHeader,
	}
	for _, b := range twoHeaders {
		list = append(list, b[:len(b)/2], b[len(b)/2:], b[:len(b)-1], b[1:])
	}
	return list
}

func randomMessage(r *rand.Rand) []byte {
	list := fragments()
	var b []byte
	for range r.IntN(40) {
		b = append(b, list[r.IntN(len(list))]...)
		if r.IntN(60) == 0 {
			b = append(b, bytes.Repeat([]byte("y"), r.IntN(40<<10))...)
		}
	}
	return b
}

// Law 1: whatever a message is, and however it comes and is read, it stays the same; and what
// travels of it does not depend on how it came.
func TestPutBackIsTheReverse(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	shorter := 0
	for range 1500 {
		message := randomMessage(r)
		travels := unchanging.TakeOut(twoHeaders, message)
		if len(travels) < len(message) {
			shorter++
		}
		back, err := unchanging.PutBack(twoHeaders, travels)
		require.NoError(t, err)
		require.True(t, bytes.Equal(message, back))
		out, in := session.Rewriters(twoHeaders)
		var piecewise bytes.Buffer
		to := out(&piecewise)
		_, err = io.Copy(to, onlyReader{inPieces(r, message)})
		require.NoError(t, err)
		require.NoError(t, to.Close())
		require.True(t, bytes.Equal(travels, piecewise.Bytes()))
		restored, err := io.ReadAll(in(io.NopCloser(inPieces(r, travels))))
		require.NoError(t, err)
		require.True(t, bytes.Equal(message, restored))
	}
	assert.Greater(t, shorter, 250)
}

// onlyReader has no WriteTo.
type onlyReader struct{ io.Reader }

// inPieces reads bytes in pieces of random lengths.
func inPieces(r *rand.Rand, b []byte) io.Reader {
	switch r.IntN(4) {
	case 0:
		return iotest.OneByteReader(bytes.NewReader(b))
	case 1:
		return iotest.DataErrReader(bytes.NewReader(b))
	case 2:
		return iotest.HalfReader(bytes.NewReader(b))
	}
	return bytes.NewReader(b)
}

// A body that breaks off does so after the stream, too, with all that came; one that is malformed
// with all before that.
func TestRewrittenBodiesBreakOff(t *testing.T) {
	broken := errors.New("broken")
	_, in := session.Rewriters(twoHeaders)
	broke := in(io.NopCloser(io.MultiReader(strings.NewReader("abc<hh"), iotest.ErrReader(broken))))
	got, err := io.ReadAll(broke)
	assert.Equal(t, "abc<hh", string(got))
	assert.ErrorIs(t, err, broken)
	bad := iotest.OneByteReader(strings.NewReader("abc" + one + mark + "0123456789abcdef/>"))
	got, err = io.ReadAll(in(io.NopCloser(bad)))
	assert.Equal(t, "abc"+addressing, string(got))
	assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed})
	assert.ErrorContains(t, err, "unchanging header 0123456789abcdef")
}

func FuzzHeaders(f *testing.F) {
	for _, s := range fragments() {
		f.Add([]byte(withHeader(s, "x")))
	}
	f.Add([]byte(withHeader(addressing+mustHeader+mark, "x")))
	f.Fuzz(func(t *testing.T, octets []byte) {
		travels := unchanging.TakeOut(twoHeaders, octets)
		back, err := unchanging.PutBack(twoHeaders, travels)
		require.NoError(t, err)
		require.True(t, bytes.Equal(octets, back))
		// What a hostile peer sends is refused, or stands for one message.
		made, err := unchanging.PutBack(twoHeaders, octets)
		require.LessOrEqual(t, len(made), len(octets)+len(addressing)+len(mustHeader))
		if err == nil {
			again, err := unchanging.PutBack(twoHeaders, unchanging.TakeOut(twoHeaders, made))
			require.NoError(t, err)
			require.True(t, bytes.Equal(made, again))
		}
		_, in := session.Rewriters(twoHeaders)
		streamed, err2 := io.ReadAll(in(io.NopCloser(iotest.OneByteReader(bytes.NewReader(octets)))))
		require.Equal(t, err == nil, err2 == nil)
		require.True(t, bytes.Equal(made, streamed))
		if err == nil {
			require.Empty(t, unchanging.Lacks(twoHeaders, octets))
		}
		if negotiate.CheckHeader(string(octets)) == nil {
			blocks := slices.Concat(twoHeaders, []string{string(octets)})
			message := []byte(withHeader(string(octets)+addressing, string(octets)))
			back, err := unchanging.PutBack(blocks, unchanging.TakeOut(blocks, message))
			require.NoError(t, err)
			require.True(t, bytes.Equal(message, back))
		}
	})
}
