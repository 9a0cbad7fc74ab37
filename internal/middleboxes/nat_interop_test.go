//go:build interop && linux

package middleboxes_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// network is a client's and a server's network namespace, with a router between them that hides the
// client's address.
type network struct{ client, router, server string }

const (
	serverIP = "10.77.2.2"
	userTime = 18 // TCP_USER_TIMEOUT of linux/tcp.h
)

// newNetwork creates one whose router does this with packets of unknown connections. If the machine
// does not allow it, the test is skipped.
func newNetwork(t *testing.T, unknown string) *network {
	t.Helper()
	ip := shared.Program(t, "ip")
	shared.Program(t, "conntrack")
	name := fmt.Sprintf("hhfr%d", os.Getpid())
	n := &network{name + "c", name + "r", name + "s"}
	for _, ns := range []string{n.client, n.router, n.server} {
		if out, err := exec.CommandContext(t.Context(), ip, "netns", "add", ns).CombinedOutput(); err != nil {
			t.Skipf("no network namespaces here: %s", out)
		}
		t.Cleanup(func() { _ = exec.CommandContext(context.Background(), ip, "netns", "del", ns).Run() })
	}
	n.do(t, "ip", "link", "add", "c0", "netns", n.client, "type", "veth", "peer", "name", "rc", "netns", n.router)
	n.do(t, "ip", "link", "add", "s0", "netns", n.server, "type", "veth", "peer", "name", "rs", "netns", n.router)
	for _, l := range []struct{ ns, link, address string }{
		{n.client, "c0", "10.77.1.2/24"}, {n.router, "rc", "10.77.1.1/24"}, {n.router, "rs", "10.77.2.1/24"},
		{n.server, "s0", serverIP + "/24"},
	} {
		n.do(t, "ip", "-n", l.ns, "address", "add", l.address, "dev", l.link)
		n.do(t, "ip", "-n", l.ns, "link", "set", l.link, "up")
	}
	n.do(t, "ip", "-n", n.client, "route", "add", "default", "via", "10.77.1.1")
	n.route(t, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.netfilter.nf_conntrack_tcp_loose=0")
	rules := write(t, "rules", `table ip t {
	chain out { type nat hook postrouting priority 100; oifname "rs" masquerade; }
	chain through { type filter hook forward priority 0; ct state invalid `+unknown+`; }
}
`)
	n.route(t, shared.Program(t, "nft"), "-f", rules)
	return n
}

func (n *network) do(t *testing.T, program string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", program, strings.Join(args, " "), out)
}

func (n *network) route(t *testing.T, args ...string) {
	t.Helper()
	n.do(t, "ip", append([]string{"netns", "exec", n.router}, args...)...)
}

// forget makes the router forget all connections.
func (n *network) forget(t *testing.T) {
	t.Helper()
	n.route(t, "conntrack", "-F")
}

// within opens sockets in a namespace.
func within(ns string, open func() error) error {
	errs := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends, with its namespace
		f, err := os.Open("/run/netns/" + ns)
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		if err == nil {
			err = open()
		}
		errs <- err
	}()
	return <-errs
}

// inside opens connections in a namespace, which end if nothing is acknowledged for a second.
type inside struct{ ns string }

func (i inside) Dial(ctx context.Context, addr string) (conn net.Conn, err error) {
	d := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTime, 1000) })
	}}
	err = within(i.ns, func() error {
		conn, err = d.DialContext(ctx, "tcp", addr)
		return err
	})
	return conn, err
}

func (i inside) Listen(ctx context.Context, addr string) (l net.Listener, err error) {
	err = within(i.ns, func() error {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", addr)
		return err
	})
	return l, err
}

// newClient is a client behind the router.
func (n *network) newClient(t *testing.T, mode negotiate.Mode) *client {
	t.Helper()
	own := inside{n.client}
	c := newClient(t, mode, &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		return own.Dial(ctx, addr)
	}})
	c.cfg.Transports = map[string]streamer.Transport{"tcp": own}
	return c
}

// start starts a server in its namespace.
func (n *network) start(t *testing.T, change func(*responder.Config)) *origin {
	t.Helper()
	l, err := inside{n.server}.Listen(t.Context(), serverIP+":0")
	require.NoError(t, err)
	return serve(t, l, nil, change)
}

// natForgets: a router that has forgotten the connection drops its packets, or resets it. The
// session continues; if the router was silent, the call that detected it has an unknown fate.
func natForgets(t *testing.T) {
	for name, unknown := range map[string]string{"silent": "drop", "reset": "reject with tcp reset"} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, unknown)
			for _, mode := range []negotiate.Mode{negotiate.Explicit, negotiate.Auto} {
				o := n.start(t, nil)
				c := n.newClient(t, mode)
				s := c.dial(t, "http://"+o.addr+"/soap")
				c.say(t, s)
				require.True(t, s.Agreed().HHFR, s.Agreed().Why)
				for range 2 {
					n.forget(t)
					_, err := exchange(t, s, nil, c.text())
					require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
					c.say(t, s)
					require.True(t, s.Agreed().HHFR, s.Agreed().Why)
				}
				o.neverTwice(t)
			}
		})
	}
}

// natForgetsUnderAGuarantee: no fate is unknown, and each call arrives.
func natForgetsUnderAGuarantee(t *testing.T) {
	n := newNetwork(t, "drop")
	o := n.start(t, nil)
	c := n.newClient(t, negotiate.Auto)
	c.cfg.Assurance = wsrm.AtLeastOnce
	s := c.dial(t, "http://"+o.addr+"/soap")
	for range 3 {
		c.say(t, s)
		n.forget(t)
		c.say(t, s)
	}
	o.once(t, 6)
}

// closedPort: a firewall that drops everything except the port of HTTP, and a server with streams
// at another one.
func closedPort(t *testing.T) {
	n := newNetwork(t, "drop")
	l, err := inside{n.server}.Listen(t.Context(), serverIP+":0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	n.route(t, "nft", "add", "rule", "ip", "t", "through", "tcp", "dport", port, "drop")
	o := n.start(t, func(c *responder.Config) { c.Addresses["tcp"] = ":" + port })
	c := n.newClient(t, negotiate.Explicit)
	c.cfg.Timeout, c.cfg.Reconnect = time.Second, 0
	plainAlways(t, o, c, "http://"+o.addr+"/soap", "no stream to "+serverIP)
	c = n.newClient(t, negotiate.Auto)
	s := c.dial(t, "http://"+o.addr+"/soap")
	c.say(t, s)
	streams(t, s, "upgrade")
	c.bothWays(t, s)
	c.log.silent(t)
}

// neverTwice checks that no call arrived more than once.
func (o *origin) neverTwice(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for body, count := range o.calls {
		assert.Equal(t, 1, count, body)
	}
}
