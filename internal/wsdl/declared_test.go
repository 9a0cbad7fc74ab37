package wsdl_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/internal/xsd"
)

const bound = `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:t" targetNamespace="urn:t"
  xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/">
  <portType name="P"/>
  <binding name="A" type="t:P"><soap:binding transport="http://schemas.xmlsoap.org/soap/http"></soap:binding></binding>
  <binding name="B" type="t:P">
    <soap:binding transport="http://schemas.xmlsoap.org/soap/http"/>OTHER</binding>
  <service name="S">
    <port name="A" binding="t:A"><soap:address location="http://a.example/x"/></port>
    <port name="B" binding="t:B"><soap:address location="https://B.example:443/y?z"/></port>
    <port name="C" binding="t:Missing"><soap:address location="https://c.example"/></port>
  </service>
</definitions>`

func at(t *testing.T, d *wsdl.ServiceDescription, of string) *wsdl.DeclaredStreams {
	u, err := url.Parse(of)
	require.NoError(t, err)
	return d.StreamsAt(u)
}

// What is written into a description is read of it again, for each binding, and is as its schema
// says.
func TestAnnotatedBindings(t *testing.T) {
	want := &wsdl.DeclaredStreams{
		Scheme: "urn:s", Representations: []string{"urn:r", "urn:r2"},
		Streams: []wsdl.DeclaredStream{{Transport: "urn:t&<", Address: ":1"}, {Transport: "urn:t", Address: "[::1]:2"}},
	}
	plain := strings.Replace(bound, "OTHER", "", 1)
	text, err := wsdl.Annotate([]byte(plain), want)
	require.NoError(t, err)
	annotation := regexp.MustCompile(`(?s)\n *<hhfr:declaration .*?</hhfr:declaration>`)
	assert.Len(t, annotation.FindAll(text, -1), 2)
	assert.Equal(t, plain, string(annotation.ReplaceAll(text, nil)), "all else stays as it is")

	d, err := wsdl.Parse(t.Context(), text)
	require.NoError(t, err)
	for _, of := range []string{"http://a.example/x", "http://A.example:80/x?wsdl", "https://b.example/y"} {
		assert.Equal(t, want, at(t, d, of), of)
	}
	for _, of := range []string{
		"http://a.example/", "https://a.example/x", "http://a.example:81/x", "https://c.example", "http://b.example/y",
	} {
		assert.Nil(t, at(t, d, of), of)
	}

	schema, err := wsdl.Load(t.Context(), filepath.Join("..", "..", "docs", "wsdl-binding.xsd"), wsdl.SourceOptions{})
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "negotiation.md"))
	require.NoError(t, err)
	var annotations []string
	for _, block := range [][]byte{text, page} {
		for _, one := range annotation.FindAll(block, -1) {
			annotations = append(annotations, string(one))
		}
	}
	require.Len(t, annotations, 3)
	check := func(text string) []xsd.Misfit {
		root, err := xsd.ParseMessage("annotation", []byte(text))
		require.NoError(t, err)
		return schema.Check(root)
	}
	for _, a := range annotations {
		assert.Empty(t, check(a), a)
		assert.Empty(t, check(strings.ReplaceAll(a, "hhfr:declaration", "hhfr:binding")), "by its older name")
	}
	assert.NotEmpty(t, check(strings.Replace(annotations[0], `transport=`, `port=`, 1)))
	assert.NotEmpty(t, check(strings.Replace(annotations[0], `address=":1"`, `address="x"`, 1)))
}

// An annotation of another namespace counts where it is asked for; one that says nothing means what
// there is without an offer; a bad one is a problem with its place, and declares nothing.
func TestAnnotationsOfOthers(t *testing.T) {
	for name, c := range map[string]struct {
		annotation, problem string
		want                *wsdl.DeclaredStreams
	}{
		"empty":   {`<f:binding xmlns:f="urn:fast"/>`, "", &wsdl.DeclaredStreams{}},
		"newer":   {`<f:declaration xmlns:f="urn:fast"/>`, "", &wsdl.DeclaredStreams{}},
		"unknown": {`<f:binding xmlns:f="urn:other"/>`, "", nil},
		"more inside": {
			`<f:binding xmlns:f="urn:fast"><f:later/><g xmlns="urn:g"/></f:binding>`, "", &wsdl.DeclaredStreams{},
		},
		"no transport": {
			`<f:binding xmlns:f="urn:fast"><f:stream address=":1"/></f:binding>`, "without a transport", nil,
		},
		"no port": {
			`<f:binding xmlns:f="urn:fast"><f:stream transport="t" address="host"/></f:binding>`, "neither :PORT", nil,
		},
	} {
		file := filepath.Join(t.TempDir(), "b.wsdl")
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(bound, "OTHER", c.annotation, 1)), 0o600))
		d, err := wsdl.Load(t.Context(), file, wsdl.SourceOptions{Annotations: []string{"urn:fast"}})
		require.NoError(t, err, name)
		assert.Equal(t, c.want, at(t, d, "https://b.example/y"), name)
		if c.problem != "" {
			require.Len(t, d.Problems, 1, name)
			assert.ErrorContains(t, d.Problems[0], "b.wsdl:6:69: what {urn:fast}binding declares: ", name)
			assert.ErrorContains(t, d.Problems[0], c.problem, name)
		}
		d, err = wsdl.Load(t.Context(), file, wsdl.SourceOptions{})
		require.NoError(t, err)
		assert.Nil(t, at(t, d, "https://b.example/y"), name)
	}
}
