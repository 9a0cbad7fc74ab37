package proxy_test

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// descriptors counts the open files of this process; 0 if the system does not report them.
func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

// TestProbesLeaveNothing: clients that leave without a byte, as health checks do, take nothing from
// a pair whose lanes have been used: far more of them than the maximum of connections come and go,
// calls are served meanwhile and afterwards, and nothing of them stays.
func TestProbesLeaveNothing(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	near, _ := pair(t, o.url(), func(c *settings) { c.MaxConns = 64 })
	call := func() {
		t.Helper()
		c := connect(t, near.url())
		c.say(post("", envelope))
		c.hear(envelope)
		require.NoError(t, c.CloseWrite())
		assert.Empty(t, c.rest())
		require.NoError(t, c.Close())
	}
	for range 3 {
		call()
	}
	kept := connect(t, near.url())
	kept.say(post("", envelope))
	kept.hear(envelope)

	goroutines, files := runtime.NumGoroutine(), descriptors()
	for i := range 3000 {
		c := connect(t, near.url())
		if i%2 == 0 { // it has ended its direction, and waits
			require.NoError(t, c.CloseWrite())
			require.Empty(t, c.rest())
		}
		require.NoError(t, c.Close())
		if i%300 == 0 {
			kept.say(post("", envelope))
			kept.hear(envelope)
			call()
		}
	}
	call()
	assert.Eventually(t, func() bool {
		return runtime.NumGoroutine() <= goroutines+1 // one makes offers
	}, patience, 10*time.Millisecond, "goroutines")
	assert.Eventually(t, func() bool { return descriptors() <= files }, patience, 10*time.Millisecond, "descriptors")
	assert.Len(t, o.received(), 3+1+10+1, "the server has seen none of them")
}

// TestHalfClosedClientIsClosed: the proxy waits for a client that has called, and left, no longer
// than for any other idle client, even if the server does not close.
func TestHalfClosedClientIsClosed(t *testing.T) {
	hold := make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		if h, err := r.head(); err == nil {
			_, entity, _ := r.body(&h)
			_, _ = c.Write(echoReply(&h, entity))
		}
		<-hold
	})
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	passes := newSudden()
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) { c.Idle, c.Clock = ages, passes })
	c := connect(t, near.url())
	c.say(post("", envelope))
	c.hear(envelope)
	require.NoError(t, c.CloseWrite())
	passes.end()
	assert.Empty(t, c.rest())
	close(hold)
}
