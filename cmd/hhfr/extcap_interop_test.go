//go:build interop

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/live"
	"github.com/hhfr/hhfr/internal/pcap"
	"github.com/hhfr/hhfr/internal/shared"
)

// extcap is the capture program of Wireshark.
func extcap(t *testing.T) string {
	return shared.Testdata(t, "..", "scripts", "wireshark", "hhfr-extcap")
}

// wireshark runs tshark with the capture program in its folder. tshark looks for no such folder if
// root runs it: then it is somebody else in a namespace of its own.
func wireshark(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	tshark := shared.Program(t, "tshark")
	c := exec.CommandContext(t.Context(), tshark, append([]string{"-n"}, args...)...)
	if os.Getuid() == 0 {
		unshare := []string{shared.Program(t, "unshare"), "--user", "--map-user=1000", "--map-group=1000"}
		if exec.CommandContext(t.Context(), unshare[0], append(unshare[1:], "true")...).Run() != nil {
			t.Skip("no user namespaces here")
		}
		c = exec.CommandContext(t.Context(), unshare[0], append(append(unshare[1:], tshark, "-n"), args...)...)
	}
	home := t.TempDir()
	c.Env = append(os.Environ(), "WIRESHARK_EXTCAP_DIR="+filepath.Dir(extcap(t)), "HOME="+home, "XDG_CONFIG_HOME="+home)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run() // what it says tells how it went
	return out.String(), errs.String()
}

// TestInteropExtcap: Wireshark has the messages of a recording and of plain SOAP that decode lists,
// by their addresses, ports and times, and searches in their envelopes.
func TestInteropExtcap(t *testing.T) {
	out, errs := wireshark(t, "-D")
	require.Contains(t, out, "hhfr (SOAP messages, by hhfr decode)", errs)
	out, errs = wireshark(t, "-i", "hhfr", "-L")
	require.Contains(t, out, "WIRESHARK_UPPER_PDU (Envelopes)", errs)
	for _, name := range []string{"plain.pcapng", "session.pcapng", "datagrams.pcap", "upgraded.pcapng"} {
		t.Run(name, func(t *testing.T) {
			file := shared.Testdata(t, "pcap", name)
			_, want, stderr := do(t, "decode", file, "--time", "relative")
			require.NotEmpty(t, want, stderr)
			rows := strings.Split(strings.TrimSpace(want), "\n")[1:]
			out, errs := wireshark(t, "-i", "hhfr", "-o", "extcap.hhfr.file:"+file, "-T", "fields",
				"-e", "_ws.col.Source", "-e", "exported_pdu.src_port", "-e", "_ws.col.Destination",
				"-e", "exported_pdu.dst_port", "-e", "frame.comment", "-e", "xml.tag")
			lines := strings.Split(strings.TrimSpace(out), "\n")
			require.Len(t, lines, len(rows), "%s\n%s", errs, out)
			for i, row := range rows {
				f, got := strings.Fields(row), strings.Split(lines[i], "\t")
				client, server := got[0]+":"+got[1], got[2]+":"+got[3]
				if f[3] == "<-" {
					client, server = server, client
				}
				require.Equal(t, []string{f[2], f[4]}, []string{client, server}, row)
				comment := strings.Fields(got[4])
				assert.Equal(t, []string{f[0], f[7], f[8]}, comment[:3])
				assert.Contains(t, got[5], "Envelope")
			}
		})
	}
	out, errs = wireshark(t, "-i", "hhfr", "-o", "extcap.hhfr.file:"+shared.Testdata(t, "pcap", "datagrams.pcap"),
		"-Y", "exported_pdu.port_type == 3", "-T", "fields", "-e", "frame.number")
	assert.Equal(t, 32, strings.Count(out, "\n"), "%s%s", errs, out)
	out, errs = wireshark(t, "-i", "hhfr", "-o", "extcap.hhfr.file:"+shared.Testdata(t, "pcap", "session.pcapng"),
		"-o", "extcap.hhfr.filter:request && number == 2", "-Y", `xml.tag contains "GetForecastResponse"`,
		"-T", "fields", "-e", "frame.time_epoch", "-e", "frame.comment")
	_, want, _ := do(t, "decode", shared.Testdata(t, "pcap", "session.pcapng"), "-Y", "request && number == 2", "-V")
	_, first, found := strings.Cut(want, "\nfirst ")
	require.True(t, found, want)
	first, _, _ = strings.Cut(strings.TrimSpace(first), "\n")
	at, err := time.Parse(time.RFC3339Nano, first)
	require.NoError(t, err)
	want = fmt.Sprintf("%d.%09d\t2 request GetForecastResponse verified\n", at.Unix(), at.Nanosecond())
	assert.Equal(t, want, out, errs)
	_, errs = wireshark(t, "-i", "hhfr", "-o", "extcap.hhfr.file:/nowhere.pcap")
	assert.Contains(t, errs, "hhfr: error: open /nowhere.pcap")
}

// hostile is a message whose writer wants to say something to the terminal of who looks at it.
const hostile = "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>" +
	"<a\x1b[31m b=\"\x1b]0;x\x07\">\x1b[2J</a\x1b[31m></s:Body></s:Envelope>"

// TestInteropExtcapOfAnInterface: messages are there as they pass, until the reader has enough.
// What a terminal would obey is escaped.
func TestInteropExtcapOfAnInterface(t *testing.T) {
	source, err := live.Open("lo", func() bool { return true })
	if err != nil {
		t.Skip("no capture here: ", err)
	}
	require.NoError(t, source.Close())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write([]byte(hostile))
	}))
	defer server.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	program := exec.CommandContext(t.Context(), extcap(t), "--capture", "--extcap-interface", "hhfr", "--fifo", fifo,
		"--from", "lo", "--port="+port, "--filter", "reply")
	require.NoError(t, program.Start())
	in, err := os.Open(fifo)
	require.NoError(t, err)
	r, err := pcap.NewReader(bufio.NewReader(in))
	require.NoError(t, err, "it begins before there is a message")
	resp, err := http.Post(server.URL, "text/xml", strings.NewReader(entryMessage(1)))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	p, err := r.Next()
	require.NoError(t, err)
	assert.True(t, bytes.HasSuffix(p.Data, []byte(hostile)))
	require.NoError(t, program.Process.Signal(syscall.SIGTERM))
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
	_ = program.Wait() // it was interrupted
	require.NoError(t, in.Close())

	kept := filepath.Join(t.TempDir(), "hostile.pcapng")
	require.NoError(t, os.WriteFile(kept, pcap.AppendPacket(pcap.AppendHead(nil, "hhfr", "hhfr", p.Link), p), 0o600))
	for _, form := range [][]string{{}, {"-V"}, {"-T", "fields", "-e", "xml.tag", "-e", "frame.comment"}} {
		out, errs := wireshark(t, append([]string{"-r", kept}, form...)...)
		assert.NotEmpty(t, out, errs)
		assert.NotContains(t, out, "\x1b")
		assert.NotContains(t, out, "\x07")
	}
}
