package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
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

// noticed is a connection that reports what is read, before who reads gets it, and waits.
type noticed struct {
	net.Conn
	read func()
}

func (c *noticed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.read()
	}
	return n, err
}

// NetConn is the connection below.
func (c *noticed) NetConn() net.Conn { return c.Conn }

// noticing is a listener of such connections.
type noticing struct {
	net.Listener
	read func()
}

func (l *noticing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &noticed{c, l.read}, nil
}

// ending ends a proxy: what it returns is closed when that has drained.
func ending(t *testing.T, p end) (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		p.Drain(t.Context())
		close(ended)
		_ = p.Close()
	}()
	return ended
}

// stepsOn has so many steps of a draining proxy pass, a second each, unless it ends before.
func (s *standing) stepsOn(ended chan struct{}, steps int) {
	for range steps {
		select {
		case <-s.sleeps:
			s.passed.Add(int64(time.Second))
		case <-ended:
			return
		}
	}
}

// TestDrainAnswersWhatItHasRead: a client of which something was read, in whatever moment and
// however little, has an answer before the proxy has drained: 503 for a request that came later,
// its reply for one whose head was there.
func TestDrainAnswersWhatItHasRead(t *testing.T) {
	half := len(envelope) / 2
	chunked := "POST /service HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n"
	whole := post("", envelope)
	for name, c := range map[string]struct{ first, rest string }{
		"a request":           {"", whole},
		"a head in two parts": {whole[:20], whole[20:]},
		"a body in two parts": {whole[:len(whole)-half], whole[len(whole)-half:]},
		"a chunked body": {chunked + fmt.Sprintf("%x\r\n%s\r\n", half, envelope[:half]),
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(envelope)-half, envelope[half:])},
	} {
		for way, start := range forwardings {
			t.Run(name+", "+way, func(t *testing.T) {
				clock := &standing{Clock: clock.Real(), now: time.Now(), sleeps: make(chan struct{})}
				var held atomic.Value // the address whose connections wait
				read, release := make(chan struct{}), make(chan struct{})
				o := startOrigin(t, "127.0.0.1:0", server(echoReply))
				p := start(t, o, func(s *settings) {
					s.Gather, s.Pause, s.Clock = patience, patience, clock
					at := s.Listen.Addr().String()
					s.Listen = &noticing{Listener: s.Listen, read: func() {
						if held.Load() == at {
							read <- struct{}{}
							<-release
						}
					}}
				})
				k := connect(t, p.url())
				k.say(whole)
				k.hear(envelope)
				held.Store(p.Addrs()["http"].String())
				var ended chan struct{}
				say := func(part string, meanwhile func()) {
					k.say(part)
					select {
					case <-read:
						meanwhile()
						release <- struct{}{}
					case <-ended: // the first part was late, and has its answer
					}
				}
				if c.first == "" {
					ended = ending(t, p)
				} else {
					say(c.first, func() {})
					ended = ending(t, p)
					clock.stepsOn(ended, 20)
				}
				say(c.rest, func() { clock.stepsOn(ended, 20) })
				held.Store("")
				answered := make(chan string)
				go func() {
					got, err := io.ReadAll(k)
					assert.NoError(t, err)
					answered <- string(got)
				}()
				for {
					select {
					case got := <-answered:
						if strings.HasPrefix(got, "HTTP/1.1 503 ") {
							assert.NotEqual(t, "plain", way, "what is not looked at is not refused")
							assert.Contains(t, got, "Retry-After: ")
							assert.Contains(t, got, "Connection: close")
						} else {
							assert.Contains(t, got, envelope)
							assert.True(t, way == "plain" || c.first != "", "it came later")
						}
						return
					case <-clock.sleeps:
						clock.passed.Add(int64(time.Second))
					}
				}
			})
		}
	}
}

// TestDrainEndsTheContextService: kept connections to the context service end when the proxy has
// drained; a request in progress there has its reply before, also one that was read in the last
// moment; and one that waits for something is told to end.
func TestDrainEndsTheContextService(t *testing.T) {
	clock := &standing{Clock: clock.Real(), now: time.Now(), sleeps: make(chan struct{})}
	var holds atomic.Bool
	read, release := make(chan struct{}), make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	service := &waitingService{arrived: make(chan struct{}), drained: make(chan struct{})}
	p := startProxy(t, "127.0.0.1:0", o.url(), func(s *settings) {
		s.PlainOnly, s.Context, s.Clock = true, service, clock
		s.Listen = &noticing{Listener: s.Listen, read: func() {
			if holds.Load() {
				read <- struct{}{}
				<-release
			}
		}}
	})
	ask := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n" }
	var kept []*client
	for range 4 {
		k := connect(t, p.url())
		for range 2 {
			k.say(ask(proxy.ContextPath))
			k.hear("answered")
		}
		kept = append(kept, k)
	}
	waits := connect(t, p.url())
	waits.say(ask(proxy.ContextPath + "?wait"))
	<-service.arrived
	holds.Store(true)
	kept[0].say(ask(proxy.ContextPath))
	<-read
	ended := ending(t, p)
	waits.hear("answered")
	clock.stepsOn(ended, 20)
	for _, k := range append(kept[1:], waits) {
		k.ends()
	}
	holds.Store(false)
	release <- struct{}{}
	last := kept[0].rest()
	assert.Contains(t, last, "\r\nConnection: close\r\n")
	assert.True(t, strings.HasSuffix(last, "answered"), "%q", last)
	for {
		select {
		case <-ended:
			return
		case <-clock.sleeps:
			clock.passed.Add(int64(time.Second))
		}
	}
}

// waitingService answers requests, those that wait once it drains.
type waitingService struct{ arrived, drained chan struct{} }

func (s *waitingService) Drain() { close(s.drained) }

func (s *waitingService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery == "wait" {
		s.arrived <- struct{}{}
		<-s.drained
	}
	_, _ = io.WriteString(w, "answered")
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

// TestDrainTellsWhoGetsNoReply: when the time of a draining proxy is over, a client whose request
// has no reply is told so, in time: that its fate is unknown, or, of one of which a part is there
// only, that it was not sent. One that has a part of its reply must not take it for the whole.
func TestDrainTellsWhoGetsNoReply(t *testing.T) {
	chunked := "POST /service HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n"
	whole := post("", envelope)
	part := "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart"
	for way, start := range forwardings {
		t.Run(way, func(t *testing.T) {
			arrived := make(chan struct{}, 8)
			o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
				switch {
				case isOffer(h):
					return nil
				case strings.HasPrefix(string(entity), "<part"):
					return []byte(part)
				case strings.HasPrefix(string(entity), "<quick"):
					return echoReply(h, entity)
				}
				arrived <- struct{}{}
				<-t.Context().Done()
				return nil
			}))
			p := start(t, o, func(s *settings) { s.Gather = patience })
			waits, inPart := connect(t, p.url()), connect(t, p.url())
			halfHead, halfBody := connect(t, p.url()), connect(t, p.url())
			waits.say(whole)
			<-arrived
			inPart.say(post("", "<part/>"))
			inPart.hear("part")
			for _, c := range []*client{halfHead, halfBody} {
				c.say(post("", "<quick/>"))
				c.hear("<quick/>")
			}
			halfHead.say(whole[:40])
			halfBody.say(chunked + "4\r\n<a>1\r\n")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				p.Drain(ctx)
				assert.NoError(t, p.Close())
			}()
			got := waits.rest()
			assert.True(t, strings.HasPrefix(got, "HTTP/1.1 502 "), "%q", got)
			assert.Contains(t, got, "whether the request was processed is unknown")
			assert.Contains(t, got, "\r\nConnection: close\r\n")
			_, err := io.ReadAll(inPart)
			assert.True(t, err != nil || way == "plain", "the reply was not whole")
			for what, c := range map[string]*client{"head": halfHead, "body": halfBody} {
				b, err := io.ReadAll(c)
				if way == "plain" {
					assert.Error(t, err, "the server has replied: nobody knows whether that was all")
					continue
				}
				assert.NoError(t, err, what)
				assert.Regexp(t, "^HTTP/1.1 50[23] ", string(b))
				assert.Contains(t, string(b), "\r\nConnection: close\r\n")
			}
			<-drained
		})
	}
}

// TestDrainAnswersWhoIsNew: so has a client whose connection was just accepted, and its request
// read, when the proxy ends.
func TestDrainAnswersWhoIsNew(t *testing.T) {
	for way, start := range forwardings {
		t.Run(way, func(t *testing.T) {
			var held atomic.Value // the address whose connections wait
			read, release := make(chan struct{}), make(chan struct{})
			o := startOrigin(t, "127.0.0.1:0", server(echoReply))
			p := start(t, o, func(s *settings) {
				at := s.Listen.Addr().String()
				s.Listen = &noticing{Listener: s.Listen, read: func() {
					if held.Load() == at {
						read <- struct{}{}
						<-release
					}
				}}
			})
			held.Store(p.Addrs()["http"].String())
			k := connect(t, p.url())
			k.say(post("", envelope))
			<-read
			ended := ending(t, p)
			refusesDials(t, p.url())
			held.Store("")
			release <- struct{}{}
			got := k.rest()
			assert.True(t, strings.HasPrefix(got, "HTTP/1.1 503 "), "%q", got)
			<-ended
		})
	}
}
