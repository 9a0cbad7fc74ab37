package hhfr_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// idleGoroutines is how many goroutines an idle session may take at a server: its reader.
const idleGoroutines = 1

// Sessions that begin with the upgrade of a connection of HTTP take no goroutines of net/http, nor
// any that only wait, while nothing happens.
func TestIdleSessionsTakeFewGoroutines(t *testing.T) {
	const sessions = 50
	addr := start(t, &hhfr.Server{Handler: echo, Store: newStore(t)})
	before := runtime.NumGoroutine()
	for range sessions {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, err = io.WriteString(conn, "OPTIONS /echo HTTP/1.1\r\nHost: "+addr+"\r\nHHFR: 1\r\n"+
			"Connection: Upgrade\r\nUpgrade: hhfr/1\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine()-before < (idleGoroutines+1)*sessions },
		10*time.Second, time.Millisecond, "net/http ends its goroutines by and by; there may be some of the server")
}
