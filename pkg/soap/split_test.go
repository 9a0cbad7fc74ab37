package soap_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

const splitMessage = `<?xml version="1.0"?><!-- c --><s:Envelope xmlns:s="` + xmlns.SOAP11 + `" xmlns:a="urn:a">
 <s:Header> <a:One s:mustUnderstand="1">1</a:One><b:Two xmlns:b="urn:b"><x/></b:Two> </s:Header>
 <s:Body  id='7'><a:op attr="&lt;"> text <!-- kept --></a:op></s:Body></s:Envelope>` + "\n"

// What is not taken out or put in stays byte for byte.
func TestSplitRewrites(t *testing.T) {
	a, err := soap.Split([]byte(splitMessage), soap.Limits{})
	require.NoError(t, err)
	assert.Equal(t, soap.V11, a.Version)
	require.Len(t, a.Header, 2)
	assert.Equal(t, soap.Name{Space: "urn:a", Local: "One"}, a.Header[0].Name)
	assert.True(t, a.Header[0].MustUnderstand)
	require.Len(t, a.Body, 1)
	assert.Equal(t, soap.Name{Space: "urn:a", Local: "op"}, a.Body[0].Name)

	same, err := a.Rewrite(nil, nil)
	require.NoError(t, err)
	assert.Equal(t, splitMessage, string(same))

	without, err := a.Rewrite(func(e *soap.Element) bool { return e.Name.Local == "One" }, nil)
	require.NoError(t, err)
	assert.Equal(t, strings.Replace(splitMessage, `<a:One s:mustUnderstand="1">1</a:One>`, "", 1), string(without))

	with, err := a.Rewrite(nil, []soap.Element{{Name: soap.Name{Space: "urn:c", Local: "Three"}, Text: "<",
		MustUnderstand: true}})
	require.NoError(t, err)
	assert.Equal(t, strings.Replace(splitMessage, `<s:Header>`, `<s:Header><n:Three xmlns:soap="`+xmlns.SOAP11+
		`" xmlns:n="urn:c" soap:mustUnderstand="1">&lt;</n:Three>`, 1), string(with))
}

// A Header is made where there is none.
func TestSplitMakesAHeader(t *testing.T) {
	block := []soap.Element{{Name: soap.Name{Space: "urn:c", Local: "Three"}}}
	const made = `Header><n:Three xmlns:n="urn:c"/></`
	for in, want := range map[string]string{
		`<Envelope xmlns="` + xmlns.SOAP12 + `"><Body><op/></Body></Envelope>`: `<Envelope xmlns="` + xmlns.SOAP12 +
			`"><` + made + `Header><Body><op/></Body></Envelope>`,
		`<s:Envelope xmlns:s="` + xmlns.SOAP12 + `"><s:Header/><s:Body/></s:Envelope>`: `<s:Envelope xmlns:s="` +
			xmlns.SOAP12 + `"><s:` + made + `s:Header><s:Body/></s:Envelope>`,
		`<s:Envelope xmlns:s="` + xmlns.SOAP12 + `"> <s:Body></s:Body></s:Envelope>`: `<s:Envelope xmlns:s="` +
			xmlns.SOAP12 + `"> <s:` + made + `s:Header><s:Body></s:Body></s:Envelope>`,
	} {
		a, err := soap.Split([]byte(in), soap.Limits{})
		require.NoError(t, err, in)
		out, err := a.Rewrite(nil, block)
		require.NoError(t, err)
		assert.Equal(t, want, string(out))
	}
}

func TestSplitRefuses(t *testing.T) {
	open := `<s:Envelope xmlns:s="` + xmlns.SOAP12 + `">`
	for in, code := range map[string]soap.Code{
		``:                                   soap.NoEnvelope,
		`<x/>`:                               soap.NoEnvelope,
		open:                                 soap.NoEnvelope,
		open + `</s:Envelope>`:               soap.NoEnvelope,
		open + `<s:Header>`:                  soap.NoEnvelope,
		open + `<s:Header></s:Body>`:         soap.Malformed,
		open + `<s:Header><p:a/></s:Header>`: soap.NoEnvelope,
		open + `<s:Header><p:a/></s:Header><s:Body/></s:Envelope>`:          soap.Malformed,
		open + `<s:Header><a/></s:Header><s:Header/><s:Body/></s:Envelope>`: soap.Malformed,
		open + `<Header><a/></Header><s:Body/></s:Envelope>`:                soap.Malformed,
		`<!DOCTYPE x><x/>`: soap.Forbidden,
		open + `<s:Header>` + strings.Repeat("<a>aaaaaaaaaa</a>", 20_000) +
			`</s:Header><s:Body/></s:Envelope>`: soap.TooLarge,
	} {
		_, err := soap.Split([]byte(in), soap.Limits{})
		assert.ErrorIs(t, err, &soap.Error{Code: code}, "%.200s", in)
	}
}

// A long Body is not looked at.
func TestSplitLeavesTheBody(t *testing.T) {
	long := `<Envelope xmlns="` + xmlns.SOAP12 + `"><Header/><Body><op>` + strings.Repeat("x", 1<<20) +
		`</op></Body></Envelope>`
	a, err := soap.Split([]byte(long), soap.Limits{})
	require.NoError(t, err)
	assert.Equal(t, "op", a.Body[0].Name.Local)
}

// FuzzSplit: nothing changes where nothing is asked for, and a block put in is there, with all that
// was there before.
func FuzzSplit(f *testing.F) {
	f.Add([]byte(splitMessage))
	f.Add([]byte(`<Envelope xmlns="` + xmlns.SOAP12 + `"><Header/><Body/></Envelope>`))
	f.Add([]byte(`<Envelope xmlns="` + xmlns.SOAP12 + `"><Body><Fault/></Body></Envelope>`))
	f.Fuzz(func(t *testing.T, message []byte) {
		a, err := soap.Split(message, soap.Limits{})
		if err != nil {
			return
		}
		same, err := a.Rewrite(nil, nil)
		require.NoError(t, err)
		assert.Equal(t, message, same)
		with, err := a.Rewrite(nil, []soap.Element{{Name: soap.Name{Space: "urn:c", Local: "Three"}}})
		require.NoError(t, err)
		b, err := soap.Split(with, soap.Limits{MaxBytes: 1 << 20, MaxElements: 1 << 20, MaxDepth: 40})
		require.NoError(t, err, "%q", with)
		require.Len(t, b.Header, len(a.Header)+1)
		for i := range a.Header {
			assert.Equal(t, a.Header[i].Name, b.Header[i+1].Name)
		}
	})
}
