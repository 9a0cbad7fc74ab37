package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// TestInspectOnATerminal: the screen shows a capture, from a file or a pipe, obeys keys, and leaves
// the terminal as it was, however it ends.
func TestInspectOnATerminal(t *testing.T) {
	file := shared.Testdata(t, "pcap", "session.pcapng")
	for name, tc := range map[string]struct {
		line   string
		code   int
		signal os.Signal
		keys   string
	}{
		"q":       {"exec hhfr inspect %s", 0, nil, "q"},
		"ctrl+c":  {"exec interrupted inspect %s", exit.Interrupted, nil, "\x03"},
		"SIGTERM": {"exec interrupted inspect %s", exit.Interrupted, syscall.SIGTERM, ""},
		"SIGHUP":  {"exec interrupted inspect %s", exit.Interrupted, syscall.SIGHUP, ""},
		"a pipe":  {"cat %s | hhfr inspect -", 0, nil, "q"},
		"growing": {"exec hhfr inspect --tail %s", 0, nil, "q"},
	} {
		t.Run(name, func(t *testing.T) {
			master, slave := openTerminal(t, 80)
			before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			require.NoError(t, err)
			after, err := os.OpenFile(slave.Name(), os.O_RDWR|syscall.O_NOCTTY, 0)
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf(tc.line, file))
			cmd.Env = append(os.Environ(), "TERM=xterm-256color", "TMPDIR="+t.TempDir())
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			screen, read, shows := leads(t, cmd, master, slave)
			shows("GetForecast")
			_, err = master.WriteString("?")
			require.NoError(t, err)
			shows("one page down")
			if tc.signal != nil {
				require.NoError(t, cmd.Process.Signal(tc.signal))
			}
			_, err = master.WriteString(tc.keys)
			require.NoError(t, err)
			_ = cmd.Wait()
			assert.Equal(t, tc.code, cmd.ProcessState.ExitCode(), screen)
			now, err := unix.IoctlGetTermios(int(after.Fd()), unix.TCGETS)
			require.NoError(t, err)
			require.NoError(t, after.Close())
			<-read
			assert.Equal(t, before, now, "modes of the terminal")
			text := screen.String()
			assert.Greater(t, strings.LastIndex(text, "\x1b[?1049l"), strings.LastIndex(text, "\x1b[?1049h"),
				"the other screen is left: %q", text)
		})
	}
}

// TestInspectWithoutATerminal: what could not be shown is an error that names decode.
func TestInspectWithoutATerminal(t *testing.T) {
	file := shared.Testdata(t, "pcap", "session.pcapng")
	out, err := exec.CommandContext(t.Context(), "hhfr", "inspect", file).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "inspect needs a terminal")
	assert.Contains(t, string(out), "hint: hhfr decode "+file)

	master, slave := openTerminal(t, 80)
	cmd := exec.CommandContext(t.Context(), "hhfr", "inspect", file)
	cmd.Env = append(os.Environ(), "TERM=dumb")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	require.NoError(t, cmd.Start())
	require.NoError(t, slave.Close())
	screen, read := watched(master)
	assert.Error(t, cmd.Wait())
	<-read
	assert.Contains(t, screen.String(), "inspect needs a terminal")
}

// TestInspectNothing: where there is nothing to show, it ends, and says why as decode does.
func TestInspectNothing(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pcap")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for name, tc := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no capture": {[]string{empty}, exit.Malformed, "not a capture"},
		"none chosen": {
			[]string{shared.Testdata(t, "pcap", "session.pcapng"), "-Y", "bytes > 1M"}, exit.Failed, "none of",
		},
	} {
		t.Run(name, func(t *testing.T) {
			master, slave := openTerminal(t, 80)
			cmd := exec.CommandContext(t.Context(), "hhfr", append([]string{"inspect"}, tc.args...)...)
			cmd.Env = append(os.Environ(), "TERM=xterm")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			require.NoError(t, cmd.Start())
			require.NoError(t, slave.Close())
			screen, read := watched(master)
			_ = cmd.Wait()
			<-read
			assert.Equal(t, tc.code, cmd.ProcessState.ExitCode())
			assert.Contains(t, screen.String(), tc.says)
		})
	}
}
