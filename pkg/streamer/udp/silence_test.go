package udp_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// counted is a connection over a link that can be cut, and counts the datagrams of both ends.
type counted struct {
	a, b net.Conn
	cut  atomic.Bool
	sent atomic.Int64
	l    net.Listener
}

func count(t *testing.T, profile string) *counted {
	t.Helper()
	c := &counted{}
	c.a, c.b, c.l = connect(t, profile, udp.Config{}, func(near, far net.PacketConn) (net.PacketConn, net.PacketConn) {
		pass := func([]byte) bool {
			c.sent.Add(1)
			return !c.cut.Load()
		}
		return filter{near, pass}, filter{far, pass}
	})
	_, err := c.a.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(c.b, make([]byte, 1))
	require.NoError(t, err)
	time.Sleep(10 * time.Second) // all is acknowledged
	return c
}

func (c *counted) close(t *testing.T) {
	t.Helper()
	require.NoError(t, c.a.Close())
	require.NoError(t, c.b.Close())
	require.NoError(t, c.l.Close())
}

func await(c net.Conn, reply bool) { c.(interface{ Await(bool) }).Await(reply) }

// The peer falls silent for good: how soon that is found out depends on what is awaited of it.
func TestSilentEndIsFoundOut(t *testing.T) {
	write := func(t *testing.T, c net.Conn) {
		_, err := c.Write([]byte("y"))
		require.NoError(t, err)
	}
	for name, test := range map[string]struct {
		accepted        bool // it is the end that accepted that waits
		before, after   func(t *testing.T, c net.Conn)
		soonest, latest time.Duration
	}{
		"a reply is awaited, when the silence begins": {before: func(_ *testing.T, c net.Conn) { await(c, true) },
			soonest: 100 * time.Second, latest: 150 * time.Second},
		"a reply is awaited later": {after: func(_ *testing.T, c net.Conn) { await(c, true) },
			soonest: 115 * time.Second, latest: 150 * time.Second},
		"something is written": {after: write, soonest: 115 * time.Second,
			latest: 150 * time.Second},
		"who accepted writes": {accepted: true, after: write, soonest: 5 * time.Minute,
			latest: 6 * time.Minute},
		"nothing is awaited": {soonest: 9 * time.Minute, latest: 10 * time.Minute},
		"nothing is awaited any more": {before: func(_ *testing.T, c net.Conn) {
			await(c,
				true)
			await(c, false)
		}, soonest: 9 * time.Minute, latest: 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := count(t, "gprs")
				end := c.a
				if test.accepted {
					end = c.b
				}
				if test.before != nil {
					test.before(t, end)
				}
				c.cut.Store(true)
				if test.after != nil {
					test.after(t, end)
				}
				began := time.Now()
				_, err := end.Read(make([]byte, 1))
				assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
				assert.ErrorContains(t, err, "inactive")
				took := time.Since(began)
				assert.GreaterOrEqual(t, took, test.soonest)
				assert.LessOrEqual(t, took, test.latest)
				c.close(t)
			})
		})
	}
}

// What it costs to know that the peer lives, in datagrams of both ends in an hour.
func TestSignsOfLife(t *testing.T) {
	for name, test := range map[string]struct {
		wait         bool
		fewest, most int64
	}{
		"idle":               {fewest: 18, most: 40},
		"a reply is awaited": {wait: true, fewest: 200, most: 260},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := count(t, "gprs")
				await(c.a, test.wait)
				before := c.sent.Load()
				time.Sleep(time.Hour)
				sent := c.sent.Load() - before
				t.Logf("%d datagrams in an hour", sent)
				assert.GreaterOrEqual(t, sent, test.fewest)
				assert.LessOrEqual(t, sent, test.most)
				_, err := c.b.Write([]byte("late"))
				require.NoError(t, err)
				_, err = io.ReadFull(c.a, make([]byte, 4))
				require.NoError(t, err)
				c.close(t)
			})
		})
	}
}

// A link that comes back in time is no dead end, and goes on soon, also late, when what is sent
// again waits longest for its next turn.
func TestOutageWhileAwaiting(t *testing.T) {
	for _, outage := range []time.Duration{20 * time.Second, 65 * time.Second, 100 * time.Second} {
		t.Run(outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := count(t, "14k4")
				await(c.a, true)
				c.cut.Store(true)
				_, err := c.a.Write([]byte("y"))
				require.NoError(t, err)
				began := time.Now()
				time.AfterFunc(outage, func() { c.cut.Store(false) })
				_, err = io.ReadFull(c.b, make([]byte, 1))
				require.NoError(t, err)
				assert.Less(t, time.Since(began), outage+20*time.Second)
				_, err = c.b.Write([]byte("z"))
				require.NoError(t, err)
				_, err = io.ReadFull(c.a, make([]byte, 1))
				require.NoError(t, err)
				c.close(t)
			})
		})
	}
}
