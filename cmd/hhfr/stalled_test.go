//go:build linux && !race

package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// longBodies are bodies of 16 MB by what travels of them: columns of values, next to nothing, a bit
// for each row, numbers, bytes, and text.
func longBodies() map[string]string {
	const length = 16 << 20
	rnd := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, length/4*3)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	rows := func(row func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < length; i++ {
			b.WriteString(row(i))
		}
		return b.String()
	}
	bodies := map[string]string{
		"records": rows(func(i int) string {
			return fmt.Sprintf("<r a=\"%d\"><x>name %d</x><y>%.3f</y></r>\n", i, rnd.IntN(1e3), rnd.Float64())
		}),
		"same":    rows(func(int) string { return `<r a="1"><x>the same the same the same the same</x><y>2</y></r>` }),
		"rows":    rows(func(int) string { return "<r/>" }),
		"numbers": rows(func(i int) string { return fmt.Sprintf("<a>%d</a>", i%2) }),
		"base64":  "<data>" + base64.StdEncoding.EncodeToString(random) + "</data>",
		"text":    rows(func(int) string { return fmt.Sprintf("%x &amp; ", rnd.Uint64()) }),
	}
	for kind, rows := range bodies {
		bodies[kind] = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` +
			`<op xmlns="urn:h">` + rows + `</op></s:Body></s:Envelope>`
	}
	return bodies
}

// stalled is clients of a pair that send requests and read no reply, or servers that read no
// request, while another client calls. Their bodies are long, of all kinds in turn.
type stalled struct {
	t       *testing.T
	bodies  []string
	chunked func(client int) bool
	clients int
	upward  bool // the servers do not read; else the clients

	release chan struct{}
	begun   atomic.Int64
	moved   atomic.Int64 // bytes that the pair took
	near    *proxyProcess
}

func (s *stalled) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	number, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/stalled/"))
	if err != nil {
		_, _ = io.Copy(w, r.Body)
		return
	}
	s.begun.Add(1)
	if s.upward {
		<-s.release
		return
	}
	body, chunked := s.body(number)
	if !chunked {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	for i := 0; len(body) > 0; i++ {
		n := min(len(body), 1000+i%7*1000)
		if _, err := io.WriteString(w, body[:n]); err != nil {
			return
		}
		s.moved.Add(int64(n))
		body = body[n:]
	}
}

func (s *stalled) body(client int) (body string, chunked bool) {
	return s.bodies[client%len(s.bodies)], s.chunked(client)
}

// ask sends a request, and reads nothing.
func (s *stalled) ask(conn net.Conn, number int) {
	body, chunked := "<q/>", false
	if s.upward {
		body, chunked = s.body(number)
	}
	length := fmt.Sprintf("Content-Length: %d", len(body))
	if chunked {
		length = "Transfer-Encoding: chunked"
	}
	_, err := fmt.Fprintf(conn, "POST /stalled/%d HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\n%s\r\n\r\n",
		number, length)
	for i := 0; len(body) > 0 && err == nil; i++ {
		n := min(len(body), 1000+i%7*1000)
		if chunked {
			_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", n, body[:n])
		} else {
			_, err = io.WriteString(conn, body[:n])
		}
		s.moved.Add(int64(n))
		body = body[n:]
	}
}

// call makes a call of the other client.
func (s *stalled) call() {
	c := http.Client{Timeout: time.Minute}
	r, err := c.Post(s.near.url("/"), "text/xml; charset=utf-8", strings.NewReader("<m>1</m>"))
	require.NoError(s.t, err)
	got, err := io.ReadAll(r.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, "<m>1</m>", string(got))
	_ = r.Body.Close()
}

// run is over when nothing moves any more; it returns how many kB either half of the pair took at
// most beyond what it took before.
func (s *stalled) run() (near, far int64) {
	s.release = make(chan struct{})
	origin := httptest.NewServer(s)
	defer origin.Close()
	there := startProxyProcess(s.t, "127.0.0.1:0", origin.URL+"/")
	s.near = startProxyProcess(s.t, "127.0.0.1:0", there.url("/"), "-v")
	s.near.linked(1)
	s.call()
	nearUnused, farUnused := mostMemory(s.t, s.near), mostMemory(s.t, there)
	for number := range s.clients {
		conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.near.listen)
		require.NoError(s.t, err)
		defer func() { _ = conn.Close() }()
		go s.ask(conn, number)
	}
	var longest time.Duration
	for still, moved := 0, int64(0); still < 200; still++ {
		began := time.Now()
		s.call()
		longest = max(longest, time.Since(began))
		if now := s.moved.Load(); now != moved || s.begun.Load() < int64(s.clients) {
			still, moved = 0, now
		}
	}
	near, far = mostMemory(s.t, s.near)-nearUnused, mostMemory(s.t, there)-farUnused
	s.t.Logf("near %d kB more, far %d kB more, longest call %v", near, far, longest)
	close(s.release)
	s.near.kill()
	there.kill()
	return near, far
}

// TestNobodyReads: of what nobody reads a half holds little of each message, however much the
// content that came of it joins to, or however it is framed. The other half has it to send.
func TestNobodyReads(t *testing.T) {
	bodies := longBodies()
	never, always := func(int) bool { return false }, func(int) bool { return true }
	t.Run("replies", func(t *testing.T) {
		near, _ := (&stalled{t: t, bodies: []string{bodies["rows"], bodies["same"]}, chunked: never, clients: 32}).run()
		assert.Less(t, near, int64(68<<10))
	})
	t.Run("requests", func(t *testing.T) {
		near, _ := (&stalled{t: t, bodies: []string{bodies["text"]}, chunked: always, clients: 32, upward: true}).run()
		assert.Less(t, near, int64(80<<10))
	})
}
