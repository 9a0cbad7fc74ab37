package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// bothKills sends batches exactly once while server and client are killed and restarted on their
// stores, over and over, from the first millisecond of each process on.
type bothKills struct {
	stores func(t *testing.T) (server, client string)
	flags  []string
	kills  int // of both together
	seed   uint64
}

// killFigures count what happened. A run is given up that ends without having sent its batch,
// though nobody killed it.
type killFigures struct{ server, client, batches, messages, missing, doubled, givenUp int }

// soon is a time at random, often of a few milliseconds, up to a second.
func soon(rnd *rand.Rand) time.Duration {
	return time.Duration(rnd.Int64N(int64([]time.Duration{3, 30, 100, 300, 1000}[rnd.IntN(5)] * time.Millisecond)))
}

// killServers runs a server again and again, until stop is closed; the last one goes on. It counts
// those that it killed.
func (k bothKills) killServers(t *testing.T, args []string, stop <-chan struct{}, killed *atomic.Int64) {
	rnd := rand.New(rand.NewPCG(k.seed, 1))
	for {
		var errs bytes.Buffer
		c := exec.CommandContext(t.Context(), "hhfr", args...)
		c.Stderr = &errs
		if !assert.NoError(t, c.Start()) {
			return
		}
		select {
		case <-time.After(soon(rnd)):
			_ = c.Process.Kill()
			_ = c.Wait()
			if c.ProcessState.ExitCode() < 0 {
				killed.Add(1)
			} else {
				t.Logf("seed %d: a server ended by itself: %s", k.seed, &errs)
			}
		case <-stop:
			t.Cleanup(func() {
				_ = c.Process.Kill()
				_ = c.Wait()
			})
			return
		}
	}
}

func (k bothKills) run(t *testing.T) (f killFigures) {
	server, client := k.stores(t)
	stream := shared.Addr(t)
	w := &resumeWorld{t: t, dir: t.TempDir(), server: &mortalServer{http: shared.Addr(t)}}
	w.server.url = "http://" + w.server.http + "/echo"
	w.flags = append([]string{"-", "--assurance", "exactly-once", "--resume", "--store", client, "--reconnect", "2m",
		"-q"}, k.flags...)
	stop := make(chan struct{})
	var servers sync.WaitGroup
	var killed atomic.Int64
	servers.Go(func() {
		k.killServers(t, []string{"serve", "--listen", w.server.http, "--tcp", stream, "--udp", stream,
			"--store", server, "-q"}, stop, &killed)
	})
	rnd := rand.New(rand.NewPCG(k.seed, 0))
	want := map[string]int{}
	for began := time.Now(); (f.client < k.kills/2 || killed.Load() == 0) && !t.Failed(); f.batches++ {
		var all strings.Builder
		for n := range 1 + rnd.IntN(20) {
			id := fmt.Sprintf("%d-%d", f.batches, n)
			want[id]++
			all.WriteString(addMessage(id))
		}
		for tries := 0; ; tries++ {
			code, stderr := w.strike(rnd, all.String(), tries < 20)
			if code == exit.Done {
				break
			}
			if code < 0 {
				f.client++
			} else {
				f.givenUp++
				t.Logf("seed %d, batch %d, after %v: given up with %d: %s", k.seed, f.batches, time.Since(began), code,
					stderr)
			}
			require.Less(t, tries, 1000, "seed %d, batch %d: %s", k.seed, f.batches, stderr)
		}
	}
	close(stop)
	servers.Wait()
	f.server = int(killed.Load())
	got := w.entriesOnceServed()
	for id, n := range want {
		f.messages++
		f.missing += max(n-got[id], 0)
		f.doubled += max(got[id]-n, 0)
	}
	assert.Len(t, got, len(want))
	return f
}

// strike is a run that may be killed; its exit code is negative then.
func (w *resumeWorld) strike(rnd *rand.Rand, input string, strikes bool) (code int, stderr string) {
	c := w.command("--concurrency", fmt.Sprint(1+rnd.IntN(8)))
	var errs bytes.Buffer
	c.Stdin, c.Stderr = strings.NewReader(input), &errs
	require.NoError(w.t, c.Start())
	if after := soon(rnd); strikes && rnd.IntN(4) > 0 {
		kill := time.AfterFunc(after, func() { _ = c.Process.Kill() })
		defer kill.Stop()
	}
	_ = c.Wait()
	return c.ProcessState.ExitCode(), errs.String()
}

// entriesOnceServed are the ledger's entries, as soon as the server takes connections.
func (w *resumeWorld) entriesOnceServed() map[string]int {
	host, port := splitAddr(w.t, w.server.http)
	(&natsOptions{Host: host, Port: port}).listens(w.t)
	return w.entries()
}

// storesToKill are the stores of server and client, by their engine. The server's NATS is not
// killed.
var storesToKill = map[string]func(t *testing.T) (server, client string){
	"bolt": func(t *testing.T) (string, string) {
		dir := t.TempDir()
		return "bolt:" + filepath.Join(dir, "server.db"), "bolt:" + filepath.Join(dir, "client.db")
	},
	"folder": func(t *testing.T) (string, string) { return t.TempDir(), t.TempDir() },
	"nats":   func(t *testing.T) (string, string) { return oneNATS(t), t.TempDir() },
}

// Server and client are killed at any moment, and restarted: nothing is missing, nothing is there
// twice, and no run ends before its time to reconnect is over. The long form is TestSoakBothKilled.
func TestBothKilled(t *testing.T) {
	for name, stores := range storesToKill {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := bothKills{stores: stores, kills: 10, seed: uint64(time.Now().UnixNano())}.run(t)
			assert.Zero(t, f.missing+f.doubled+f.givenUp)
			assert.Positive(t, f.server)
			t.Logf("%+v", f)
		})
	}
}
