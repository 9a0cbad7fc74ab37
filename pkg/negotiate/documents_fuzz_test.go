package negotiate_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// exampleReferences are references as a session has them in messages about fragments.
func exampleReferences() []string {
	return []string{
		"urn:hhfr:fragment:00112233445566778899aabbccddeeff:0123456789abcdef#fedcba9876543210",
		"urn:hhfr:fragment:00112233445566778899aabbccddeeff:0000000000000000#ffffffffffffffff",
	}
}

// fragmentsMessage is that of a few references.
func fragmentsMessage(t testing.TB, references []string) []byte {
	data, err := negotiate.FragmentsMessage(references)
	require.NoError(t, err)
	return data
}

// A message about fragments that parses can be written, and parses to the same; whatever else comes
// is malformed.
func FuzzFragments(f *testing.F) {
	two := fragmentsMessage(f, exampleReferences())
	f.Add(two)
	f.Add(fragmentsMessage(f, slices.Repeat(exampleReferences(), negotiate.MaxFragments/2)))
	f.Add(bytes.Replace(two, []byte("HeaderReference>urn"), []byte("HeaderReference> \r\n urn"), 1))
	f.Add(bytes.Replace(two, []byte(xmlns.SOAP11), []byte(xmlns.SOAP12), 1))
	f.Add(two[:len(two)/2])
	f.Add([]byte(`<Envelope xmlns="` + xmlns.SOAP11 + `"><Body><Fragments xmlns="` + xmlns.HHFRNegotiation +
		`"><New/><HeaderReference/></Fragments></Body></Envelope>`))
	kept, err := negotiate.FragmentsKept()
	require.NoError(f, err)
	f.Add(kept)
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		fault, err := soap.BuildFault(v, soap.Fault{Code: soap.Server, Reason: "too many fragments"})
		require.NoError(f, err)
		f.Add(fault)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		references, err := negotiate.ParseFragments(in)
		if err != nil {
			require.True(t, isMalformed(err), "%v", err)
		} else {
			require.NotEmpty(t, references)
			require.LessOrEqual(t, len(references), negotiate.MaxFragments)
			data, err := negotiate.FragmentsMessage(references)
			if err != nil && len(in) > negotiate.MaxOffer/8 {
				return // longer because of escapes
			}
			require.NoError(t, err)
			again, err := negotiate.ParseFragments(data)
			require.NoError(t, err, "%q", data)
			require.Equal(t, references, again)
			require.Error(t, negotiate.ParseFragmentsKept(in), "it is not its own reply")
		}
		if err := negotiate.ParseFragmentsKept(in); err != nil {
			require.True(t, isMalformed(err), "%v", err)
		}
	})
}

func isMalformed(err error) bool {
	return errors.Is(err, &negotiate.Error{Code: negotiate.Malformed})
}

// sessionContext is the context of a session with a common store.
func sessionContext(t testing.TB) []byte {
	a := exampleAnswer(t)
	common := negotiate.NewCommon("http://127.0.0.1:8085/")
	copy(common.Key[:], "a key that is the same each time")
	c := negotiate.Context{Facts: negotiate.Facts{
		Session: a.Session, Scheme: a.Scheme, Representation: a.Representation, Transport: a.Transport,
		Assurance: negotiate.AtMostOnce, Security: negotiate.TransportSecurity, Origin: "http://service.example:80",
		Path: "/echo", Address: ":9090", Expires: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC), Common: common,
		Headers:    []string{`<t:Tenant xmlns:t="urn:example:tenant">7</t:Tenant>`},
		PeerShapes: exampleShapes(),
	}, TokenHash: bytes.Repeat([]byte{1}, 32), Lifetime: time.Hour}
	document, err := c.Marshal()
	require.NoError(t, err)
	return document
}

// A session's context that parses can be written, and parses to the same.
func FuzzContext(f *testing.F) {
	document := sessionContext(f)
	f.Add(document)
	f.Add(bytes.Replace(document, []byte("Expires>2027"), []byte("Expires>1927"), 1))
	f.Add(document[:len(document)-10])
	f.Add([]byte(`<Session xmlns="` + xmlns.HHFRContext + `"/>`))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := negotiate.ParseContext(in)
		if err != nil {
			require.True(t, isMalformed(err), "%v", err)
			return
		}
		data, err := c.Marshal()
		if err != nil {
			require.True(t, isMalformed(err), "%v", err)
			return
		}
		again, err := negotiate.ParseContext(data)
		require.NoError(t, err, "%q", data)
		require.Equal(t, c, again)
		_, err = c.PublicEntries()
		require.True(t, err == nil || isMalformed(err), "%v", err)
	})
}

// A name of a header block that parses is written as it was, and is none of security.
func FuzzHeaderName(f *testing.F) {
	for _, seed := range []string{
		"{http://www.w3.org/2005/08/addressing}To", "{urn:x}a", "{}a", "a", "{urn:x}", "{urn:x}b:c", "{{}}",
		"{" + xmlns.WSSE + "}Security", " {urn:x}a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, err := negotiate.ParseHeaderName(text)
		if err != nil {
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.BadConfig})
			return
		}
		require.Equal(t, text, "{"+name.Space+"}"+name.Local)
		require.False(t, strings.ContainsAny(name.Local, "{}:"))
		require.NotEqual(t, xmlns.WSSE, name.Space)
	})
}
