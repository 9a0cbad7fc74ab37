package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// answerTo sends bytes over a new connection, and returns what comes back until its end.
func answerTo(t *testing.T, over streamer.Transport, addr string, octets []byte) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := over.Dial(ctx, addr)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, err = conn.Write(octets)
	require.NoError(t, err)
	got, err := io.ReadAll(conn)
	if len(got) == 0 {
		return nil // how the connection ends says nothing
	}
	require.NoError(t, err)
	return got
}

// helloPorts are ports at which streams may begin.
func helloPorts(t *testing.T) map[string]func(t *testing.T, octets []byte) []byte {
	dir := t.TempDir()
	writeCertificates(t, dir)
	serve := func(args ...string) *proxyProcess {
		args = append([]string{"serve", "--listen", "127.0.0.1:0", "-o", "json", "-q"}, args...)
		return startCommand(t, exec.CommandContext(t.Context(), "hhfr", args...))
	}
	apart := serve("--tcp", "127.0.0.1:0", "--udp", "127.0.0.1:0").addresses
	ports := map[string]func(*testing.T, []byte) []byte{}
	for name, p := range map[string]struct {
		over streamer.Transport
		addr string
	}{
		"tcp":         {tcp.Transport{}, apart["tcp"]},
		"beside HTTP": {tcp.Transport{}, serve().addresses["http"]},
		"udp":         {udp.Transport{}, apart["udp"]},
		"tls": {streamtls.New(&tls.Config{InsecureSkipVerify: true}, nil), //nolint:gosec // whoever it is
			serve("--cert", filepath.Join(dir, "server.pem"), "--key", filepath.Join(dir, "server.key")).listen},
	} {
		require.NotEmpty(t, p.addr, name)
		ports[name] = func(t *testing.T, octets []byte) []byte { return answerTo(t, p.over, p.addr, octets) }
	}
	return ports
}

// TestHelloThatCannotBeServed: who says hello wrongly is told why, at every port, in a hello
// without representation and a close, which are little. Bytes that are no hello get no such answer.
func TestHelloThatCannotBeServed(t *testing.T) {
	good := frame.Hello{Target: "http://127.0.0.1/echo", Representation: frame.Binary, Limits: frame.EarlyLimits}
	resummed := func(b []byte) []byte { // with an own check that is right
		sum := crc32.Checksum(b[:len(b)-4], crc32.MakeTable(crc32.Castagnoli))
		return binary.LittleEndian.AppendUint32(b[:len(b)-4], sum)
	}
	changed := func(change func(*frame.Hello)) []byte {
		h := good
		change(&h)
		return h.AppendTo(nil)
	}
	ports := helloPorts(t)
	mark := string(good.AppendTo(nil)[:8])
	wrongSum := good.AppendTo(nil)
	wrongSum[len(wrongSum)-1] ^= 1
	wrongScheme := good.AppendTo(nil)
	wrongScheme[len(mark)+1] = 9
	for name, tc := range map[string]struct {
		octets []byte
		code   frame.CloseCode
		says   string
	}{
		"own check": {wrongSum, frame.CloseProtocol, "own check is wrong"},
		"scheme":    {resummed(wrongScheme), frame.CloseUnsupported, "scheme 9"},
		"role": {changed(func(h *frame.Hello) { h.Target, h.Responder = "", true }), frame.CloseProtocol,
			"does not begin with the peer's hello"},
		"fragment": {changed(func(h *frame.Hello) { h.Limits.MaxFragment = 1 }), frame.CloseProtocol, "max fragment 1"},
		"token": {changed(func(h *frame.Hello) { h.Target, h.Token = "", []byte("short") }), frame.CloseProtocol,
			"token of 5"},
		"representation": {changed(func(h *frame.Hello) { h.Representation = 9 }), frame.CloseUnsupported,
			"a representation"},
		"no representation": {changed(func(h *frame.Hello) { h.Representation = 0 }), frame.CloseUnsupported,
			"a representation"},
		"stages":    {changed(func(h *frame.Hello) { h.Stages = 1 << 60 }), frame.CloseUnsupported, "stages 0x1"},
		"target":    {changed(func(h *frame.Hello) { h.Target = "\x00" }), frame.CloseUnknownSession, ""},
		"no target": {changed(func(h *frame.Hello) { h.Target = "" }), frame.CloseUnknownSession, ""},
		"too long":  {[]byte(mark + "\xff\xff\xff\xff\x0f"), frame.CloseProtocol, "length above the limit"},
		"too short": {[]byte(mark + "\x01\x01"), frame.CloseProtocol, "ends inside a field"},
	} {
		t.Run(name, func(t *testing.T) {
			for port, answer := range ports {
				code, says := tc.code, tc.says
				if port == "udp" && code == frame.CloseUnsupported && says != "scheme 9" {
					code, says = frame.CloseUnknownSession, "" // a first contact, whatever it asks for
				}
				got := answer(t, tc.octets)
				require.NotEmpty(t, got, port)
				assert.Less(t, len(got), 256, port)
				f, n, err := frame.Parse(got, 0, 0)
				require.NoError(t, err, port)
				require.IsType(t, frame.Hello{}, f, port)
				assert.Zero(t, f.(frame.Hello).Representation, port)
				f, m, err := frame.Parse(got[n:], 0, 0)
				require.NoError(t, err, port)
				require.IsType(t, frame.Close{}, f, port)
				assert.Equal(t, code, f.(frame.Close).Code, port)
				assert.Contains(t, f.(frame.Close).Text, says, port)
				assert.Len(t, got, n+m, "nothing follows, %s", port)
			}
		})
	}
	for name, octets := range map[string]string{
		"random":        string([]byte{0x93, 0x1f, 0x01, 0xfe, 0x77}),
		"almost a mark": mark[:7] + "x" + strings.Repeat("y", 99),
		"a frame":       string(frame.Close{}.AppendTo(nil)), "text": "SSH-2.0-x\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			for port, answer := range ports {
				if !strings.HasSuffix(port, "HTTP") {
					assert.Empty(t, answer(t, []byte(octets)), port)
				}
			}
		})
	}
}
