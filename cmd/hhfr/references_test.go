package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// requestTap passes connections on to an address, and keeps what clients send there.
type requestTap struct {
	net.Listener
	to   string
	wait sync.WaitGroup
	mu   sync.Mutex
	sent bytes.Buffer
}

func tapped(t *testing.T, to string) *requestTap {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &requestTap{Listener: l, to: to}
	p.wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wait.Go(func() { p.relay(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.wait.Wait()
	})
	return p
}

func (p *requestTap) relay(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	p.wait.Go(func() {
		_, _ = io.Copy(up, io.TeeReader(conn, p))
		_ = up.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(conn, up)
}

// take returns what clients have sent since the last call, once they are gone.
func (p *requestTap) take() (sent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent = p.sent.String()
	p.sent.Reset()
	return sent
}

// Write keeps what was sent.
func (p *requestTap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent.Write(b)
}

var inPlaceOfBlocks = regexp.MustCompile(`<r xmlns="hhfr:ref"[^>]*>[^<]*</r>`)

// Of 100 requests in plain SOAP, 32 at a time, with four blocks of 312 bytes that do not change, at
// most 60 % travel: all but the first have one reference of at most 80 bytes in their
// place. The next process with the same store refers from its first message on, and puts nothing
// again.
func TestReferencesByTheCommand(t *testing.T) {
	t.Parallel()
	const messages = 100
	dir := t.TempDir()
	store := tapped(t, listening(t, "context", "serve", "--listen", "127.0.0.1:0", "--store", "mem:").Host)
	common := "http://" + store.Addr().String() + "/"
	server := tapped(t, listening(t, "serve", "--listen", "127.0.0.1:0", "--udp", "none", "--store", "mem:",
		"--common-store", common).Host)
	headers := ""
	for i := range 4 {
		block := fmt.Sprintf(`<f:Part%d xmlns:f="urn:example:fleet">`, i)
		headers += block + strings.Repeat("x", 312-len(block)-len("</f:Part0>")) + fmt.Sprintf("</f:Part%d>", i)
	}
	var files []string
	for i := range messages {
		files = append(files, filepath.Join(dir, fmt.Sprintf("%d.xml", i)))
		require.NoError(t, os.WriteFile(files[i], fmt.Appendf(nil, `<SOAP-ENV:Envelope xmlns:SOAP-ENV=`+
			`"http://schemas.xmlsoap.org/soap/envelope/"><SOAP-ENV:Header>%s<id xmlns="urn:x">%d</id>`+
			`</SOAP-ENV:Header><SOAP-ENV:Body><m:op xmlns:m="urn:example:op">%d</m:op></SOAP-ENV:Body>`+
			`</SOAP-ENV:Envelope>`,
			headers, i, i), 0o600))
	}
	stream := func(to *requestTap, args ...string) (sent string) {
		t.Helper()
		args = append(append([]string{"stream", "http://" + to.Addr().String() + "/echo"}, files...), args...)
		saved := t.TempDir()
		args = append(args, "--concurrency", "32", "-q", "--save-dir", saved)
		out, err := exec.CommandContext(t.Context(), "hhfr", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		var want, got []string
		for i, file := range files {
			want = append(want, string(shared.Read(t, file)))
			got = append(got, string(shared.Read(t, filepath.Join(saved, fmt.Sprintf("%06d-reply.xml", i+1)))))
		}
		slices.Sort(want)
		slices.Sort(got)
		require.True(t, slices.Equal(want, got), "all replies are whole")
		return to.take()
	}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		body, _ := io.ReadAll(r.Body) // net/http reads no more once the reply has begun
		_, _ = w.Write(body)
	}))
	defer echo.Close()
	old := tapped(t, echo.Listener.Addr().String())
	plain := stream(old)
	referring := []string{"--transport", "http", "--store", filepath.Join(dir, "store"), "--common-store", common}
	for i := range 4 {
		referring = append(referring, "--common-header", fmt.Sprintf("{urn:example:fleet}Part%d", i))
	}
	var whole []int
	for run := range 2 {
		sent := stream(server, referring...)
		put := store.take()
		made := inPlaceOfBlocks.FindAllString(sent, -1)
		for _, reference := range made {
			assert.LessOrEqual(t, len(reference), 80, reference)
		}
		whole = append(whole, strings.Count(sent, "Part3>"))
		assert.Len(t, made, messages-whole[run], "one reference for all four blocks")
		assert.LessOrEqual(t, len(sent), len(plain)*60/100, "with the offer")
		assert.Equal(t, run == 0, strings.Contains(put, "urn:hhfr:fragment:"), "it is put once")
	}
	assert.LessOrEqual(t, whole[0], 3, "the first, and those of the replies that named none")
	assert.Zero(t, whole[1], "the next session refers at once")
}
