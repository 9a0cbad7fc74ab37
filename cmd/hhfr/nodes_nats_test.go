//go:build soak || interop

package main

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

func init() { programs["natsserver"] = natsServer }

// natsServer is a NATS server of a cluster, by its options as JSON.
func natsServer() {
	var o natsOptions
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		panic(err)
	}
	opts := &server.Options{
		ServerName: o.Name, Host: o.Host, Port: o.Port, JetStream: true, StoreDir: o.Dir, NoLog: true, NoSigs: true,
		Cluster: server.ClusterOpts{Name: "test", Host: o.Host, Port: o.ClusterPort},
		Routes:  server.RoutesFromStr(strings.Join(o.Routes, ",")),
	}
	s, err := server.NewServer(opts)
	if err != nil {
		panic(err)
	}
	s.Start()
	s.WaitForShutdown()
}

type natsOptions struct {
	Name, Host, Dir   string
	Port, ClusterPort int
	Routes            []string
}

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
	for _, o := range c.options {
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		}, time.Minute, 10*time.Millisecond)
	}
	return c
}

func splitAddr(t *testing.T, addr string) (string, int) {
	host, text, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return host, port
}

func (c *natsCluster) start(i int) {
	o, err := json.Marshal(c.options[i])
	require.NoError(c.t, err)
	c.running[i] = exec.CommandContext(c.t.Context(), "natsserver", string(o))
	c.running[i].Stderr = os.Stderr
	require.NoError(c.t, c.running[i].Start())
}

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
