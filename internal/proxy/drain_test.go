package proxy_test

import (
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/proxy"
)

// TestDrainRefusesFurtherCalls: while a proxy drains, the call in progress gets its reply, further
// calls of kept connections get 503 and reach no server, and new connections are not accepted.
func TestDrainRefusesFurtherCalls(t *testing.T) {
	for _, which := range []string{"near", "far", "plain"} {
		t.Run(which, func(t *testing.T) {
			arrived, release := make(chan struct{}, 8), make(chan struct{})
			o := startOrigin(t, "127.0.0.1:0", held(arrived, release))
			routes := func(c *settings) {
				c.Routes = []proxy.Route{{Path: "/other", Upstream: &proxy.Upstream{URL: o.url()}}}
			}
			far := startProxy(t, "127.0.0.1:0", o.url(), routes)
			entry, draining := far, far
			if which != "plain" {
				entry = startProxy(t, "127.0.0.1:0", far.url(), nil)
				entry.linked(t)
			}
			if which == "near" {
				draining = entry
			}
			busy, kept := connect(t, entry.url()), connect(t, entry.url())
			kept.say(post("", envelope))
			<-arrived
			release <- struct{}{}
			kept.hear(envelope)
			busy.say(post("", envelope))
			<-arrived
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				draining.Drain(t.Context())
			}()
			refusesDials(t, draining.url())
			kept.say(post("", envelope))
			got := kept.rest()
			assert.True(t, strings.HasPrefix(got, "HTTP/1.1 503 Service Unavailable\r\n"), "%q", got)
			assert.Contains(t, got, "shutting down; the request was not sent")
			assert.Contains(t, got, "Retry-After: ")
			close(release)
			busy.hear(envelope)
			<-drained
			assert.Empty(t, arrived)
		})
	}
}

// TestDrainWaitsForWhatIsNotLookedAt: a call that is forwarded plainly without routes has its whole
// reply before the proxy has drained, also if that pauses; a connection without a call does not
// delay it.
func TestDrainWaitsForWhatIsNotLookedAt(t *testing.T) {
	arrived, release := make(chan struct{}, 8), make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		for {
			h, err := r.head()
			if err != nil {
				return
			}
			_, entity, err := r.body(&h)
			if err != nil {
				return
			}
			reply := echoReply(&h, entity)
			arrived <- struct{}{}
			<-release
			_, _ = c.Write(reply[:len(reply)/2])
			arrived <- struct{}{}
			<-release
			_, _ = c.Write(reply[len(reply)/2:])
		}
	})
	p := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) { c.PlainOnly = true })
	busy, kept := connect(t, p.url()), connect(t, p.url())
	for _, c := range []*client{kept, busy} {
		c.say(post("", envelope))
		<-arrived
		if c == kept {
			release <- struct{}{}
			<-arrived
			release <- struct{}{}
			kept.hear(envelope)
		}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		p.Drain(t.Context())
		assert.NoError(t, p.Close())
	}()
	refusesDials(t, p.url())
	release <- struct{}{}
	<-arrived
	release <- struct{}{}
	busy.hear(envelope)
	<-drained
	assert.Empty(t, kept.rest())
}

// refusesDials waits until nothing accepts there any more.
func refusesDials(t *testing.T, to *url.URL) {
	require.Eventually(t, func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", to.Host)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, patience, 1e6)
}
