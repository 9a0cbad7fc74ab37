package shared

import (
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// Ports below those that systems give to connections and to listeners on port 0: only a listener
// that asks for one gets it.
const firstPort, lastPort = 10_000, 30_000

// given has the ports that this process has handed out, each with what tells that to others: tests
// of several packages run at once.
var given sync.Map

// Addr returns a TCP address on loopback where nobody listens, and which nobody else takes: for a
// server that ends and is restarted there, or for none at all. A port that was given to a listener
// and closed is not suitable: the next connection of any process may get it, even one to that very
// port.
func Addr(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if !take(tb, port) {
			continue
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", addr)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
		return addr
	}
	tb.Fatal("no free port")
	return ""
}

// take takes a port among the processes of this machine, as long as this one runs.
func take(tb testing.TB, port int) bool {
	if runtime.GOOS != "linux" { // there are no names without files elsewhere
		_, taken := given.LoadOrStore(port, true)
		return !taken
	}
	mark, err := new(net.ListenConfig).Listen(tb.Context(), "unix", fmt.Sprintf("@hhfr-test-port-%d", port))
	if err != nil {
		return false
	}
	given.Store(port, mark)
	return true
}
