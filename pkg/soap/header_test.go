package soap_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/soap"
)

func TestHeaderBlocks(t *testing.T) {
	for _, v := range []soap.Version{soap.V11, soap.V12} {
		in := &soap.Envelope{Version: v, Header: []soap.Element{
			{
				Name:           name("urn:h", "A"),
				MustUnderstand: true,
				Role:           "urn:me",
			},
			{Name: name("urn:h", "B"), Role: "urn:next"},
			{Name: name("urn:h", "C"), Relay: v == soap.V12},
		}, Body: []soap.Element{{Name: name("urn:m", "Op")}}}
		data, err := soap.Build(in)
		require.NoError(t, err)
		out, err := soap.Parse(data, soap.Limits{})
		require.NoError(t, err)
		assert.Equal(t, in, out)
	}
	// Attributes of the other version are ignored.
	e, err := soap.Parse(
		[]byte(
			open12+`<Header><a xmlns:o="http://schemas.xmlsoap.org/soap/envelope/" o:mustUnderstand="1" `+
				`o:actor="urn:x"/></Header><Body/></Envelope>`,
		),
		soap.Limits{},
	)
	require.NoError(t, err)
	assert.False(t, e.Header[0].MustUnderstand)
	assert.Empty(t, e.Header[0].Role)
}

func TestMandatoryHeaders(t *testing.T) {
	const other, next11 = "urn:other", "http://schemas.xmlsoap.org/soap/actor/next"
	const role12 = "http://www.w3.org/2003/05/soap-envelope/role/"
	for _, c := range []struct {
		what, role string
		v          soap.Version
		mandatory  bool
	}{
		{"for the ultimate receiver", "", soap.V11, true},
		{"next 1.1", next11, soap.V11, true},
		{"next 1.1 in 1.2", next11, soap.V12, false},
		{"next 1.2", role12 + "next", soap.V12, true},
		{"next 1.2 in 1.1", role12 + "next", soap.V11, false},
		{"none", role12 + "none", soap.V12, false},
		{"ultimate by name", role12 + "ultimateReceiver", soap.V12, true},
		{"ultimate by name in 1.1", role12 + "ultimateReceiver", soap.V11, false},
		{"another role", other, soap.V12, false},
	} {
		e := &soap.Envelope{Version: c.v, Header: []soap.Element{
			{Name: name("urn:h", "X"), MustUnderstand: true, Role: c.role}, {Name: name("urn:h", "free")},
		}}
		f, mandatory := e.Mandatory()
		assert.Equal(t, c.mandatory, mandatory, c.what)
		if mandatory {
			assert.Equal(t, soap.MustUnderstand, f.Code)
			assert.Contains(t, f.Reason, "{urn:h}X")
		}
	}
}

func TestFaultsInFull(t *testing.T) {
	for _, c := range []struct {
		v soap.Version
		f soap.Fault
	}{
		{soap.V11, soap.Fault{Code: soap.Client, Subcode: "Auth", Reason: "r", Actor: "urn:a"}},
		{soap.V11, soap.Fault{Subcode: "Gone", SubcodeSpace: "urn:c", Reason: "r"}},
		{soap.V12, soap.Fault{Code: soap.Client, Subcode: "Gone", SubcodeSpace: "urn:c", Reason: "r", Actor: "urn:a",
			Node: "urn:n"}},
		{soap.V12, soap.Fault{Code: soap.DataEncodingUnknown, Reason: "r"}},
		{soap.V12, soap.Fault{Code: soap.MustUnderstand, Reason: "r",
			NotUnderstood: []soap.Name{name("urn:h", "A"), name("", "B")}}},
		{soap.V12, soap.Fault{Code: soap.VersionMismatch, Reason: "r", Supported: []soap.Version{soap.V12, soap.V11}}},
	} {
		data, err := soap.BuildFault(c.v, c.f)
		require.NoError(t, err)
		e, err := soap.Parse(data, soap.Limits{})
		require.NoError(t, err, string(data))
		f, ok := e.Fault()
		require.True(t, ok)
		assert.Equal(t, c.f, f, string(data))
	}
}
