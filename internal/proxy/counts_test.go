package proxy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/pkg/workload"
)

// countsOf are the counts of a role for each of its upstreams that have any, by URL.
func countsOf(m *meter.Meter, role string) map[string]*meter.UpstreamCounts {
	counts := map[string]*meter.UpstreamCounts{}
	for _, u := range m.Snapshot(time.Now()).Upstreams {
		if u.Role == role {
			counts[u.Upstream] = u
		}
	}
	return counts
}

// eventually waits for the counts of an upstream in a role.
func eventually(t *testing.T, m *meter.Meter, role, url string, are func(*meter.UpstreamCounts) bool) {
	t.Helper()
	ok := func() bool {
		u := countsOf(m, role)[url]
		return u != nil && are(u)
	}
	require.Eventually(t, ok, patience, 10*time.Millisecond, "%+v", countsOf(m, role)[url])
}

func countsIn(m *meter.Meter) func(*settings) { return func(cfg *settings) { cfg.Meter = m } }

// TestCountsOverReroute: an upstream that is removed keeps its counts and has no state; when one of
// its URL comes back, they go on from there. Routes that are refused leave no counts behind.
func TestCountsOverReroute(t *testing.T) {
	c, _ := startCities(t, "oslo", "rome", "bonn")
	meters := map[string]*meter.Meter{}
	for name, u := range c {
		meters[name] = meter.New(time.Now())
		u.URL = startProxy(t, "127.0.0.1:0", u.URL, countsIn(meters[name])).url()
	}
	m := meter.New(time.Now())
	oslo, rome := c["oslo"].URL.String(), c["rome"].URL.String()
	near := startProxy(t, "127.0.0.1:0", nil, func(cfg *settings) {
		cfg.Meter = m
		cfg.Routes = []proxy.Route{{Path: "/o", Upstream: c["oslo"]}, {Upstream: c["rome"]}}
	})
	near.linked(t)
	kept := connect(t, near.url())
	say := func(city, path string) {
		t.Helper()
		kept.say(ask("x", path))
		kept.hear(replyOf(city, path))
	}
	say("oslo", "/o")
	say("rome", "/r")

	twice := []proxy.Route{{Upstream: c["bonn"]}, {Upstream: c["bonn"]}}
	require.Error(t, near.Reroute(t.Context(), twice))
	require.NoError(t, near.Reroute(t.Context(), []proxy.Route{{Upstream: c["rome"]}}))
	say("rome", "/o")
	eventually(t, m, "near", oslo, func(u *meter.UpstreamCounts) bool { return u.Gone && u.Streams == 0 })
	assert.EqualValues(t, 1, countsOf(m, "near")[oslo].Calls)
	assert.NotContains(t, countsOf(m, "near"), c["bonn"].URL.String())

	back := &proxy.Upstream{Name: "again", URL: c["oslo"].URL}
	routes := []proxy.Route{{Path: "/o", Upstream: back}, {Upstream: c["rome"]}}
	require.NoError(t, near.Reroute(t.Context(), routes))
	near.linked(t)
	say("oslo", "/o")
	eventually(t, m, "near", oslo, func(u *meter.UpstreamCounts) bool {
		return u.Calls == 2 && u.InProgress == 0 && u.Opened == 2 && u.Streams == 1 && !u.Gone
	})
	eventually(t, m, "near", rome, func(u *meter.UpstreamCounts) bool { return u.Calls == 2 && u.Opened == 1 })
	require.NoError(t, near.Close())
	counts := countsOf(m, "near")
	assert.Len(t, counts, 2)
	for name, url := range map[string]string{"oslo": oslo, "rome": rome} {
		here := counts[url]
		assert.EqualValues(t, 2*len(ask("x", "/o")), here.RequestBytes, name)
		for there := range countsOf(meters[name], "far") {
			eventually(t, meters[name], "far", there, func(u *meter.UpstreamCounts) bool {
				return u.Calls == 2 && u.RequestBytes == here.RequestBytes && u.ReplyBytes == here.ReplyBytes
			})
		}
	}
}

// TestCountsByRoute: a call counts for the upstream to which its route leads, over a stream and
// plainly, and one that no route takes for no server.
func TestCountsByRoute(t *testing.T) {
	c, servers := startCities(t, "oslo", "rome")
	m := meter.New(time.Now())
	routed := startProxy(t, "127.0.0.1:0", nil, func(cfg *settings) {
		cfg.Meter = m
		cfg.Routes = []proxy.Route{{Path: "/service", Upstream: c["rome"]}, {Path: "/o", Upstream: c["oslo"]}}
	})
	near := startProxy(t, "127.0.0.1:0", routed.url(), nil)
	near.linked(t)
	oslo, rome := servers["oslo"].url().String(), servers["rome"].url().String()
	for _, entry := range []end{near, routed} {
		client := connect(t, entry.url())
		for _, path := range []string{"/o", "/service", "/o"} {
			client.say(ask("x", path))
			client.hear(replyOf(map[string]string{"/o": "oslo", "/service": "rome"}[path], path))
		}
		client.say(ask("x", "/nowhere"))
		assert.Contains(t, client.rest(), " 404 ")
	}
	for url, calls := range map[string]int64{oslo: 2, rome: 1} {
		octets := calls * int64(len(ask("x", "/o")))
		if url == rome {
			octets = calls * int64(len(ask("x", "/service")))
		}
		eventually(t, m, "far", url, func(u *meter.UpstreamCounts) bool {
			return u.Calls == calls && u.Failed == 0 && u.InProgress == 0 && u.RequestBytes == octets
		})
		eventually(t, m, "near", url, func(u *meter.UpstreamCounts) bool {
			sent, replied := int64(0), int64(0)
			for _, p := range u.Plain { // whatever was the state of the offer
				sent += p.RequestBytes
				replied += p.ReplyBytes
			}
			return sent == octets && replied > 0
		})
	}
	counts := countsOf(m, "far")
	assert.Equal(t, 1, counts[rome].Streams, "the near one asked at the path of rome")
	assert.Zero(t, counts[oslo].Opened)
	eventually(t, m, "far", meter.Other, func(u *meter.UpstreamCounts) bool { return u.Failed == 1 })
}

// TestWhoLeavesAndWhoStalls: a client that closes before the last chunk has understood its reply,
// and its call has not failed. That of a client which takes no more of its reply, until it is
// reset, has.
func TestWhoLeavesAndWhoStalls(t *testing.T) {
	const chunk = "5\r\n<a/>\n\r\n"
	long := workload.Blob(1, 32<<20)
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		h, err := r.head()
		switch {
		case err != nil || isOffer(&h):
		case string(h.Target()) == "/long":
			_, _ = c.Write(echoReply(&h, long))
		default:
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n"+
				"Transfer-Encoding: chunked\r\n\r\n"+chunk)
			_, _ = r.head() // the client is gone
		}
	})
	m, passes := meter.New(time.Now()), newSudden()
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) { c.Meter, c.Stall, c.Clock = m, ages, passes })
	near.linked(t)
	leaves := connect(t, near.url())
	leaves.say(ask("h", "/chunks"))
	leaves.hear(chunk)
	require.NoError(t, leaves.SetLinger(0))
	require.NoError(t, leaves.Close())
	ended := func(calls, failed int64) {
		t.Helper()
		eventually(t, m, "near", far.url().String(), func(u *meter.UpstreamCounts) bool { return u.Calls == calls })
		assert.Equal(t, failed, countsOf(m, "near")[far.url().String()].Failed)
	}
	ended(1, 0)
	stalls := connect(t, near.url())
	stalls.say(ask("h", "/long"))
	_, err := io.ReadFull(stalls.TCPConn, make([]byte, 1))
	require.NoError(t, err)
	passes.end()
	eventually(t, m, "near", far.url().String(), func(u *meter.UpstreamCounts) bool { return u.Failed == 1 })
	require.Eventually(t, func() bool {
		_, err := stalls.Write([]byte("x"))
		return err != nil
	}, patience, 10*time.Millisecond, "the connection is reset")
}
