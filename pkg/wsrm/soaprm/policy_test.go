package soaprm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// What is published is read as that; what others publish, in their forms, too: an assertion that is
// referred to, one without an assurance, one with a weaker one, none.
func TestPolicy(t *testing.T) {
	const both = `<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" ` +
		`xmlns:wsp="http://schemas.xmlsoap.org/ws/2004/09/policy" ` +
		`xmlns:a="http://schemas.xmlsoap.org/ws/2005/02/rm/policy" ` +
		`xmlns:b="http://docs.oasis-open.org/ws-rx/wsrmp/200702">`
	const end = `</wsdl:definitions>`
	for _, c := range []struct {
		text    string
		version soaprm.Protocol
		lacks   string
	}{
		{both + string(soaprm.Policy([]soaprm.Protocol{soaprm.V10, soaprm.V11})) + end, soaprm.V11, ""},
		{both + string(soaprm.Policy([]soaprm.Protocol{soaprm.V11})) + end, soaprm.V11, ""},
		{both + string(soaprm.Policy([]soaprm.Protocol{soaprm.V10})) + end, soaprm.V10, ""},
		{both + string(soaprm.Policy(nil)) + end, "", ""},
		{both + `<wsp:Policy><wsp:ExactlyOne><wsp:All><a:RMAssertion><a:InactivityTimeout Milliseconds="6000"/>` +
			`</a:RMAssertion></wsp:All></wsp:ExactlyOne></wsp:Policy>` + end, soaprm.V10, ""},
		{both + `<wsp:Policy><b:RMAssertion>` +
			`<wsp:Policy><b:DeliveryAssurance><wsp:Policy><b:AtLeastOnce/></wsp:Policy>` +
			`</b:DeliveryAssurance></wsp:Policy></b:RMAssertion></wsp:Policy><b:ExactlyOnce/>` + end,
			soaprm.V11, "ExactlyOnce and InOrder"},
		{both + `<wsp:Policy><b:RMAssertion/></wsp:Policy>` + end, soaprm.V11, ""},
	} {
		p, err := soaprm.ReadPolicy([]byte(c.text))
		require.NoError(t, err, c.text)
		assert.Equal(t, c.version, p.Version, c.text)
		assert.Equal(t, c.lacks, p.Lacks("ExactlyOnce", "InOrder"), c.text)
	}
	_, err := soaprm.ReadPolicy([]byte("<a><b></a>"))
	assert.Error(t, err)
}
