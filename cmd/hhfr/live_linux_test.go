package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/metrics"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/shared"
)

// openTerminal opens a terminal of so many columns: what is written to its one end is read from the
// other.
func openTerminal(t *testing.T, columns uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	return master, slave
}

// watched returns what a terminal shows, whole once read is closed: when its programs have ended.
func watched(master *os.File) (screen *said, read chan struct{}) {
	screen, read = new(said), make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			_, _ = screen.Write(b[:n])
			if err != nil { // EIO: nobody has the terminal open
				return
			}
		}
	}()
	return screen, read
}

// leads starts the program whose terminal it is; shows waits until that has a text.
func leads(t *testing.T, program *exec.Cmd, master, slave *os.File) (screen *said, read chan struct{},
	shows func(text string)) {
	t.Helper()
	require.NoError(t, program.Start())
	require.NoError(t, slave.Close())
	screen, read = watched(master)
	return screen, read, func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(screen.String(), text) }, time.Minute,
			10*time.Millisecond, "%q in %s", text, screen)
	}
}

// colors match the sequences that set them.
var colors = regexp.MustCompile("\x1b\\[\\d+m")

// TestSessionAt80Columns: a row says whose session its message is of on every terminal.
func TestSessionAt80Columns(t *testing.T) {
	for columns, titles := range map[uint16]string{
		80:  "NUMBER TIME            SESSION  MESSAGE OPERATION         WIRE    SOAP  STATE",
		100: "NUMBER TIME            CLIENT ",
	} {
		master, slave := openTerminal(t, columns)
		cmd := exec.CommandContext(t.Context(), "hhfr", "decode", "-q", shared.Testdata(t, "pcap", "session.pcapng"),
			"--store", shared.Testdata(t, "pcap", "store"))
		cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=")
		cmd.Stderr, cmd.Stdout = slave, slave
		require.NoError(t, cmd.Start())
		require.NoError(t, slave.Close())
		all, read := watched(master)
		require.NoError(t, cmd.Wait(), all)
		<-read
		assert.Contains(t, all.String(), "\x1b[1mNUMBER")
		assert.Regexp(t, "\x1b\\[31m[^\r\n\x1b]* Fault [^\r\n\x1b]*\x1b\\[0m", all.String(), "faults are red")
		first, rows, _ := strings.Cut(colors.ReplaceAllString(all.String(), ""), "\r\n")
		assert.True(t, strings.HasPrefix(first, titles), first)
		assert.Contains(t, first, " SESSION ")
		assert.Regexp(t, ` [0-9a-f]{8} +request `, rows)
		for line := range strings.SplitSeq(rows, "\r\n") {
			assert.LessOrEqual(t, utf8.RuneCountInString(line), int(columns), line)
		}
	}
}

// TestProgress: who reads a long capture shows on a terminal how far it is, and removes that before
// anything else is printed. Nothing else than a terminal sees it.
func TestProgress(t *testing.T) {
	plain := filepath.Join(shared.Testdata(t, "pcap"), "plain.pcapng")
	shows := func(stdout bool, args ...string) (screen, printed string) {
		master, slave := openTerminal(t, 120)
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "hhfr", args...)
		cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=1")
		cmd.Stderr, cmd.Stdout = slave, &out
		if stdout {
			cmd.Stdout = slave
		}
		require.NoError(t, cmd.Start())
		require.NoError(t, slave.Close())
		all, read := watched(master)
		require.NoError(t, cmd.Wait(), all)
		<-read
		return all.String(), out.String()
	}
	const percent = `(\r ?[ 0-9]\d%)+\r    \r`
	for _, command := range []string{"estimate", "decode"} {
		screen, printed := shows(false, command, plain)
		assert.Regexp(t, "^"+percent+"hhfr: [^%]+$", screen, command)
		assert.NotContains(t, printed, "\r", command)
		screen, _ = shows(true, command, plain)
		assert.Regexp(t, "^"+percent+"[A-Z]", screen, "%s: the first line comes after it", command)
		for _, silent := range [][]string{{command, "-q", plain}, {command, "--log-format", "json", plain}} {
			screen, _ = shows(false, silent...)
			assert.NotContains(t, screen, "%", command)
		}
	}
}

// TestProgressBeforeAPipe: what is read through a pipe may be shown by the same terminal, so that
// nothing of the progress stands in its first line, nor is left behind when the reader has enough.
func TestProgressBeforeAPipe(t *testing.T) {
	session := shared.Testdata(t, "pcap", "session.pcapng")
	for _, line := range []string{"hhfr decode %s | head -n 3", "hhfr decode -o jsonl %s | head -c 10"} {
		master, slave := openTerminal(t, 120)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf(line, session))
		cmd.Stderr, cmd.Stdout = slave, slave
		require.NoError(t, cmd.Start())
		require.NoError(t, slave.Close())
		all, read := watched(master)
		require.NoError(t, cmd.Wait(), all)
		<-read
		assert.Regexp(t, `^(\r ?[ 0-9]\d%)*\r    \r[^%]+$`, all.String(), line)
	}
}

// TestLiveLine: on a terminal proxy keeps one line, which fits it; what it reports goes above that.
func TestLiveLine(t *testing.T) {
	origin := httptest.NewServer(&numbered{seen: map[string]int{}})
	defer origin.Close()
	far := startProxyProcess(t, "127.0.0.1:0", origin.URL+"/service", "--no-offer")
	master, slave := openTerminal(t, 60)
	listen := shared.Addr(t)
	cmd := exec.CommandContext(t.Context(), "hhfr", "proxy", "--listen", listen, "--upstream", far.url("/service"))
	cmd.Stderr = slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	screen, read, shows := leads(t, cmd, master, slave)
	shows("\r\x1b[K0 calls, 1 stream")
	c := &callers{t: t, to: "http://" + listen + "/service", answers: map[string]bool{}}
	client := &http.Client{Transport: &http.Transport{}}
	for number := range 3 {
		c.call(client, number+1)
	}
	shows("\r\x1b[K3 calls, ")
	require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
	shows("\r\x1b[Khhfr: near http://")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), screen)
	<-read
	client.CloseIdleConnections()
	far.end()
	lines := strings.Split(screen.String(), "\r\x1b[K")
	for _, line := range lines {
		if !strings.Contains(line, "hhfr: ") {
			assert.LessOrEqual(t, len([]rune(line)), 59, "%q", line)
		}
	}
	last := lines[len(lines)-1]
	assert.True(t, strings.HasPrefix(last, "hhfr: near ") && strings.HasSuffix(last, "\n"),
		"the line is gone in the end: %q", last)
}

// TestNoLiveLineInTheBackground: a proxy that a shell has put into the background of its terminal
// keeps no line there, which would be in what its user types; its reports come all the same. In the
// foreground again it has one.
func TestNoLiveLineInTheBackground(t *testing.T) {
	origin := httptest.NewServer(&numbered{seen: map[string]int{}})
	defer origin.Close()
	master, slave := openTerminal(t, 80)
	listen, status := shared.Addr(t), shared.Addr(t)
	shell := exec.CommandContext(t.Context(), "sh", "-c", `set -m
hhfr proxy --listen "$0" --upstream "$1" --no-offer --metrics "$2" >/dev/null &
echo began
read line
echo told
fg >/dev/null`, listen, origin.URL, status)
	shell.Stdin, shell.Stdout, shell.Stderr = slave, slave, slave
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	screen, read, shows := leads(t, shell, master, slave)
	shows("began")
	c := &callers{t: t, to: "http://" + listen + "/service", answers: map[string]bool{}}
	client := &http.Client{Transport: &http.Transport{}}
	require.Eventually(t, func() bool { // it runs for as long as a line would have taken
		resp, err := client.Get("http://" + status + "/status?format=json")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		var s meter.Snapshot
		return json.NewDecoder(resp.Body).Decode(&s) == nil && s.Now.Sub(s.Began) > 2*metrics.LiveInterval
	}, time.Minute, 10*time.Millisecond)
	c.call(client, 1)
	client.CloseIdleConnections()
	_, err := master.WriteString("\n")
	require.NoError(t, err)
	shows("told")
	assert.NotContains(t, screen.String(), "\x1b[K", "in the background")
	shows("\r\x1b[K1 call, ") // in the foreground
	_, err = master.WriteString("\x03")
	require.NoError(t, err)
	shows("hhfr: near http://")
	_ = shell.Wait() // 130, or what this shell makes of it
	<-read
}
