package proxy_test

import (
	"bytes"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/pkg/clock"
)

// leap is the machine's clock until a test has it leap: long waits that are over then end.
type leap struct {
	clock.Clock
	mu    sync.Mutex
	by    time.Duration
	waits map[*leapTimer]time.Time
}

type leapTimer struct {
	clock.Timer
	l *leap
}

func newLeap() *leap { return &leap{Clock: clock.Real(), waits: map[*leapTimer]time.Time{}} }

func (l *leap) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Clock.Now().Add(l.by)
}

func (l *leap) AfterFunc(d time.Duration, f func()) clock.Timer {
	t := &leapTimer{l.Clock.AfterFunc(d, f), l}
	t.note(d)
	return t
}

func (t *leapTimer) note(d time.Duration) {
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	if d > 45*time.Second {
		t.l.waits[t] = t.l.Clock.Now().Add(t.l.by + d)
	}
}

func (t *leapTimer) Reset(d time.Duration) bool {
	t.note(d)
	return t.Timer.Reset(d)
}

func (l *leap) forward(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by += d
	for t, at := range l.waits {
		if !at.After(l.Clock.Now().Add(l.by)) {
			t.Timer.Reset(0)
			delete(l.waits, t)
		}
	}
}

// TestMemoryWithoutConnectionLivesAnHour: until then a client goes on; then both ends have nothing
// of it any more, without any call.
func TestMemoryWithoutConnectionLivesAnHour(t *testing.T) {
	t.Parallel()
	now := newLeap()
	o := newOracle(t, principal.ByProof, func(c *settings) { c.Clock = now })
	from := netip.MustParseAddr("127.0.0.2")
	call := func(secret string) (cost [2]int) {
		c := connectFrom(t, from, o.near.url())
		cost = o.calls(c, "", withSecret, secret)
		require.NoError(t, c.Close())
		o.left()
		return cost
	}
	word := o.word()
	for range 2 { // of another client: the shapes have come
		from = from.Next()
		call(o.word())
	}
	from = from.Next()
	cold := call(word)
	warm := call(word)
	assert.Less(t, warm[0], cold[0]/2)
	require.Eventually(t, func() bool { return o.near.LanesKept() == 3 }, patience, time.Millisecond)
	now.forward(59 * time.Minute)
	assert.Less(t, call(word)[0], cold[0]/2, "59 minutes later")
	require.Eventually(t, func() bool { return o.near.LanesKept() == 3 }, patience, time.Millisecond)
	now.forward(59 * time.Minute)
	require.Eventually(t, func() bool { return o.near.LanesKept() == 1 }, patience, time.Millisecond,
		"the others were silent for an hour")
	before := o.tap.seen()
	now.forward(time.Minute)
	require.Eventually(t, func() bool { return o.near.LanesKept() == 0 && o.tap.seen() != before }, patience,
		time.Millisecond, "the far end hears of it")
	assert.Greater(t, call(word)[0], cold[0]-20)
}

// toldInTime has the far end hear of connections that are gone without a next call.
func toldInTime(c *settings) { c.Clock = clock.Real() }

// TestSecondProofEmptiesWhatIsKept: also what a connection that is there still has.
func TestSecondProofEmptiesWhatIsKept(t *testing.T) {
	t.Parallel()
	o := newOracle(t, principal.ByProof, toldInTime)
	from, word := netip.MustParseAddr("127.0.0.2"), o.word()
	open := func() *client { return connectFrom(t, from, o.near.url()) }
	o.calls(open(), "", withSecret, o.word())
	o.calls(open(), "", withGuess, o.word()) // the shapes have come
	from = from.Next()
	live, gone := open(), open()
	cold := o.calls(live, "", withSecret, word)
	o.calls(gone, "", withSecret, word)
	require.NoError(t, gone.Close())
	require.Eventually(t, func() bool { return o.near.LanesKept() == 1 }, patience, time.Millisecond)
	assert.Less(t, o.calls(live, "", withSecret, word)[0], cold[0]/2)
	o.calls(open(), "", withGuess, word)
	require.Eventually(t, func() bool { return o.near.LanesKept() == 0 }, patience, time.Millisecond)
	assert.Greater(t, o.calls(live, "", withSecret, word)[0], cold[0]-20, "of the connection that is there")
	assert.Less(t, o.calls(live, "", withSecret, word)[0], cold[0]/2, "it has a memory of its own")
	assert.Greater(t, o.calls(open(), "", withSecret, word)[0], cold[0]-20, "of another one")
}

// TestConnectionsOfOneKeyAtOnce: each has a memory of its own, and the next one goes on with the
// one that was given back last.
func TestConnectionsOfOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	o := newOracle(t, principal.ByProof, toldInTime)
	from := netip.MustParseAddr("127.0.0.2")
	open := func() *client { return connectFrom(t, from, o.near.url()) }
	o.calls(open(), "", withSecret, o.word()) // the shapes have come
	from = from.Next()
	words, costs, both := [2]string{o.word(), o.word()}, [2][2]int{}, [2]*client{open(), open()}
	for i, c := range both {
		costs[i] = o.calls(c, "", withSecret, words[i])
	}
	assert.InDelta(t, costs[0][0], costs[1][0], 20)
	for _, c := range both {
		kept := o.near.LanesKept()
		require.NoError(t, c.Close())
		require.Eventually(t, func() bool { return o.near.LanesKept() == kept+1 }, patience, time.Millisecond)
	}
	assert.Less(t, o.calls(open(), "", withSecret, words[1])[0], costs[1][0]/2)
}

// unable takes from what comes in what the far end says that it can do.
type unable struct{ net.Conn }

func (c unable) NetConn() net.Conn { return c.Conn }

func (c unable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	at := 0
	if _, after, is := bytes.Cut(p[:n], []byte("\r\n\r\n")); is && frame.BeginsStream(after) {
		at = n - len(after)
	}
	if f, length, bad := frame.Parse(p[at:n], 0, 0); bad == nil {
		if hello, is := f.(frame.Hello); is {
			hello.Abilities = 0
			rest := bytes.Clone(p[at+length : n])
			n = at + copy(p[at:], append(hello.AppendTo(nil), rest...))
		}
	}
	return n, err
}

// TestConnectionOutlivesItsClients: a connection whose requests are of several clients has one
// connection of the upstream, which may have authenticated it; unless the far half is of a version
// that cannot have several clients on a connection. Replies come in order, also to requests that
// came at once.
func TestConnectionOutlivesItsClients(t *testing.T) {
	const via = asSOAP + "Via: 1.1 gate\r\n"
	said := []string{post(withSecret, "<a/>"), post(withGuess, "<b/>"), post(asSOAP, "<c/>"), post(asSOAP, "<d/>"),
		post(via, "<e/>"), post(via, "<f/>") + post(via, "<g/>")}
	apart := []string{said[0], said[1], said[2] + said[3], said[4], post(via, "<f/>"), post(via, "<g/>")}
	for name, want := range map[string][]string{
		"both halves know":      {strings.Join(said, "")},
		"the far half does not": apart,
	} {
		t.Run(name, func(t *testing.T) {
			server := startOrigin(t, "127.0.0.1:0", server(echoReply))
			far := startProxy(t, "127.0.0.1:0", server.url(), nil)
			near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
				c.Listen = elsewhere{c.Listen}
				if len(want) > 1 {
					c.WrapDialed = func(conn net.Conn) net.Conn { return unable{conn} }
				}
			})
			near.linked(t)
			c := connectFrom(t, netip.MustParseAddr("127.0.0.2"), near.url())
			for i, one := range said {
				c.say(one)
				c.hear("<" + string("abcdeg"[i]) + "/>")
			}
			assert.ElementsMatch(t, want, server.received())
		})
	}
}
