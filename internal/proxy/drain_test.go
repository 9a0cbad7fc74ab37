package proxy_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/pkg/clock"
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

// standing is a clock that stands still, and tells when somebody sleeps on it.
type standing struct {
	clock.Clock
	now    time.Time
	passed atomic.Int64
	sleeps chan struct{}
}

func (s *standing) Now() time.Time { return s.now.Add(time.Duration(s.passed.Load())) }

func (s *standing) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case s.sleeps <- struct{}{}:
	default:
	}
	return s.Clock.Sleep(ctx, d)
}

// TestDrainHearsWhoIsBetweenCalls: a proxy that ends while no call is in progress answers what
// clients of kept connections send in the next moment, and waits for another moment then; without
// such clients it ends at once.
func TestDrainHearsWhoIsBetweenCalls(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	c := &standing{Clock: clock.Real(), now: time.Now(), sleeps: make(chan struct{}, 1)}
	near := startProxy(t, "127.0.0.1:0", far.url(), func(s *settings) { s.Clock = c })
	near.linked(t)
	var kept []*client
	for range 10 {
		k := connect(t, near.url())
		k.say(post("", envelope))
		k.hear(envelope)
		kept = append(kept, k)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		near.Drain(t.Context())
		assert.NoError(t, near.Close())
	}()
	for i, k := range kept {
		select {
		case <-c.sleeps:
		case <-ended:
			require.Fail(t, "it ended with clients between two calls", "%d of them were answered", i)
		}
		c.passed.Add(int64(200 * time.Millisecond))
		k.say(post("", envelope))
		got := k.rest()
		assert.True(t, strings.HasPrefix(got, "HTTP/1.1 503 Service Unavailable\r\n"), "%q", got)
	}
	<-ended
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
