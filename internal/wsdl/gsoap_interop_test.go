//go:build interop

package wsdl_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/xsd"
)

// TestInteropGSOAPEncoded: what gSOAP makes of a WSDL in SOAP's encoding, with references and
// arrays, is as it is described. Such messages are kept in testdata/encoded.
func TestInteropGSOAPEncoded(t *testing.T) {
	header, stubs, compiler := shared.Program(t, "wsdl2h"), shared.Program(t, "soapcpp2"), shared.Program(t, "gcc")
	source, err := filepath.Abs(filepath.Join("testdata", "encoded"))
	require.NoError(t, err)
	dir := t.TempDir()
	run := func(program string, args ...string) []byte {
		c := exec.CommandContext(t.Context(), program, args...)
		c.Dir = dir
		out, err := c.Output()
		require.NoError(t, err, "%s: %s", program, out)
		return out
	}
	run(header, "-c", "-o", "archive.h", filepath.Join(source, "archive.wsdl"))
	run(stubs, "-c", "-C", "-L", "-x", "archive.h")
	run(compiler, "-w", "-I.", "-o", "client", filepath.Join(source, "client.c"), "soapC.c", "soapClient.c", "-lgsoap")
	d := archive(t)
	for file, args := range map[string][]string{"gsoap-graph-request.xml": nil, "gsoap-bare-request.xml": {"list"}} {
		text := run(filepath.Join(dir, "client"), args...)
		root, err := xsd.ParseMessage(file, text)
		require.NoError(t, err)
		assert.Empty(t, d.Check(root), "%s", text)
	}
}
