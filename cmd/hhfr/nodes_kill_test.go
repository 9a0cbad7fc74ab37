package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// nodesRun is a run of hhfr stream to the ledger of several nodes that share a store, exactly once
// and in order, while processes are killed and restarted in turn.
type nodesRun struct {
	store    string // of the nodes
	nodes    int
	messages int
	strikes  int
	// strike kills the process whose turn it is, if it is no node, and returns what restarts it.
	strike func(turn int) (restart func())
}

// stalls are the longest times without a reply after a death.
type stalls struct{ node, other time.Duration }

func (r nodesRun) run(t *testing.T) (worst stalls) {
	dir := t.TempDir()
	var all bytes.Buffer
	for n := 1; n <= r.messages; n++ {
		all.WriteString(entryMessage(n))
		all.WriteByte('\n')
	}
	nodes := make([]*mortalServer, r.nodes)
	args := []string{"stream"}
	for i := range nodes {
		nodes[i] = startMortal(t, shared.Addr(t), shared.Addr(t), r.store)
		if url := "http://" + nodes[i].http + "/ledger"; i == 0 {
			args = append(args, url, "-")
		} else {
			args = append(args, "--node", url)
		}
	}
	args = append(args, "--assurance", "exactly-once", "--ordered", "--store", "bolt:"+filepath.Join(dir, "client.db"),
		"--reconnect", "2m", "--concurrency", strconv.Itoa(concurrency))
	client := exec.CommandContext(t.Context(), "hhfr", args...)
	var errs bytes.Buffer
	client.Stdin, client.Stderr = &all, &errs
	out, err := client.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, client.Start())
	lines := bufio.NewScanner(out)
	replies, last := 0, time.Now()
	died := &worst.other
	next := func() bool {
		more := lines.Scan()
		if gap := time.Since(last); died != nil {
			*died = max(*died, gap)
		}
		last = time.Now()
		replies++
		return more
	}
	restart := func() {}
	for strike := range r.strikes {
		for replies < r.messages*(strike+1)/(r.strikes+1) && next() {
		}
		restart()
		restart, died = nil, &worst.other
		if r.strike != nil {
			restart = r.strike(strike)
		}
		if restart == nil {
			node := nodes[strike%r.nodes]
			node.kill()
			died = &worst.node
			restart = func() {
				nodes[strike%r.nodes] = startMortal(t, node.http, node.stream, r.store)
			}
		}
		last = time.Now()
	}
	for next() {
	}
	restart()
	require.NoError(t, client.Wait(), "%s", &errs)
	if log := os.Getenv("HHFR_NODES_LOG"); log != "" {
		require.NoError(t, os.WriteFile(log, errs.Bytes(), 0o600))
	}
	(&ledgerWorld{ledgerRun: ledgerRun{messages: r.messages}, t: t, server: nodes[0]}).check()
	return worst
}

// Nodes on one context service are killed in turn, and the client goes on with the next: each
// message is in the ledger once, in order. The long form is TestSoakNodes.
func TestNodesOverKills(t *testing.T) {
	t.Parallel()
	service := exec.CommandContext(t.Context(), "hhfr", "context", "serve", "--listen", shared.Addr(t),
		"--store", "bolt:"+filepath.Join(t.TempDir(), "shared.db"))
	out, err := service.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, service.Start())
	t.Cleanup(func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url := line[strings.Index(line, "http://"):]
	url = strings.Fields(url)[0]
	worst := nodesRun{store: url, nodes: 2, messages: 300, strikes: 4}.run(t)
	assert.Positive(t, worst.node)
	t.Logf("longest time without a reply after a node's death: %v", worst.node)
}
