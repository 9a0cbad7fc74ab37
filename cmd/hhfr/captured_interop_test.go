//go:build interop

package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/live"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/workload"
)

// capturedByDumpcap returns a capture of what passes from and to an address of loopback while run
// goes on.
func capturedByDumpcap(t *testing.T, address string, run func()) (file string) {
	t.Helper()
	source, err := live.Open("lo", func() bool { return true })
	if err != nil {
		t.Skip("no capture here: ", err)
	}
	require.NoError(t, source.Close())
	// To a file it writes what fills a buffer, to a pipe what came.
	cmd := exec.CommandContext(t.Context(), shared.Program(t, "dumpcap"), "-q", "-P", "-i", "lo", "-f",
		"host "+address, "-w", "-")
	out, errs := new(said), new(said)
	cmd.Stdout, cmd.Stderr = out, errs
	require.NoError(t, cmd.Start())
	probe, err := net.Dial("udp", net.JoinHostPort(address, "9"))
	require.NoError(t, err)
	passes := func(payload string) {
		t.Helper()
		require.Eventually(t, func() bool {
			_, _ = probe.Write([]byte(payload)) // one in two is refused, as nobody is there
			return strings.Contains(out.String(), payload)
		}, time.Minute, 100*time.Millisecond, "%s", errs)
	}
	passes("the first packet")
	run()
	passes("the last packet")
	require.NoError(t, probe.Close())
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Wait(), errs)
	assert.Contains(t, errs.String(), "/0 (pcap:0/dumpcap:0/", "dumpcap dropped packets")
	file = filepath.Join(t.TempDir(), "lo.pcap")
	require.NoError(t, os.WriteFile(file, []byte(out.String()), 0o600))
	return file
}

// lessPackets copies a capture without some packets, one in a hundred.
func lessPackets(t *testing.T, file string, seed uint64) (copied string, removed int) {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	r, err := pcapgo.NewReader(in)
	require.NoError(t, err)
	copied = filepath.Join(t.TempDir(), "less.pcap")
	out, err := os.Create(copied)
	require.NoError(t, err)
	w := pcapgo.NewWriter(out)
	require.NoError(t, w.WriteFileHeader(r.Snaplen(), r.LinkType()))
	rnd := rand.New(rand.NewPCG(seed, 0))
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			require.NoError(t, out.Close())
			return copied, removed
		}
		require.NoError(t, err)
		if rnd.IntN(100) == 0 {
			removed++
			continue
		}
		require.NoError(t, w.WritePacket(info, data))
	}
}

// envelopesIn are the envelopes that decode saves of a capture, but those of negotiations, and how
// often each is there.
func envelopesIn(t *testing.T, capture string, args ...string) (count map[string]int, n int) {
	t.Helper()
	dir := t.TempDir()
	_, _, stderr := do(t, append([]string{"decode", capture, "--save-dir", dir, "-q"}, args...)...)
	count = map[string]int{}
	names, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	require.NoError(t, err)
	require.NotEmpty(t, names, stderr)
	for _, name := range names {
		if envelope := string(shared.Read(t, name)); !strings.Contains(envelope, "urn:hhfr:negotiation:1") {
			count[envelope]++
			n++
		}
	}
	return count, n
}

// TestInteropCapturedOnLoopback: what another program captures on loopback while stream, serve and
// proxy run is decoded to the envelopes that were sent, over each transport, in TLS by its keys.
// Without one packet in a hundred no other envelope appears, and the share that does is logged.
func TestInteropCapturedOnLoopback(t *testing.T) {
	messages := workload.Mixed(60)
	sent := map[string]int{}
	files := t.TempDir()
	var paths []string
	for i, m := range messages {
		path := filepath.Join(files, time.Unix(int64(i), 0).UTC().Format("150405")+".xml")
		require.NoError(t, os.WriteFile(path, m, 0o600))
		paths = append(paths, path)
		sent[string(m)] += 2 // and its echo
	}
	store := filepath.Join(t.TempDir(), "store")
	authority, certs := shared.NewAuthority(t), t.TempDir()
	ca := authority.WriteFile(certs, "ca.pem")
	cert, key := shared.WriteCertificate(t, certs, "server", authority.Issue(time.Hour, "127.61.0.3"))
	streamed := func(address string, serve, stream []string) func(t *testing.T) {
		return func(t *testing.T) {
			url, stop := serveHere(t, append([]string{"--listen", address + ":0", "--sync", "4KiB", "--store", store},
				serve...)...)
			args := append([]string{"stream", url, "--sync", "4KiB", "--concurrency", "1"}, stream...)
			code, _, stderr := do(t, append(args, paths...)...)
			require.Zero(t, code, stderr)
			stop()
		}
	}
	for _, tc := range []struct {
		name, address string
		run           func(t *testing.T)
	}{
		{"tcp", "127.61.0.1", streamed("127.61.0.1", nil, []string{"--require-hhfr"})},
		{"explicit", "127.61.0.2", streamed("127.61.0.2", nil, []string{"--mode", "explicit", "--require-hhfr"})},
		{"tls", "127.61.0.3", streamed("127.61.0.3", []string{"--cert", cert, "--key", key},
			[]string{"--cacert", ca, "--require-hhfr"})},
		{"udp", "127.61.0.4", streamed("127.61.0.4", nil, []string{"--transport", "udp"})},
		{"proxy", "127.61.0.6", func(t *testing.T) {
			echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/xml; charset=utf-8")
				body, err := io.ReadAll(r.Body)
				assert.NoError(t, err)
				_, _ = w.Write(body)
			}))
			defer echo.Close()
			far := startProxyProcess(t, "127.61.0.6:0", echo.URL, "--sync", "4KiB", "--store", store)
			near := startProxyProcess(t, "127.0.0.1:0", far.url("/"), "--sync", "4KiB", "--store", "mem:")
			for _, m := range messages {
				resp, err := http.Post(near.url("/"), "text/xml; charset=utf-8", strings.NewReader(string(m)))
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, string(m), string(got))
			}
			near.end()
			far.end()
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			keys := filepath.Join(t.TempDir(), "keys")
			require.NoError(t, os.WriteFile(keys, nil, 0o600))
			t.Setenv("SSLKEYLOGFILE", keys)
			capture := capturedByDumpcap(t, tc.address, func() { tc.run(t) })
			t.Setenv("SSLKEYLOGFILE", "")
			got, _ := envelopesIn(t, capture, "--keylog", keys, "--store", store)
			for envelope := range got {
				require.Contains(t, sent, envelope)
			}
			for envelope, n := range sent {
				require.Equal(t, n, got[envelope], "%.200s", envelope)
			}
			for seed := range uint64(5) {
				less, removed := lessPackets(t, capture, seed)
				got, n := envelopesIn(t, less, "--keylog", keys, "--store", store)
				for envelope, n := range got {
					require.LessOrEqual(t, n, sent[envelope], "%.200s", envelope)
				}
				share := float64(n) / float64(2*len(messages))
				t.Logf("%d packets less: %.0f %% of the messages", removed, 100*share)
				assert.GreaterOrEqual(t, share, 0.5)
			}
		})
	}
}
