package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFullFarHalfIsAskedAgain: a far half that has no place for the address of the near one answers
// its offer with status 503. When the time that it names is over, and there is place again, calls
// go over a stream, long before --remember.
func TestFullFarHalfIsAskedAgain(t *testing.T) {
	t.Parallel()
	origin := httptest.NewServer(&numbered{seen: map[string]int{}})
	t.Cleanup(origin.Close)
	far := startProxyProcess(t, "127.0.0.1:0", origin.URL+"/service", "--no-offer", "--max-per-peer", "2")
	var kept []net.Conn
	for range 2 {
		conn, err := net.Dial("tcp", far.listen)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "GET /service HTTP/1.1\r\nHost: h\r\n\r\n")
		require.NoError(t, err)
		reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		kept = append(kept, conn)
	}
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/service"), "--mode", "explicit", "--remember", "1h", "-v")
	near.told("it is asked again")
	for _, conn := range kept {
		require.NoError(t, conn.Close())
	}
	near.linked(1)
	c := &callers{t: t, to: near.url("/service"), answers: map[string]bool{}}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	c.call(client, 1)
	assert.EqualValues(t, 1, c.through.Load())
	near.end()
	far.end()
	said := near.errs.String()
	assert.Equal(t, 1, strings.Count(said, "it is asked again"), said)
	assert.Contains(t, said, "503")
}
