//go:build interop

package frame_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/shared"
)

// captureOf is a capture of one direction of a connection, in writes of some octets each.
func captureOf(t *testing.T, octets []byte, each int) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "frames.pcapng")
	out, err := os.Create(file)
	require.NoError(t, err)
	rec := pcapng.NewRecorder(out, nil)
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	conn := rec.Conn(here)
	for part := range slices.Chunk(octets, each) {
		_, err := conn.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, conn.Close())
	require.NoError(t, rec.Close())
	require.NoError(t, out.Close())
	return file
}

// shown is what tshark shows of frames: their fields and values, frame by frame.
func shown(t *testing.T, file string) (all [][]string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), shared.Program(t, "tshark"), "-n", "-X", "lua_script:"+dissector,
		"-r", file, "-O", "hhfr").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		text := strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(text, "    frame: "):
			all = append(all, nil)
		case strings.HasPrefix(text, "        ") && len(all) > 0:
			all[len(all)-1] = append(all[len(all)-1], strings.TrimSpace(text))
		case strings.HasPrefix(text, "    bytes that are no frame"):
			all = append(all, []string{"damaged"})
		}
	}
	return all
}

// TestInteropWireshark: tshark shows each frame with the fields that Dissect names, and their
// values, however packets cut it; where bytes are missing it goes on with the next sync.
func TestInteropWireshark(t *testing.T) {
	hello := frames["hello-initiator"].AppendTo(nil)
	octets, want := slices.Clone(hello), []frame.Frame{frames["hello-initiator"]}
	for _, f := range frames {
		octets, want = f.AppendTo(octets), append(want, f)
	}
	for _, each := range []int{16 << 10, 100, 9} {
		got := shown(t, captureOf(t, octets, each))
		require.Len(t, got, len(want), each)
		for i, f := range want {
			fields, _, err := frame.Dissect(f.AppendTo(nil), nil)
			require.NoError(t, err)
			require.Len(t, got[i], len(fields), "%v %q", f, got[i])
			for k, field := range fields {
				name, value, _ := strings.Cut(got[i][k], ":")
				value = strings.TrimPrefix(value, " ")
				assert.Equal(t, field.Name, name, "%v", f)
				said := field.Value
				if text, err := strconv.Unquote(said); err == nil {
					said = text
				}
				if said != "" && said != `""` {
					value, _, _ = strings.Cut(value, "…") // where it is long
					assert.NotEmpty(t, value, "%v: %s", f, name)
					assert.True(t, strings.HasPrefix(said, value), "%v: %s: %q, %q", f, name, said, value)
				}
			}
		}
	}
	sync, window := frames["sync-full"].AppendTo(nil), frames["window"].AppendTo(nil)
	got := shown(t, captureOf(t, slices.Concat(hello, []byte("\x3fnothing of it"), sync, window), 16<<10))
	require.Len(t, got, 4)
	assert.Equal(t, "damaged", got[1][0])
	assert.Equal(t, "mark: sync", got[2][0])
	assert.Equal(t, "kind: window", got[3][0])
	got = shown(t, captureOf(t, slices.Concat([]byte("the end of what was before"), sync, window), 16<<10))
	require.Len(t, got, 3, "joined at a sync")
}
