package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestDecodeBits: what values cost stands behind the places of the shape; plain SOAP has none.
func TestDecodeBits(t *testing.T) {
	code, out, errs := do(t, "decode", "--bits", "-n", "9", shared.Testdata(t, "pcap", "session.pcapng"))
	require.Zero(t, code, errs)
	assert.Contains(t, out, "body           41        values of 48 bytes, in 1 segment\n")
	assert.Contains(t, out, "        value text   67 bits\n")
	assert.Contains(t, out, "          prefix 0 again\n")
	assert.NotContains(t, out, "</soap:Envelope>\n", "the envelope itself")

	code, out, errs = do(t, "decode", "--bits", "-n", "1", shared.Testdata(t, "pcap", "plain.pcapng"))
	require.Zero(t, code, errs)
	assert.Contains(t, out, "It went as plain SOAP in HTTP")
	assert.NotContains(t, out, "bits")
}
