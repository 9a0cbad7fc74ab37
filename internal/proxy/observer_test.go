package proxy_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/proxy"
)

func soapOf(operation string) string {
	return `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><m:` + operation +
		` xmlns:m="urn:m"/></e:Body></e:Envelope>`
}

var faultOf = map[string]string{
	"1.1": `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><e:Fault><faultcode>e:Client` +
		`</faultcode><faultstring>no</faultstring></e:Fault></e:Body></e:Envelope>`,
	"1.2": `<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope"><e:Body><e:Fault><e:Code><e:Value>` +
		`e:Sender</e:Value></e:Code></e:Fault></e:Body></e:Envelope>`,
}

func zipped(text string) string {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.HuffmanOnly) // so that a pair does not find out how it was coded
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

func replying(status int, body string, fields ...string) string {
	return fmt.Sprintf("HTTP/1.1 %d Some\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n%s\r\n%s", status,
		len(body), strings.Join(fields, ""), body)
}

func inOneChunk(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d Some\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n"+
		"0\r\n\r\n", status, len(body), body)
}

// scripted are what a server says to the path of a request; empty: it closes the connection.
var scripted = map[string]string{
	"/ok":      replying(200, soapOf("reply")),
	"/fault":   inOneChunk(500, faultOf["1.1"]),
	"/fault12": replying(400, faultOf["1.2"]),
	"/fault2":  replying(200, faultOf["1.1"]),
	"/zipped":  replying(500, zipped(faultOf["1.1"]), "Content-Encoding: gzip\r\n"),
	"/deflate": replying(500, zipped("<html>e:Fault</html>"), "Content-Encoding: deflate\r\n"), // it is not
	"/bad":     replying(400, "<html>e:Fault</html>"),
	"/digest":  replying(401, "", "WWW-Authenticate: Digest realm=\"x\"\r\n"),
	"/error":   replying(500, soapOf("Fault")), // of another namespace
	"/interim": "HTTP/1.1 103 Early\r\n\r\n" + replying(200, soapOf("reply")),
	"/last":    "HTTP/1.1 500 No\r\nConnection: close\r\nContent-Type: text/xml\r\n\r\n" + faultOf["1.1"],
	"/cut":     "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<half",
	"/upgrade": "HTTP/1.1 101 Now\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
	"/gone":    "",
	"/nothttp": "220 ready\r\n",
}

func serveAnswers(c net.Conn) {
	r := &requests{conn: c}
	for {
		h, err := r.head()
		if err != nil {
			return
		}
		if _, _, err = r.body(&h); err != nil {
			return
		}
		path := string(h.Target())
		answer := scripted[path]
		if string(h.Method()) == "HEAD" {
			answer, _, _ = strings.Cut(answer, "\r\n\r\n")
			answer += "\r\n\r\n"
		}
		if _, err := io.WriteString(c, answer); err != nil || answer == "" {
			return
		}
		switch path {
		case "/last", "/cut", "/nothttp":
			return
		case "/upgrade":
			_, _ = io.Copy(c, io.MultiReader(bytes.NewReader(r.buf), c))
			return
		}
	}
}

func soapPost(path, body string, fields ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n%s\r\n%s", path,
		len(body), strings.Join(fields, ""), body)
}

// outcome is what is counted of calls, over streams and plainly.
type outcome struct{ calls, faults, failed int64 }

func outcomeOf(u *meter.UpstreamCounts) outcome {
	o := outcome{u.Calls, u.Faults, u.Failed}
	for _, p := range u.Plain {
		o.calls += p.Calls
		o.faults += p.Faults
		o.failed += p.Failed
	}
	return o
}

// TestCallsAreCountedAsWhatTheyAre: however calls are forwarded, and however their bytes come, each
// one counts as a call, one with a fault as a fault, and one without a whole reply as failed.
func TestCallsAreCountedAsWhatTheyAre(t *testing.T) {
	const action = "SOAPAction: \"urn:m/poll\"\r\n"
	type step struct {
		say  string
		hear string // empty: the connection ends
	}
	ask := func(path string, fields ...string) step {
		return step{soapPost(path, soapOf("poll"), fields...), scripted[path]}
	}
	head := strings.Replace(soapPost("/ok", ""), "POST", "HEAD", 1)
	for name, tt := range map[string]struct {
		steps []step
		slow  bool // byte by byte
		want  outcome
		polls int64 // calls of the operation
	}{
		"good":         {[]step{ask("/ok"), ask("/ok"), ask("/interim")}, false, outcome{3, 0, 0}, 3},
		"byte by byte": {[]step{ask("/ok", action), ask("/fault", action)}, true, outcome{2, 1, 0}, 2},
		"faults": {[]step{ask("/fault"), ask("/fault12"), ask("/fault2"), ask("/zipped"), ask("/ok"), ask("/last")},
			false, outcome{6, 5, 0}, 6},
		"no faults": {[]step{ask("/bad"), ask("/digest"), ask("/error"), ask("/deflate")}, false, outcome{4, 0, 0}, 4},
		"actions": {[]step{{soapPost("/ok", "x", action), scripted["/ok"]},
			{soapPost("/ok", "", action), scripted["/ok"]},
			{"GET /ok HTTP/1.1\r\nHost: x\r\n\r\n", scripted["/ok"]}}, false, outcome{3, 0, 0}, 2},
		"several at once": {[]step{{strings.Repeat(soapPost("/fault", soapOf("poll")), 3),
			strings.Repeat(scripted["/fault"], 3)}}, false, outcome{3, 3, 0}, 3},
		"chunks": {[]step{{"POST /ok HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(soapOf("poll")), soapOf("poll")), scripted["/ok"]}, ask("/ok")},
			false, outcome{2, 0, 0}, 2},
		"HEAD":     {[]step{{head, ""}, ask("/ok")}, false, outcome{2, 0, 0}, 1},
		"cut":      {[]step{ask("/ok"), ask("/cut")}, false, outcome{2, 0, 1}, 2},
		"gone":     {[]step{ask("/ok"), ask("/gone")}, false, outcome{2, 0, 1}, 2},
		"not HTTP": {[]step{ask("/nothttp")}, false, outcome{1, 0, 1}, 1},
	} {
		for way, forward := range forwardings {
			t.Run(name+"/"+way, func(t *testing.T) {
				m := meter.New(time.Now())
				o := startOrigin(t, "127.0.0.1:0", serveAnswers)
				c := connect(t, forward(t, o, countsIn(m)).url())
				for _, s := range tt.steps {
					for part := range strings.SplitSeq(s.say, map[bool]string{true: "", false: "\x00"}[tt.slow]) {
						c.say(part)
					}
					switch {
					case strings.HasPrefix(s.say, "HEAD"):
						c.hear("\r\n\r\n")
					case s.hear == "":
						_, _ = io.ReadAll(c)
					default:
						c.hear(s.hear)
					}
				}
				require.NoError(t, c.Close())
				var got, busy outcome
				overStreams := int64(0)
				assert.Eventually(t, func() bool {
					got, busy, overStreams = outcome{}, outcome{}, 0
					for _, u := range countsOf(m, "near") { // those of both ends of a pair
						one := outcomeOf(u)
						got = outcome{got.calls + one.calls, got.faults + one.faults, got.failed + one.failed}
						busy.calls += u.InProgress
						overStreams += u.Calls
					}
					return got.calls == tt.want.calls && busy.calls == 0
				}, patience, time.Millisecond)
				assert.Equal(t, tt.want, got)
				assert.Equal(t, way == "pair", overStreams > 0, "the way")
				for url := range countsOf(m, "far") {
					eventually(t, m, "far", url, func(u *meter.UpstreamCounts) bool { return outcomeOf(u) == tt.want })
				}
				var polls, times outcome
				for _, op := range m.Snapshot(time.Now()).Operations {
					if op.Role != "near" {
						continue
					}
					times.calls += op.Buckets[16].Calls + op.Plain.Buckets[16].Calls
					if op.Operation == "poll" {
						polls = outcome{op.Calls + op.Plain.Calls, op.Faults + op.Plain.Faults, 0}
					}
				}
				assert.Equal(t, tt.polls, polls.calls)
				assert.Equal(t, tt.want.faults, polls.faults)
				assert.Equal(t, tt.want.calls, times.calls, "each one is in the histogram")
			})
		}
	}
}

// TestTunnelsHaveOneCall: what follows an Upgrade is no call, plainly.
func TestTunnelsHaveOneCall(t *testing.T) {
	for _, way := range []string{"plain", "plain by routes"} {
		m := meter.New(time.Now())
		o := startOrigin(t, "127.0.0.1:0", serveAnswers)
		c := connect(t, forwardings[way](t, o, countsIn(m)).url())
		c.say("GET /upgrade HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
		c.hear(scripted["/upgrade"])
		c.say(soapPost("/ok", "no call"))
		c.hear("no call")
		require.NoError(t, c.Close())
		eventually(t, m, "near", o.url().String(), func(u *meter.UpstreamCounts) bool {
			return outcomeOf(u) == outcome{1, 0, 0}
		})
	}
}

// TestUnreachableCountsAsFailed: calls that get no further than this proxy are calls that failed:
// where nobody listens, and where no route leads.
func TestUnreachableCountsAsFailed(t *testing.T) {
	m := meter.New(time.Now())
	o := startOrigin(t, "127.0.0.1:0", serveAnswers)
	gone := o.url()
	o.close()
	p := startProxy(t, "127.0.0.1:0", nil, func(cfg *settings) {
		cfg.Meter, cfg.PlainOnly = m, true
		cfg.Routes = []proxy.Route{{Path: "/service", Upstream: &proxy.Upstream{URL: gone}}}
	})
	for path, status := range map[string]string{"/service": " 502 ", "/nowhere": " 404 "} {
		c := connect(t, p.url())
		c.say(soapPost(path, soapOf("poll")))
		assert.Contains(t, c.rest(), status)
	}
	for _, url := range []string{gone.String(), meter.Other} {
		eventually(t, m, "near", url, func(u *meter.UpstreamCounts) bool { return outcomeOf(u) == outcome{1, 0, 1} })
	}
	other := countsOf(m, "near")[meter.Other].Plain[0]
	assert.Equal(t, "no_route", other.Reason)
	assert.False(t, other.FallBack)
}

// TestFallBacks: calls go plainly where a stream is wanted; where none is, they are no fall-backs.
func TestFallBacks(t *testing.T) {
	for wanted, reason := range map[bool]string{true: "no_partner", false: "no_offer"} {
		m := meter.New(time.Now())
		o := startOrigin(t, "127.0.0.1:0", serveAnswers)
		c := connect(t, startProxy(t, "127.0.0.1:0", o.url(), func(cfg *settings) {
			cfg.Meter, cfg.PlainOnly = m, !wanted
		}).url())
		for range 30 {
			c.say(soapPost("/ok", soapOf("poll")))
			c.hear(scripted["/ok"])
		}
		eventually(t, m, "near", o.url().String(), func(u *meter.UpstreamCounts) bool {
			return len(u.Plain) == 1 && u.Plain[0].Calls == 30
		})
		p := countsOf(m, "near")[o.url().String()].Plain[0]
		assert.Equal(t, reason, p.Reason)
		assert.Equal(t, wanted, p.FallBack)
		assert.EqualValues(t, 1, p.Connections)
	}
}
