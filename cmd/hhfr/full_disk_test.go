package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestFullDisk: the disk under a client's used store is full. The run still uses a stream with
// shapes, with one warning; what must be stored is an error as before.
func TestFullDisk(t *testing.T) {
	unshare := shared.Program(t, "unshare")
	if exec.CommandContext(t.Context(), unshare, "-rm", "true").Run() != nil {
		require.Empty(t, os.Getenv("HHFR_CI"), "this system does not let us mount a disk, which CI must have")
		t.Skip("this system does not let us mount a disk")
	}
	server := startMortal(t, "127.0.0.1:0", "127.0.0.1:0", "bolt:"+filepath.Join(t.TempDir(), "server.db"))
	for _, form := range []string{"disk/store", "bolt:disk/store.db"} {
		t.Run(form, func(t *testing.T) {
			script := `mkdir disk && mount -t tmpfs -o size=256k none disk || exit 9
hhfr stream $URL $SOAP/ews-finditem-request.xml --store $STORE -q > /dev/null || exit 8
cat /dev/zero > disk/rest 2> /dev/null
hhfr stream $URL $SOAP/cwmp-inform.xml --store $STORE --require-hhfr --repeat 20 -o json || exit 7
hhfr stream $URL $SOAP/cwmp-inform.xml --store $STORE --assurance at-least-once -q > /dev/null && exit 6
exit 0`
			c := exec.CommandContext(t.Context(), unshare, "-rm", "sh", "-c", script)
			c.Dir = t.TempDir()
			c.Env = append(c.Environ(), "URL="+server.url, "STORE="+form, "SOAP="+shared.Testdata(t, "soap"))
			var errs strings.Builder
			c.Stderr = &errs
			out, err := c.Output()
			require.NoError(t, err, "%s", &errs)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			var last struct {
				Summary struct {
					HHFR   bool
					Stream struct{ Sent int64 } `json:"stream_octets"`
					Sent   struct{ Sent int64 } `json:"envelope_octets"`
				}
			}
			require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last), "%s", out)
			assert.True(t, last.Summary.HHFR)
			assert.Less(t, last.Summary.Stream.Sent, last.Summary.Sent.Sent/8, "shapes are of use")
			assert.Equal(t, 1, strings.Count(errs.String(), "the context store is full"), errs.String())
			assert.Contains(t, errs.String(), "no space left on device")
		})
	}
}
