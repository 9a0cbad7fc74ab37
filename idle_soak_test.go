//go:build soak

package hhfr_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// idleServer is set in the process that serves the sessions of TestSoakIdleSessions.
const idleServer = "HHFR_IDLE_SERVER"

// footprint is what a process takes, in bytes.
type footprint struct{ RSS, Freed, Heap, Stacks, Goroutines int64 }

// each is what each of n sessions added.
func (f footprint) each(since footprint, n int64) footprint {
	return footprint{(f.RSS - since.RSS) / n, (f.Freed - since.Freed) / n, (f.Heap - since.Heap) / n,
		(f.Stacks - since.Stacks) / n, (f.Goroutines - since.Goroutines) / n}
}

// What an idle session may take of the resident memory of a server, in bytes: when it was opened,
// and how much more once it was used and is idle again.
const (
	idleResident = 12 << 10
	usedResident = 7 << 10
)

// TestSoakIdleSessions: a server in a process of its own has many sessions, by upgrade, that do
// nothing. What each takes is bounded when it was opened, and when it was used and is idle again.
// Sessions in TLS, and connections of net/http alone, are printed beside that.
//
// Variables of the environment say how many (HHFR_IDLE_N), of which kinds (HHFR_IDLE_KINDS), and
// where the server writes profiles (HHFR_IDLE_PROFILES).
func TestSoakIdleSessions(t *testing.T) {
	if kind := os.Getenv(idleServer); kind != "" {
		if os.Getenv("HHFR_IDLE_PROFILES") != "" {
			runtime.MemProfileRate = 4096
		}
		serveIdle(t, kind)
		return
	}
	n := int64(2000)
	if v, err := strconv.ParseInt(os.Getenv("HHFR_IDLE_N"), 10, 64); err == nil {
		n = v
	}
	for _, kind := range strings.Fields(cmp.Or(os.Getenv("HHFR_IDLE_KINDS"), "http https tls cleartext")) {
		t.Run(kind, func(t *testing.T) { idle(t, kind, n) })
	}
}

// idle opens n sessions or connections of a kind, uses sessions in cleartext, and closes all.
func idle(t *testing.T, kind string, n int64) {
	s := startIdle(t, kind)
	none := s.measure("none")
	say := func(when string) footprint {
		f := s.measure(when).each(none, n)
		t.Logf("%-24s RSS %6d, freed %6d, heap %6d, stacks %6d, goroutines %d", when, f.RSS, f.Freed, f.Heap,
			f.Stacks, f.Goroutines)
		return f
	}
	began := time.Now()
	sessions := s.open(t, int(n))
	t.Logf("opened in %v", time.Since(began))
	say("open")
	if kind == "tls" || kind == "cleartext" {
		time.Sleep(40 * time.Second)
		open := say("open for 40 s")
		for _, calls := range []int{1, 20} {
			if kind == "tls" {
				break
			}
			for range calls {
				s.each(sessions, (*idleClient).call)
			}
			say(fmt.Sprintf("after %d calls", calls))
			time.Sleep(time.Minute)
			used := say(fmt.Sprintf("after %d calls and 60 s", calls))
			assert.Less(t, open.Freed, int64(idleResident))
			assert.Less(t, used.Freed-open.Freed, int64(usedResident))
		}
	}
	began = time.Now()
	s.each(sessions, (*idleClient).close)
	t.Logf("closed in %v", time.Since(began))
}

type idleProcess struct {
	t    *testing.T
	kind string
	addr string
	in   io.Writer
	out  *bufio.Scanner
	book *binary.Book
	w5   [][]byte
}

func startIdle(t *testing.T, kind string) *idleProcess {
	cmd := exec.Command(os.Args[0], "-test.run=^TestSoakIdleSessions$", "-test.timeout=0")
	cmd.Env = append(os.Environ(), idleServer+"="+kind)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	s := &idleProcess{t: t, kind: kind, in: in, out: bufio.NewScanner(out),
		book: binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})})}
	require.True(t, s.out.Scan())
	s.addr = s.out.Text()
	files, err := filepath.Glob(filepath.Join(shared.Dir(t), "workloads", "w5-headers", "*.xml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		s.w5 = append(s.w5, b)
	}
	return s
}

func (s *idleProcess) measure(name string) (f footprint) {
	_, err := fmt.Fprintln(s.in, strings.ReplaceAll(name, " ", "-"))
	require.NoError(s.t, err)
	require.True(s.t, s.out.Scan())
	require.NoError(s.t, json.Unmarshal(s.out.Bytes(), &f))
	return f
}

func (s *idleProcess) each(all []*idleClient, do func(*idleClient) error) {
	var wg sync.WaitGroup
	next := make(chan *idleClient)
	for range 16 {
		wg.Go(func() {
			for c := range next {
				assert.NoError(s.t, do(c))
			}
		})
	}
	for _, c := range all {
		next <- c
	}
	close(next)
	wg.Wait()
}

type idleClient struct {
	s      *idleProcess
	conn   net.Conn
	in     *bufio.Reader
	stream *streamer.Stream
	calls  int
}

func (s *idleProcess) open(t *testing.T, n int) []*idleClient {
	all := make([]*idleClient, n)
	for i := range all {
		all[i] = &idleClient{s: s}
	}
	s.each(all, (*idleClient).open)
	require.False(t, t.Failed())
	return all
}

func (c *idleClient) open() error {
	var err error
	if c.conn, err = net.Dial("tcp", c.s.addr); err != nil {
		return err
	}
	if c.s.kind == "tls" || c.s.kind == "https" {
		c.conn = tls.Client(c.conn, &tls.Config{InsecureSkipVerify: true})
	}
	if c.s.kind == "http" || c.s.kind == "https" {
		return c.call()
	}
	_, err = io.WriteString(c.conn, "OPTIONS /echo HTTP/1.1\r\nHost: x\r\nHHFR: 1\r\nConnection: Upgrade\r\n"+
		"Upgrade: hhfr/1\r\n\r\n")
	if err != nil {
		return err
	}
	var head []byte
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		var b [1]byte
		if _, err := io.ReadFull(c.conn, b[:]); err != nil {
			return err
		}
		head = append(head, b[0])
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) {
		return fmt.Errorf("%q", head)
	}
	c.stream, _, err = streamer.DialUpgraded(context.Background(), c.conn,
		streamer.Config{Coder: c.s.book.Coder(binary.Options{})}, false)
	return err
}

func (c *idleClient) call() error {
	m := c.s.w5[c.calls%len(c.s.w5)]
	c.calls++
	if c.stream == nil {
		if c.in == nil {
			c.in = bufio.NewReader(c.conn)
		}
		_, err := fmt.Fprintf(c.conn, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml; charset=utf-8\r\n"+
			"SOAPAction: \"\"\r\nContent-Length: %d\r\n\r\n%s", len(m), m)
		if err != nil {
			return err
		}
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil {
			return err
		}
		return same(resp.Body, m)
	}
	reply, err := c.stream.Lane(0).Call(context.Background(), streamer.NewMessage(nil, m))
	if err != nil {
		return err
	}
	return same(reply.Body, m)
}

func same(r io.Reader, m []byte) error {
	b, err := io.ReadAll(r)
	if err == nil && !bytes.Equal(b, m) {
		err = fmt.Errorf("%q instead of %q", b, m)
	}
	return err
}

func (c *idleClient) close() error {
	if c.stream == nil {
		return c.conn.Close()
	}
	return c.stream.Close()
}

// serveIdle serves, and answers each line of its input with its footprint.
func serveIdle(t *testing.T, kind string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	log := slog.New(slog.DiscardHandler)
	cfg := oneport.Config{Log: log, MaxSniffed: 20000, MaxPerPeer: 20000}
	addresses := map[string]string{"tcp": ":1"}
	if kind == "tls" || kind == "https" {
		addresses = map[string]string{"tls": ":1"}
		cfg.TLS = &tls.Config{Certificates: []tls.Certificate{authority(t).Issue(time.Hour, "127.0.0.1")}}
	}
	services := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = w.Write(body)
	})
	h, err := responder.NewHandler(services, responder.Config{Addresses: addresses, MaxSessions: 20000,
		MaxPerPeer: 20000, Log: log})
	require.NoError(t, err)
	switch kind {
	case "http":
		go func() { _ = http.Serve(l, services) }()
	case "https":
		go func() { _ = http.Serve(tls.NewListener(l, cfg.TLS), services) }()
	default:
		port := oneport.New(l, cfg)
		go func() {
			_ = (&http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second,
				IdleTimeout: 2 * time.Minute}).Serve(port.HTTP())
		}()
		go func() { _ = h.ServeStreams(context.Background(), port.Streams()) }()
	}
	fmt.Println(l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		b, err := json.Marshal(measured())
		require.NoError(t, err)
		if dir := os.Getenv("HHFR_IDLE_PROFILES"); dir != "" {
			for _, p := range []string{"heap", "goroutine"} {
				f, err := os.Create(filepath.Join(dir, kind+"-"+in.Text()+"."+p))
				require.NoError(t, err)
				require.NoError(t, pprof.Lookup(p).WriteTo(f, 0))
				require.NoError(t, f.Close())
			}
		}
		fmt.Println(string(b))
	}
	os.Exit(0)
}

func measured() (f footprint) {
	f.RSS = resident()
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.Freed, f.Heap, f.Stacks, f.Goroutines = resident(), int64(m.HeapAlloc), int64(m.StackInuse),
		int64(runtime.NumGoroutine())
	return f
}

func resident() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return n << 10
}
