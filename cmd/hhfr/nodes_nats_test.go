//go:build soak || interop

package main

import (
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/shared"
)

// natsCluster is three NATS servers, processes of their own.
type natsCluster struct {
	t       *testing.T
	options [3]natsOptions
	running [3]*exec.Cmd
}

func startNATS(t *testing.T) *natsCluster {
	c := &natsCluster{t: t}
	dir := t.TempDir()
	var routes []string
	for i := range c.options {
		host, port := splitAddr(t, shared.Addr(t))
		_, cluster := splitAddr(t, shared.Addr(t))
		c.options[i] = natsOptions{
			Name: "n" + strconv.Itoa(i), Host: host, Port: port, ClusterPort: cluster,
			Dir: filepath.Join(dir, strconv.Itoa(i)),
		}
		routes = append(routes, "nats://"+net.JoinHostPort(host, strconv.Itoa(cluster)))
	}
	for i := range c.options {
		c.options[i].Routes = routes
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.running {
			c.kill(i)
		}
	})
	for i := range c.options {
		c.options[i].listens(t)
	}
	return c
}

func (c *natsCluster) start(i int) { c.running[i] = c.options[i].start(c.t) }

// kill sends SIGKILL, and waits until the process is gone.
func (c *natsCluster) kill(i int) {
	_ = c.running[i].Process.Kill()
	_ = c.running[i].Wait()
}

// store is the name of a bucket on all servers.
func (c *natsCluster) store() string {
	var hosts []string
	for _, o := range c.options {
		hosts = append(hosts, net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
	}
	u := url.URL{Scheme: "nats", Host: strings.Join(hosts, ","), Path: "/contexts", RawQuery: "replicas=3"}
	return u.String()
}

// run sends messages to three nodes; nodes and servers are killed in turn, one at a time.
func (c *natsCluster) run(messages, strikes int) stalls {
	return nodesRun{
		store: c.store(), nodes: 3, messages: messages, strikes: strikes,
		strike: func(turn int) func() {
			if turn%2 == 0 {
				return nil // a node
			}
			i := turn / 2 % len(c.running)
			c.kill(i)
			return func() { c.start(i) }
		},
	}.run(c.t)
}

// Real processes: three NATS servers, three nodes.
func TestInteropNodes(t *testing.T) {
	worst := startNATS(t).run(600, 4)
	t.Logf("longest time without a reply: after a node's death %v, after that of a server %v", worst.node, worst.other)
}

// TestSoakNodes: 50 000 messages exactly once through three nodes on three NATS servers, killed and
// restarted in turn, at most one server at a time: none is lost, none twice, in order. After a
// node's death the client goes on within 3 s, after a server's within 12 s.
func TestSoakNodes(t *testing.T) {
	began := time.Now()
	worst := startNATS(t).run(50_000, 24)
	t.Logf("50000 messages, 24 kills, %v; longest time without a reply: after a node's death %v, after a server's %v",
		time.Since(began).Round(time.Second), worst.node, worst.other)
	assert.LessOrEqual(t, worst.node, 3*time.Second)
	assert.LessOrEqual(t, worst.other, 12*time.Second)
}
