package main

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// natsServer is a NATS server, by its options as JSON: of a cluster, if it has a port for that.
func natsServer() {
	var o natsOptions
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		panic(err)
	}
	opts := &server.Options{
		ServerName: o.Name, Host: o.Host, Port: o.Port, JetStream: true, StoreDir: o.Dir, NoLog: true, NoSigs: true,
	}
	if o.ClusterPort != 0 {
		opts.Cluster = server.ClusterOpts{Name: "test", Host: o.Host, Port: o.ClusterPort}
		opts.Routes = server.RoutesFromStr(strings.Join(o.Routes, ","))
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

// start runs the server as a process of its own.
func (o *natsOptions) start(t *testing.T) *exec.Cmd {
	text, err := json.Marshal(o)
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), "natsserver", string(text))
	c.Stderr = os.Stderr
	require.NoError(t, c.Start())
	return c
}

// listens waits until the server takes connections.
func (o *natsOptions) listens(t *testing.T) {
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort(o.Host, strconv.Itoa(o.Port)))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, time.Minute, 10*time.Millisecond)
}

// oneNATS is the name of a bucket on a NATS server of its own, which ends with the test.
func oneNATS(t *testing.T) string {
	host, port := splitAddr(t, shared.Addr(t))
	o := &natsOptions{Name: "one", Host: host, Port: port, Dir: t.TempDir()}
	c := o.start(t)
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	o.listens(t)
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(port)) + "/contexts"
}

func splitAddr(t *testing.T, addr string) (string, int) {
	host, text, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return host, port
}
