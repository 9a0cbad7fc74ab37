package real

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The test binary is an end of a tunnel, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == TunnelArg {
		if err := RunTunnel(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	m.Run()
}

func TestCells(t *testing.T) {
	ci, err := Cells("ci")
	require.NoError(t, err)
	assert.Len(t, ci, 16)
	all, err := Cells("all")
	require.NoError(t, err)
	assert.Subset(t, all, ci)
	seen := map[Cell]bool{}
	for _, c := range all {
		assert.False(t, seen[c], "%s stands twice", c)
		assert.NotEqual(t, c.Client, c.Server)
		seen[c] = true
	}
	for _, client := range clients {
		for _, connections := range []string{Kept, Closed} {
			for _, calls := range []int{1, 5, 20, 200} {
				assert.True(t, seen[Cell{client, "http.server", connections, calls, Readings}], client)
			}
		}
	}
	some, err := Cells("zeep to cxf")
	require.NoError(t, err)
	for _, c := range some {
		assert.Equal(t, "zeep", c.Client)
	}
	_, err = Cells("netcat")
	assert.ErrorContains(t, err, `no cell "netcat"`)
}

func TestParseCells(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"# a remark\n\nzeep cxf kept 5", "line 3: client, server, connections, calls, content"},
		{"zeep cxf kept 5 readings nightly", "line 1: client"},
		{"netcat cxf kept 5 readings", `line 1: "netcat" is not one of requests, zeep`},
		{"zeep cxf open 5 readings", `"open" is not one of kept, closed`},
		{"zeep cxf kept 7 readings", `"7" is not one of 1, 5`},
	} {
		_, err := parseCells(c.text, false)
		assert.ErrorContains(t, err, c.want)
	}
}

// The values are those of every run, and each kind is as it says.
func TestValues(t *testing.T) {
	for content, distinct := range map[string]int{Readings: len(devices), Mixed: 300, New: 800} {
		calls := conversation(content, 200)
		require.Len(t, calls, 200)
		assert.Equal(t, calls, conversation(content, 200))
		assert.Equal(t, calls[:5], conversation(content, 5), "a short one is how a long one begins")
		texts := map[string]bool{}
		for _, call := range calls {
			for _, r := range call {
				texts[r.text] = true
			}
		}
		if content == Readings {
			assert.Len(t, texts, distinct)
		} else {
			assert.GreaterOrEqual(t, len(texts), distinct*8/10, content)
		}
	}
	path := filepath.Join(t.TempDir(), "values")
	require.NoError(t, writeValues(path, Cell{Calls: 7, Content: Mixed}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Len(t, strings.Split(strings.TrimSuffix(string(text), "\n\n"), "\n\n"), 7)
}

// echoServer gives back what it gets, until the client has written all.
func echoServer(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// runTunnelEnd runs an end, and returns its address.
func runTunnelEnd(t *testing.T, args ...string) string {
	t.Helper()
	in, end := io.Pipe()
	said, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- RunTunnel(context.Background(), args, in, out) }()
	t.Cleanup(func() {
		_ = end.Close()
		assert.NoError(t, <-done)
	})
	line := make([]byte, 100)
	n, err := said.Read(line)
	require.NoError(t, err)
	return strings.TrimSpace(string(line[:n]))
}

// Tunnels carry every byte of several connections, and the link counts what they compressed.
func TestTunnels(t *testing.T) {
	sent := bytes.Repeat([]byte("a call that is as the one before. "), 3000)
	for _, c := range compressors {
		t.Run(c.name, func(t *testing.T) {
			far := runTunnelEnd(t, "far", c.name, echoServer(t))
			link, err := openTap(t.Context(), far, nil)
			require.NoError(t, err)
			near := runTunnelEnd(t, "near", c.name, link.addr())
			for range 3 {
				conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", near)
				require.NoError(t, err)
				go func() {
					_, _ = conn.Write(sent)
					_ = conn.(*net.TCPConn).CloseWrite()
				}()
				got, err := io.ReadAll(conn)
				require.NoError(t, err)
				assert.True(t, bytes.Equal(sent, got))
				require.NoError(t, conn.Close())
			}
			traffic, err := link.quiet(t.Context())
			require.NoError(t, err)
			assert.Less(t, traffic.Payload, int64(len(sent)/10))
			assert.Positive(t, traffic.Packets)
			require.NoError(t, link.close())
		})
	}
}

func TestTunnelUsage(t *testing.T) {
	assert.ErrorContains(t, RunTunnel(t.Context(), []string{"near"}, nil, nil), "COMPRESSOR")
	assert.ErrorContains(t, RunTunnel(t.Context(), []string{"near", "lzma", "x"}, nil, nil), `no compressor "lzma"`)
}

// The link takes its time, records the end that connects, and counts segments of Ethernet's length.
func TestTap(t *testing.T) {
	var recorded bytes.Buffer
	link, err := openTap(t.Context(), echoServer(t), &recorded)
	require.NoError(t, err)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", link.addr())
	require.NoError(t, err)
	began := time.Now()
	sent := bytes.Repeat([]byte("x"), 10*1460)
	_, err = conn.Write(sent)
	require.NoError(t, err)
	got := make([]byte, len(sent))
	_, err = io.ReadFull(conn, got)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(began), 2*RoundTrip, "the handshake, and the round trip of the bytes")
	traffic, err := link.quiet(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 2*len(sent), traffic.Payload)
	assert.GreaterOrEqual(t, traffic.Packets, int64(20))
	assert.Less(t, traffic.Packets, int64(60))
	require.NoError(t, conn.Close())
	require.NoError(t, link.close())
	assert.Greater(t, recorded.Len(), 2*len(sent))

	ctx, cancel := context.WithCancelCause(t.Context())
	link, err = openTap(t.Context(), echoServer(t), nil)
	require.NoError(t, err)
	stopped := errors.New("stopped")
	cancel(stopped)
	_, err = link.quiet(ctx)
	assert.ErrorIs(t, err, stopped)
	require.NoError(t, link.close())
}

// Each way to write says the same.
func TestWritings(t *testing.T) {
	call := conversation(Readings, 1)[0]
	want := envelopeOf("records", call)
	for how, name := range writingNames {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		served := make(chan struct{})
		go func() {
			(&writer{how: how, listen: l}).serve()
			close(served)
		}()
		require.NoError(t, callWriter(t.Context(), l.Addr().String(), [][]record{call}, how), name)
		require.NoError(t, l.Close())
		<-served
		var b bytes.Buffer
		require.NoError(t, write(&b, "POST / HTTP/1.1\r\n", want, how))
		assert.Contains(t, b.String(), want[:50], name)
	}
}

func TestMedianOfCalls(t *testing.T) {
	assert.Zero(t, median(nil))
	assert.Equal(t, time.Second, median([]time.Duration{time.Second}))
	assert.Equal(t, 2*time.Second, median([]time.Duration{time.Hour, 3 * time.Second, time.Second, 2 * time.Second}))
	r := Row{PairTook: 3 * time.Second, DirectTook: 2 * time.Second}
	assert.Equal(t, time.Second, r.Added())
	assert.Zero(t, Traffic{Payload: 1}.To(Traffic{}))
	assert.InDelta(t, 0.5, Traffic{Payload: 1}.To(Traffic{Payload: 2}), 0)
}
