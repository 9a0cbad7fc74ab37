package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/proxy"
)

// named is a server that replies with its name and what it was asked.
func named(name string) func(net.Conn) {
	return server(func(h *http1.Head, entity []byte) []byte {
		if isOffer(h) {
			return []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		}
		text := fmt.Sprintf("<r>%s %s %d</r>", name, h.Target(), len(entity))
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s",
			len(text), text)
	})
}

// ask is a request for a host and path.
func ask(host, path string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s",
		path, host, len(envelope), envelope)
}

// replyOf is what a server of that name replies.
func replyOf(name, path string) string {
	return fmt.Sprintf("<r>%s %s %d</r>", name, path, len(envelope))
}

// cities are servers by name, with an Upstream for each.
type cities map[string]*proxy.Upstream

func startCities(t *testing.T, names ...string) (cities, map[string]*origin) {
	c, servers := cities{}, map[string]*origin{}
	for _, name := range names {
		servers[name] = startOrigin(t, "127.0.0.1:0", named(name))
		c[name] = &proxy.Upstream{Name: name, URL: servers[name].url()}
	}
	return c, servers
}

type entrance struct {
	name  string
	start func(t *testing.T, c cities, routes func(cities) []proxy.Route) (entry *url.URL, routed end)
}

// entrances are the ways in which a proxy with routes can stand: alone, so that everything goes
// plainly; as the near one, before a far proxy for each server; as the far one, behind a near one
// that knows of no routes.
var entrances = []entrance{
	{"plain", func(t *testing.T, c cities, routes func(cities) []proxy.Route) (*url.URL, end) {
		p := startProxy(t, "127.0.0.1:0", nil, func(cfg *settings) { cfg.Routes = routes(c) })
		return p.url(), p
	}},
	{"near", func(t *testing.T, c cities, routes func(cities) []proxy.Route) (*url.URL, end) {
		behind := cities{}
		for name, u := range c {
			behind[name] = &proxy.Upstream{Name: name, URL: startProxy(t, "127.0.0.1:0", u.URL, nil).url()}
		}
		for name, u := range behind {
			c[name] = u
		}
		p := startProxy(t, "127.0.0.1:0", nil, func(cfg *settings) { cfg.Routes = routes(c) })
		p.linked(t)
		return p.url(), p
	}},
	{"far", func(t *testing.T, c cities, routes func(cities) []proxy.Route) (*url.URL, end) {
		p := startProxy(t, "127.0.0.1:0", nil, func(cfg *settings) { cfg.Routes = routes(c) })
		near := startProxy(t, "127.0.0.1:0", p.url(), nil)
		near.linked(t)
		return near.url(), p
	}},
}

// inEachPlace runs a test for each of them.
func inEachPlace(t *testing.T, names []string, routes func(cities) []proxy.Route,
	test func(t *testing.T, entry *url.URL, routed end, c cities, servers map[string]*origin)) {
	inPlaces(t, entrances, names, routes, test)
}

func inPlaces(t *testing.T, places []entrance, names []string, routes func(cities) []proxy.Route,
	test func(t *testing.T, entry *url.URL, routed end, c cities, servers map[string]*origin)) {
	for _, place := range places {
		t.Run(place.name, func(t *testing.T) {
			c, servers := startCities(t, names...)
			entry, routed := place.start(t, c, routes)
			test(t, entry, routed, c, servers)
		})
	}
}

// TestRequestsOfOneConnectionGoByTheirRoutes: each request of a kept connection goes where its host
// and path say, pipelined or not, in any order, and the replies come in the order of the requests.
func TestRequestsOfOneConnectionGoByTheirRoutes(t *testing.T) {
	routes := func(c cities) []proxy.Route {
		return []proxy.Route{
			{Host: "Oslo.example", Upstream: c["oslo"]},
			{Host: "oslo.example", Path: "/deep/", Upstream: c["deep"]},
			{Host: "oslo.example:8080", Upstream: c["port"]},
			{Path: "/deep", Upstream: c["any"]},
			{Upstream: c["rest"]},
		}
	}
	inEachPlace(t, []string{"oslo", "deep", "port", "any", "rest"}, routes, func(t *testing.T, entry *url.URL, _ end,
		_ cities, servers map[string]*origin) {
		kept := connect(t, entry)
		for range 2 {
			for _, tt := range []struct{ host, path, to string }{
				{"oslo.example", "/", "oslo"}, {"OSLO.example:99", "/x?y=/deep", "oslo"},
				{"oslo.example", "/deep", "deep"}, {"oslo.example", "/deep/er?q", "deep"},
				{"oslo.example", "/deeper", "oslo"}, {"oslo.example:8080", "/deep", "port"},
				{"rome.example", "/deep?q", "any"}, {"rome.example", "/deeper", "rest"}, {"[::1]:80", "/", "rest"},
				{"rome.example", "http://oslo.example/deep/x", "deep"},
			} {
				kept.say(ask(tt.host, tt.path))
				assert.Contains(t, kept.hear("</r>"), replyOf(tt.to, tt.path))
			}
		}
		kept.say(ask("oslo.example", "/a") + ask("oslo.example", "/b") + ask("rome.example", "/c") +
			ask("oslo.example", "/d"))
		var got string
		for range 40 {
			if got += kept.hear("</r>"); strings.Contains(got, "/d") {
				break
			}
		}
		last := -1
		for _, want := range []string{
			replyOf("oslo", "/a"), replyOf("oslo", "/b"), replyOf("rest", "/c"), replyOf("oslo", "/d"),
		} {
			at := strings.Index(got, want)
			assert.Greater(t, at, last, "%s in %q", want, got)
			last = at
		}
		for name, o := range servers {
			for _, conn := range o.received() {
				assert.NotContains(t, conn, "GET", name)
			}
		}
	})
}

// A request whose head comes in parts goes where all of it says, and not to the upstream of what no
// other route takes: it may have credentials. One that is not valid goes nowhere, whatever the
// connection had before, and what stands behind a request is one, or nothing.
func TestNothingGoesAroundTheRoutes(t *testing.T) {
	routes := func(c cities) []proxy.Route {
		return []proxy.Route{{Host: "oslo.example", Upstream: c["oslo"]}, {Upstream: c["rest"]}}
	}
	secret := strings.Replace(ask("oslo.example", "/p"), "\r\n", "\r\nX-Secret: of Oslo\r\n", 1)
	edited := func(by, to string) string { return strings.Replace(secret, by, to, 1) }
	at := strings.Index(secret, "Content-Type")
	before := ask("rest.example", "/1")
	chunks := strings.NewReplacer("Content-Length: "+strconv.Itoa(len(envelope)), "Transfer-Encoding: chunked",
		envelope, "3\r\nabcX\r\n"+secret).Replace(before)
	noField := edited("Content-Type", "odd\r\nContent-Type")
	twoLengths := edited("Content-Length", "Content-Length: 1\r\nContent-Length")
	long := edited("Content", "X-L: "+strings.Repeat("a", 70000)+"\r\nContent")
	behind := len(chunks) - len(secret)
	var all sync.WaitGroup
	const valid, odd = "<r>oslo /p ", "HTTP/1.1 400 "
	inEachPlace(t, []string{"oslo", "rest"}, routes, func(t *testing.T, entry *url.URL, _ end, _ cities,
		servers map[string]*origin) {
		for name, tt := range map[string]struct {
			parts []string // with pauses between them
			want  string
		}{
			"paused in the head":          {[]string{secret[:at], secret[at:]}, valid},
			"paused in the second head":   {[]string{before, secret[:at], secret[at:]}, valid},
			"paused in the method":        {[]string{secret[:2], secret[2:]}, valid},
			"paused in the second method": {[]string{before, secret[:2], secret[2:]}, valid},
			"paused behind the method":    {[]string{secret[:5], secret[5:]}, valid},
			"no field":                    {[]string{noField}, odd},
			"no field in the second":      {[]string{before, noField}, odd},
			"too long":                    {[]string{long}, "HTTP/1.1 431 "},
			"another version":             {[]string{edited("HTTP/1.1", "HTTP/2.0")}, odd},
			"another version second":      {[]string{before, edited("HTTP/1.1", "HTTP/2.0")}, odd},
			"odd with tabs":               {[]string{edited("POST ", "POST\t")[:at] + "odd\r\n\r\n"}, odd},
			"end in the head":             {[]string{secret[:at], ""}, odd},
			"end in the second head":      {[]string{before + secret[:at], ""}, odd},
			"two lengths":                 {[]string{twoLengths}, odd},
			"two lengths in the second":   {[]string{before, twoLengths}, odd},
			"behind odd chunks":           {[]string{chunks}, odd},
			"behind a paused odd chunk":   {[]string{chunks[:behind-6], chunks[behind-6:]}, odd},
			"behind another protocol":     {[]string{before, "\x01\x02\r\n" + secret}, ""},
		} {
			all.Go(func() {
				c := connect(t, entry)
				for i, part := range tt.parts {
					if i > 0 {
						time.Sleep(3 * proxy.DefaultPause / 2) // a pause that counts as one
					}
					if part == "" {
						assert.NoError(t, c.CloseWrite())
					}
					_, _ = io.WriteString(c.TCPConn, part) // it may be refused already
				}
				said := ""
				for !strings.Contains(said, tt.want) || tt.want == "" {
					b := make([]byte, 4096)
					n, err := c.Read(b)
					if said += string(b[:n]); err != nil {
						break
					}
				}
				assert.Contains(t, said, tt.want, name)
			})
		}
		all.Wait()
		for _, received := range servers["rest"].received() {
			assert.NotContains(t, received, "of Oslo")
		}
	})
}

// A client that sends on after a final reply in place of 100 Continue sends the body or a request:
// neither goes anywhere.
func TestBehindWhatWasNotExpected(t *testing.T) {
	const refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"
	for _, place := range entrances {
		t.Run(place.name, func(t *testing.T) {
			c, _ := startCities(t, "oslo")
			refusing := startOrigin(t, "127.0.0.1:0", func(conn net.Conn) {
				b := make([]byte, 4096)
				for {
					if _, err := conn.Read(b); err != nil {
						return
					}
					if _, err := io.WriteString(conn, refusal); err != nil {
						return
					}
				}
			})
			c["rest"] = &proxy.Upstream{Name: "rest", URL: refusing.url()}
			entry, _ := place.start(t, c, func(c cities) []proxy.Route {
				return []proxy.Route{{Host: "oslo.example", Upstream: c["oslo"]}, {Upstream: c["rest"]}}
			})
			client := connect(t, entry)
			client.say("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 300\r\n\r\n")
			client.hear(refusal)
			client.say(strings.Replace(ask("oslo.example", "/"), "\r\n", "\r\nX-Secret: of Oslo\r\n", 1))
			require.NoError(t, client.CloseWrite())
			said, _ := io.ReadAll(client) // it may be reset, with what was not read
			assert.NotContains(t, string(said), "417")
			for _, received := range refusing.received() {
				assert.NotContains(t, received, "of Oslo")
			}
		})
	}
}

// What a client sends before its upgrade is answered goes to the server that it asked.
func TestUpgradesByRoutes(t *testing.T) {
	for _, place := range entrances {
		t.Run(place.name, func(t *testing.T) {
			c, _ := startCities(t, "rest")
			o := startOrigin(t, "127.0.0.1:0", func(conn net.Conn) {
				r := &requests{conn: conn}
				if h, err := r.head(); err != nil || isOffer(&h) {
					return
				}
				time.Sleep(proxy.DefaultPause / 5) // what the client sends is there before
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching\r\nUpgrade: raw\r\n\r\n"+string(r.buf))
				_, _ = io.Copy(conn, conn)
			})
			c["oslo"] = &proxy.Upstream{Name: "oslo", URL: o.url()}
			entry, _ := place.start(t, c, func(c cities) []proxy.Route {
				return []proxy.Route{{Host: "oslo.example", Upstream: c["oslo"]}, {Upstream: c["rest"]}}
			})
			client := connect(t, entry)
			client.say("GET /ws HTTP/1.1\r\nHost: oslo.example\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\nraw!")
			client.hear("\r\n\r\nraw!")
			client.say("more")
			client.hear("more")
		})
	}
}

// The head of a request has its time as a whole, however it comes.
func TestHeadsThatTakeLong(t *testing.T) {
	c, servers := startCities(t, "oslo", "rest")
	p := startProxy(t, "127.0.0.1:0", nil, func(cfg *settings) {
		cfg.HeadTime = time.Second
		cfg.Routes = []proxy.Route{{Host: "oslo.example", Upstream: c["oslo"]}, {Upstream: c["rest"]}}
	})
	for _, start := range []string{"POST /", "POST /x HTTP/1.1\r\nX-Secret: of Oslo\r\n"} {
		slow := connect(t, p.url())
		slow.say(start)
		go func() {
			for range 1000 {
				if _, err := io.WriteString(slow.TCPConn, "A"); err != nil {
					return
				}
				time.Sleep(proxy.DefaultPause / 20)
			}
		}()
		assert.Contains(t, slow.hear("in time; it was not sent\n"), "HTTP/1.1 408 ")
		_ = slow.Close()
	}
	assert.Empty(t, servers["rest"].received())
}

// TestRequestsWithoutARoute: a request that no route takes gets a 404 that says what it lacks, and
// reaches no server; so does one with two hosts. What is no HTTP is closed.
func TestRequestsWithoutARoute(t *testing.T) {
	routes := func(c cities) []proxy.Route {
		return []proxy.Route{{Host: "oslo.example", Path: "/a", Upstream: c["oslo"]},
			{Host: "rome.example", Upstream: c["rome"]}}
	}
	inEachPlace(t, []string{"oslo", "rome"}, routes, func(t *testing.T, entry *url.URL, _ end, _ cities,
		servers map[string]*origin) {
		kept := connect(t, entry)
		kept.say(ask("oslo.example", "/a/1"))
		kept.hear("</r>")
		kept.say(ask("oslo.example", "/b"))
		got := kept.rest()
		assert.True(t, strings.HasPrefix(got, "HTTP/1.1 404 Not Found\r\n"), "%q", got)
		assert.Contains(t, got, `no route of this proxy's configuration takes host "oslo.example" and path "/b"; `+
			"the request was not sent")
		for _, bad := range []string{
			ask("bern.example", "/a"),
			strings.Replace(ask("oslo.example", "/a"), "\r\n", "\r\nHost: rome.example\r\n", 1),
		} {
			c := connect(t, entry)
			c.say(bad)
			assert.Contains(t, c.rest(), "404 Not Found")
		}
		odd := connect(t, entry)
		odd.say("\x01\x02\x03\x04 this is something else\r\n\r\n")
		require.NoError(t, odd.CloseWrite())
		odd.ends()
		var got2 []string
		for _, o := range servers {
			got2 = append(got2, o.received()...)
		}
		assert.Equal(t, []string{ask("oslo.example", "/a/1")}, got2)
	})
}

// TestRoutesOfAListenerOfItsOwn: requests at a listener go by its routes alone, and at the main one
// by the others.
func TestRoutesOfAListenerOfItsOwn(t *testing.T) {
	c, _ := startCities(t, "main", "own", "below")
	p := startProxy(t, "127.0.0.1:0", c["main"].URL, func(cfg *settings) {
		cfg.Routes = []proxy.Route{{Listen: "127.0.0.1:0", Upstream: c["own"]},
			{Listen: "127.0.0.1:0", Path: "/below", Upstream: c["below"]}}
	})
	own := &url.URL{Host: p.Addrs()["127.0.0.1:0"].String()}
	for _, tt := range []struct {
		entry      *url.URL
		path, want string
	}{{p.url(), "/", "main"}, {p.url(), "/below", "main"}, {own, "/", "own"}, {own, "/below", "below"}} {
		client := connect(t, tt.entry)
		client.say(ask("x.example", tt.path))
		assert.Contains(t, client.hear("</r>"), replyOf(tt.want, tt.path))
	}
}

// TestRerouteMovesKeptConnections: after new routes the next request of a kept connection goes by
// them, while the call in progress ends where it began; on an error the old ones stay.
func TestRerouteMovesKeptConnections(t *testing.T) {
	before := func(c cities) []proxy.Route {
		return []proxy.Route{{Path: "/a", Upstream: c["oslo"]}, {Path: "/b", Upstream: c["oslo"]}}
	}
	inEachPlace(t, []string{"oslo", "rome"}, before, func(t *testing.T, entry *url.URL, routed end, c cities,
		_ map[string]*origin) {
		kept := connect(t, entry)
		kept.say(ask("x", "/a"))
		kept.hear(replyOf("oslo", "/a"))
		wrong := []proxy.Route{{Path: "/a", Upstream: c["rome"]}, {Path: "/a/", Upstream: c["oslo"]}}
		require.ErrorContains(t, routed.Reroute(t.Context(), wrong),
			`two routes of listener "" for host "" and path "/a/"`)
		kept.say(ask("x", "/a"))
		kept.hear(replyOf("oslo", "/a"))
		request := ask("x", "/a")
		kept.say(request[:len(request)-1]) // the call has begun when the routes change
		require.NoError(t, routed.Reroute(t.Context(), []proxy.Route{{Path: "/a", Upstream: c["rome"]}}))
		_ = routed.Linked(t.Context())
		kept.say(request[len(request)-1:])
		kept.hear("</r>")
		kept.say(request)
		kept.hear(replyOf("rome", "/a"))
		kept.say(ask("x", "/b"))
		assert.Contains(t, kept.rest(), "404 Not Found")
	})
}

// TestRerouteOpensAndClosesListeners: a listener that routes name no more accepts nothing, one they
// name newly does, and if one cannot be opened nothing changes.
func TestRerouteOpensAndClosesListeners(t *testing.T) {
	c, _ := startCities(t, "main", "first", "second")
	busy := startOrigin(t, "127.0.0.1:0", named("busy"))
	main := proxy.Route{Upstream: c["main"]}
	p := startProxy(t, "127.0.0.1:0", nil, func(cfg *settings) {
		cfg.Routes = []proxy.Route{main, {Listen: "127.0.0.1:0", Upstream: c["first"]}}
		cfg.ListenTo = func(ctx context.Context, addr string) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", strings.TrimPrefix(addr, "new "))
		}
	})
	first := &url.URL{Host: p.Addrs()["127.0.0.1:0"].String()}
	kept := connect(t, first)
	kept.say(ask("x", "/1"))
	kept.hear(replyOf("first", "/1"))
	second := proxy.Route{Listen: "new 127.0.0.1:0", Upstream: c["second"]}
	taken := proxy.Route{Listen: busy.l.Addr().String(), Upstream: c["first"]}
	require.Error(t, p.Reroute(t.Context(), []proxy.Route{main, second, taken}))
	kept.say(ask("x", "/2"))
	kept.hear(replyOf("first", "/2"))
	require.NoError(t, p.Reroute(t.Context(), []proxy.Route{main, second}))
	client := connect(t, &url.URL{Host: p.Addrs()["new 127.0.0.1:0"].String()})
	client.say(ask("x", "/3"))
	client.hear(replyOf("second", "/3"))
	_, err := new(net.Dialer).DialContext(t.Context(), "tcp", first.Host)
	require.Error(t, err)
	kept.say(ask("x", "/4"))
	assert.Contains(t, kept.rest(), "404 Not Found")
	again := connect(t, p.url())
	again.say(ask("x", "/5"))
	again.hear(replyOf("main", "/5"))
}

// TestCallsThatComeBeforeTheRoutes: clients that connected before the proxy started, as they do to
// a service that is restarted, go where the routes say.
func TestCallsThatComeBeforeTheRoutes(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", named("oslo"))
	for range 30 {
		var clients []*client
		p := startOffering(t, "127.0.0.1:0", nil, func(c *settings) {
			for range 4 {
				one := connect(t, &url.URL{Host: c.Listen.Addr().String()})
				one.say(ask("h", "/o"))
				clients = append(clients, one)
			}
			c.Routes = []proxy.Route{{Upstream: &proxy.Upstream{URL: o.url()}}}
		})
		for _, one := range clients {
			one.hear(replyOf("oslo", "/o"))
		}
		require.NoError(t, p.Close())
	}
}
