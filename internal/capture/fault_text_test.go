package capture_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/capture"
)

func TestFaultText(t *testing.T) {
	const start = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`
	const fault = start + `<s:Fault><faultcode>s:Client</faultcode><faultstring>no token</faultstring></s:Fault>`
	assert.Equal(t, "Client: no token", capture.FaultText([]byte(fault+`</s:Body></s:Envelope>`)))
	assert.Equal(t, "Client", capture.FaultText([]byte(fault)), "it is cut")
	assert.Empty(t, capture.FaultText([]byte(start+`<ok/></s:Body></s:Envelope>`)))
	assert.Empty(t, capture.FaultText([]byte(`<html>`)))
	assert.Empty(t, capture.FaultText(nil))
}
