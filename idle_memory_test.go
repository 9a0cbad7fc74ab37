package hhfr_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/frame"
)

// What an idle session may keep at a server, with the connections of both ends, in bytes of the
// heap and in objects: a little more than it does. It kept 8,980 in 77, and 7,440 before its
// first reply went as text, which windows remember.
const (
	idleHeap    = 7900
	idleObjects = 73
)

// Sessions that begin with the upgrade of a request keep little memory, once they are idle.
func TestIdleSessionsTakeLittleMemory(t *testing.T) {
	const first, sessions = 8, 480 // a server takes 512 from one address
	addr := start(t, &hhfr.Server{Handler: echo, Store: newStore(t)})
	begin := func() net.Conn {
		conn, err := openRaw(t, addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	conns := make([]net.Conn, 0, first+sessions)
	for range first { // what all of them share is there then
		conns = append(conns, begin())
	}
	heap, objects := inUse()
	for range 10 { // what only began is not in use any more after a while
		time.Sleep(50 * time.Millisecond)
		a, b := inUse()
		heap, objects = min(heap, a), min(objects, b)
	}
	for range sessions {
		conns = append(conns, begin())
	}
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		octets, n := inUse()
		assert.Less(c, (octets-heap)/sessions, int64(idleHeap), "bytes")
		assert.Less(c, (n-objects)/sessions, int64(idleObjects), "objects")
	}, 20*time.Second, 100*time.Millisecond)
	runtime.KeepAlive(conns)
}

// inUse is how many bytes of the heap are in use, and in how many objects.
func inUse() (octets, objects int64) {
	runtime.GC()
	runtime.GC() // pools, and what is held weakly
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.HeapObjects)
}

// openRaw has a request upgraded and answers the hello of the server. It keeps nothing but the
// connection.
func openRaw(t *testing.T, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	body := "<Envelope xmlns='http://schemas.xmlsoap.org/soap/envelope/'><Body><m>" +
		strings.Repeat("<v>1.25</v>", 20) + "</m></Body></Envelope>"
	_, err = fmt.Fprintf(conn, "POST /echo HTTP/1.1\r\nHost: %s\r\nHHFR: 1\r\n"+
		"Connection: Upgrade\r\nUpgrade: hhfr/1\r\nContent-Type: text/xml; charset=utf-8\r\n"+
		"Content-Length: %d\r\n\r\n%s", addr, len(body), body)
	if err != nil {
		return nil, err
	}
	var got []byte
	for {
		b := make([]byte, 1024)
		n, err := conn.Read(b)
		got = append(got, b[:n]...)
		head, rest, whole := bytes.Cut(got, []byte("\r\n\r\n"))
		if whole && !bytes.HasPrefix(head, fmt.Appendf(nil, "HTTP/1.1 %d ", http.StatusSwitchingProtocols)) {
			return nil, fmt.Errorf("%q", got)
		}
		if f, n, _ := frame.Parse(rest, 0, 0); whole && n > 0 {
			hello := f.(frame.Hello)
			own := frame.Hello{Session: hello.Session, Representation: hello.Representation, Stages: hello.Stages,
				Limits: hello.Limits}
			_, err := conn.Write(own.AppendTo(nil))
			return conn, err
		}
		if err != nil {
			return nil, err
		}
	}
}
