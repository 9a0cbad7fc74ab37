//go:build interop

package main

import (
	"bytes"
	"encoding/hex"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/soap"
)

// TestInteropTshark: another program reads our recordings as clean TCP, and finds in them the bytes
// that decode writes out.
func TestInteropTshark(t *testing.T) {
	tshark := shared.Program(t, "tshark")
	dir := t.TempDir()
	recording := filepath.Join(dir, "client.pcapng")
	soap, err := filepath.Glob(shared.Testdata(t, "soap", "*.xml"))
	require.NoError(t, err)
	url, stop := serveHere(t, "--sync", "4KiB")
	code, _, stderr := do(t, append([]string{"stream", url, "--repeat", "5", "--record", recording, "--require-hhfr",
		"--mode", "explicit"}, soap...)...)
	require.Zero(t, code, stderr)
	stop()
	show := func(args ...string) string {
		t.Helper()
		var errs bytes.Buffer
		c := exec.CommandContext(t.Context(), tshark, append([]string{"-r", recording}, args...)...)
		c.Stderr = &errs
		out, err := c.Output()
		require.NoError(t, err, errs.String())
		return string(out)
	}
	// Without a declaration, tshark dissects data by its port.
	ports := strings.Fields(show("-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 0", "-T", "fields", "-e", "tcp.dstport"))
	require.Len(t, ports, 2, "connections: the negotiation, then the stream")
	assert.Empty(t, show("-d", "tcp.port=="+ports[0]+",http", "-d", "tcp.port=="+ports[1]+",data", "-Y",
		"_ws.malformed || tcp.analysis.lost_segment || tcp.analysis.retransmission || tcp.analysis.out_of_order || "+
			"tcp.analysis.ack_lost_segment || tcp.checksum.status == 0 || ip.checksum.status == 0", "-o",
		"tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"))
	assert.Contains(t, show("-T", "fields", "-e", "frame.comment"), "urn:uuid:")

	code, _, stderr = do(t, "decode", recording, "--write-streams", filepath.Join(dir, "raw"))
	require.Zero(t, code, stderr)
	ours := shared.Read(t, filepath.Join(dir, "raw", "stream1-out-0.bin"))
	theirs := ""
	for _, line := range strings.Split(show("-q", "-z", "follow,tcp,raw,1"), "\n") {
		if len(line) > 0 && line[0] != '\t' && !strings.ContainsAny(line, "= :") {
			theirs += strings.TrimSpace(line)
		}
	}
	assert.Equal(t, hex.EncodeToString(ours), strings.ToLower(theirs))
}

// TestInteropCurl: the lines that serve prints work as pasted into a shell.
func TestInteropCurl(t *testing.T) {
	program := shared.Program(t, "curl")
	lines, descriptions := printedCurls(t)
	for name, two := range lines {
		for _, line := range two {
			out, err := exec.CommandContext(t.Context(), "sh", "-c", line).Output()
			require.NoError(t, err, line)
			assert.Equal(t, operations[name], soap.Recognize(out).Operation.Local, "%s\n%s", line, out)
			assert.False(t, soap.Recognize(out).Fault, "%s\n%s", line, out)
			if name == "echo" {
				assert.Contains(t, line, string(out), "what echo gives back was sent")
			}
		}
	}
	for url, wsdl := range descriptions {
		out, err := exec.CommandContext(t.Context(), program, "-sf", wsdl).Output()
		require.NoError(t, err)
		assert.Contains(t, string(out), `location="`+url+`"`)
	}
}
