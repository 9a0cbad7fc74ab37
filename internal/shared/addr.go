package shared

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports below those that systems give to connections and to listeners on port 0: nothing but a
// listener that asks for one takes it.
const firstPort, lastPort = 10_000, 30_000

var given sync.Map // ports this process gave away

// Addr gives a TCP address on loopback where nobody listens, and which nobody else takes: for a
// server that ends and is started again there, or for none at all. A port that was given to a
// listener and closed is no such: the next connection of anybody may have it, even one to that very
// port.
func Addr(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if _, taken := given.LoadOrStore(port, true); taken {
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
