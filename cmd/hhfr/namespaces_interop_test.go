//go:build interop && linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hhfr/hhfr/internal/bench"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/shared"
)

// namespacePair is two network namespaces, each with an interface that this process reads and
// writes (TUN), and a shaper of the kernel (tbf) before that. What leaves one arrives in the other.
type namespacePair struct {
	t     *testing.T
	names [2]string
	tuns  [2]*os.File
	wait  sync.WaitGroup
}

// address is that of an end.
func (p *namespacePair) address(end int) string { return fmt.Sprintf("10.79.0.%d", end+1) }

// newNamespacePair skips the test by its name where this is not possible, as without root.
func newNamespacePair(t *testing.T, profile link.Profile, serial bool) *namespacePair {
	t.Helper()
	ip, tc := shared.Program(t, "ip"), shared.Program(t, "tc")
	p := &namespacePair{t: t}
	for end := range p.names {
		p.names[end] = fmt.Sprintf("hhfrn%d-%d-%t", os.Getpid(), end, serial)
		if out, err := exec.CommandContext(t.Context(), ip, "netns", "add", p.names[end]).CombinedOutput(); err != nil {
			t.Skipf("no network namespaces here: %s", out)
		}
		t.Cleanup(func() { _ = exec.CommandContext(context.Background(), ip, "netns", "del", p.names[end]).Run() })
		name := fmt.Sprintf("hhfrt%d%.1t", end, serial)
		tun, err := openTUN(name)
		if err != nil {
			t.Skipf("no TUN interfaces here: %v", err)
		}
		p.tuns[end] = tun
		for _, args := range []string{
			ip + " link set " + name + " netns " + p.names[end],
			fmt.Sprintf("%s -n %s address add %s/24 dev %s", ip, p.names[end], p.address(end), name),
			ip + " -n " + p.names[end] + " link set " + name + " up",
			ip + " -n " + p.names[end] + " link set lo up",
			fmt.Sprintf("%s -n %s qdisc add dev %s root tbf rate %dbit burst 1540 limit 200000", tc, p.names[end], name,
				profile.Bandwidth),
		} {
			words := strings.Fields(args)
			out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
			require.NoError(t, err, "%s: %s", args, out)
		}
	}
	for end := range p.tuns {
		p.wait.Go(func() { relayPackets(p.tuns[end], p.tuns[1-end], profile, serial) })
	}
	t.Cleanup(func() {
		for _, tun := range p.tuns {
			_ = tun.Close()
		}
		p.wait.Wait()
	})
	return p
}

func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// relayPackets delays packets by half a round trip. A serial line sends one after the other, each
// for as long as its bytes take; tbf lets 1,540 bytes pass at once after a silence.
func relayPackets(from, to *os.File, profile link.Profile, serial bool) {
	type delayed struct {
		packet []byte
		at     time.Time
	}
	queue := make(chan delayed, 1<<14)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer close(queue)
	wait.Go(func() {
		for d := range queue {
			time.Sleep(time.Until(d.at))
			_, _ = to.Write(d.packet)
		}
	})
	var free time.Time
	for buf := make([]byte, 1<<16); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		now := time.Now()
		if free.Before(now) || !serial {
			free = now
		}
		if serial {
			free = free.Add(time.Duration(n) * 8 * time.Second / time.Duration(profile.Bandwidth))
		}
		queue <- delayed{bytes.Clone(buf[:n]), free.Add(profile.RTT / 2)}
	}
}

// run runs hhfr at an end, and returns what it prints.
func (p *namespacePair) run(end int, args ...string) []byte {
	p.t.Helper()
	c := p.command(end, args...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	require.NoError(p.t, err, "%v: %s", args, &errs)
	return out
}

func (p *namespacePair) command(end int, args ...string) *exec.Cmd {
	return exec.CommandContext(p.t.Context(), "ip", append([]string{"netns", "exec", p.names[end], "hhfr"}, args...)...)
}

// sessionTimes are the times of a run of bench session, in ms, by what was measured: the least of
// the repeats, as other work only adds.
func sessionTimes(t *testing.T, printed []byte) map[string]float64 {
	t.Helper()
	var r struct{ Report bench.Results }
	require.NoError(t, json.Unmarshal(printed, &r), "%s", printed)
	times := map[string]float64{}
	for _, c := range r.Report.Cells {
		name := fmt.Sprintf("%s, n = %d", c.Way, c.N)
		if ms, seen := times[name]; !seen || c.Millis < ms {
			times[name] = c.Millis
		}
	}
	return times
}

// TestInteropNamespaces: two processes in two namespaces, with the TCP of the kernel, take what the
// emulated link says, within 5 %: over a shaper of the kernel and a serial line. Over the shaper
// alone sessions take less, as it lets what follows a silence pass at once; how much is logged.
func TestInteropNamespaces(t *testing.T) {
	const profile = "gprs"
	parsed, err := link.ParseProfile(profile)
	require.NoError(t, err)
	what := []string{"--service", "sum", "--sizes", "10", "--n", "1,8", "--ways",
		"first-call-queued,met,met-queued,soap-new,soap-kept,h2c-queued"}
	code, printed, stderr := do(t, append([]string{"bench", "session", "--link", profile, "--repeat", "3",
		"-o", "json"}, what...)...)
	require.Contains(t, []int{0, 1}, code, stderr)
	require.NotEmpty(t, printed, stderr)
	emulated := sessionTimes(t, []byte(printed))
	for _, serial := range []bool{true, false} {
		t.Run(map[bool]string{true: "serial", false: "tbf"}[serial], func(t *testing.T) {
			t.Parallel()
			p := newNamespacePair(t, parsed, serial)
			told := filepath.Join(t.TempDir(), "serve.json")
			out, err := os.Create(told)
			require.NoError(t, err)
			defer out.Close()
			server := p.command(1, "serve", "--listen", p.address(1)+":8080", "-o", "json")
			server.Stdout = out
			require.NoError(t, server.Start())
			defer func() {
				_ = server.Process.Signal(os.Interrupt)
				_ = server.Wait()
			}()
			require.Eventually(t, func() bool {
				b, err := os.ReadFile(told)
				return err == nil && bytes.HasSuffix(b, []byte("\n"))
			}, time.Minute, 10*time.Millisecond)
			args := append([]string{"bench", "session", "http://" + p.address(1) + ":8080", "--repeat", "2",
				"-o", "json"}, what...)
			if dir := os.Getenv("RESULTS_DIR"); dir != "" {
				args = append(args, "--save", filepath.Join(dir, filepath.Base(t.Name())+".jsonl"))
			}
			worst, worstHTTP2 := 0.0, 0.0
			for name, ms := range sessionTimes(t, p.run(0, args...)) {
				off := (ms - emulated[name]) / emulated[name]
				t.Logf("%-30s emulated %8.0f ms, in namespaces %8.0f ms: %+.1f %%", name, emulated[name], ms, 100*off)
				if strings.HasPrefix(name, "h2c") {
					worstHTTP2 = max(worstHTTP2, math.Abs(off))
				} else {
					worst = max(worst, math.Abs(off))
				}
			}
			if serial {
				assert.LessOrEqual(t, worst, 0.05)
				assert.LessOrEqual(t, worstHTTP2, 0.15, "docs/benchmarks.md")
			}
		})
	}
}
