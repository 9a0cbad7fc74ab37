//go:build linux && !race

package main

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/pcapng"
)

// scriptedConn is a connection of a client with a service that has its next reply ready.
type scriptedConn struct {
	net.Conn
	local, remote netip.AddrPort
	reply         []byte
}

func (c *scriptedConn) LocalAddr() net.Addr         { return net.TCPAddrFromAddrPort(c.local) }
func (c *scriptedConn) RemoteAddr() net.Addr        { return net.TCPAddrFromAddrPort(c.remote) }
func (c *scriptedConn) Write(p []byte) (int, error) { return len(p), nil }
func (c *scriptedConn) Close() error                { return nil }
func (c *scriptedConn) Read(p []byte) (int, error) {
	if len(c.reply) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.reply)
	c.reply = c.reply[n:]
	return n, nil
}

// talker is a client of a long capture. If its connections end after each call, the capture has
// both ends of one in ten, one end of five, and none of four.
type talker struct {
	next           func() ([]byte, []byte, bool)
	closed         bool
	probes         int // connections without a call, before each
	client, server netip.Addr
	port           uint16
	conn           net.Conn
	at             *scriptedConn
}

// call makes one call, and returns its length in bytes.
func (k *talker) call(t *testing.T, rec *pcapng.Recorder, now *time.Time) int64 {
	for range k.probes {
		k.connect(rec)
		k.leave(t)
	}
	request, reply, _ := k.next()
	if k.conn == nil {
		k.connect(rec)
	}
	_, err := k.conn.Write(request)
	require.NoError(t, err)
	*now, k.at.reply = now.Add(time.Millisecond), reply
	_, err = io.ReadFull(k.conn, make([]byte, len(reply)))
	require.NoError(t, err)
	if k.closed {
		k.leave(t)
	}
	return int64(len(request) + len(reply))
}

func (k *talker) connect(rec *pcapng.Recorder) {
	k.port = max(k.port+1, 1024)
	k.at = &scriptedConn{local: netip.AddrPortFrom(k.client, k.port), remote: netip.AddrPortFrom(k.server, 80)}
	k.conn = rec.Conn(k.at)
}

func (k *talker) leave(t *testing.T) {
	if k.port%10 == 0 {
		_, err := k.conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	if k.port%10 < 6 {
		require.NoError(t, k.conn.Close())
	}
	k.conn = nil
}

// longCapture writes a capture of so many bytes at least: of clients that call one after the other,
// a tenth of a second apart.
func longCapture(t *testing.T, file string, octets int64, all []*talker) {
	f, err := os.Create(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	to := bufio.NewWriterSize(f, 1<<20)
	now := time.Date(2026, 3, 14, 9, 27, 0, 0, time.UTC)
	rec := pcapng.NewRecorder(to, func() time.Time { return now })
	for written := int64(0); written < octets; {
		for _, k := range all {
			written += k.call(t, rec, &now)
			now = now.Add(100 * time.Millisecond)
		}
	}
	require.NoError(t, rec.Close())
	require.NoError(t, to.Flush())
}

// talkers are clients that make the calls of some conversations, in turns.
func talkers(t *testing.T, n int, kinds ...func(client int) (calls iter.Seq2[[]byte, []byte], closed bool)) (
	all []*talker) {
	for i := range n {
		server := netip.AddrFrom4([4]byte{10, 0, 1, byte(i % len(kinds))})
		k := &talker{client: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), server: server, port: 1024}
		calls, closed := kinds[i%len(kinds)](i)
		next, stop := iter.Pull2(calls)
		t.Cleanup(stop)
		k.next, k.closed = next, closed
		all = append(all, k)
	}
	return all
}

// readings are calls that say little, with some text that differs.
func readings(client int) iter.Seq2[[]byte, []byte] {
	rnd := rand.New(rand.NewPCG(uint64(client), 0))
	message := func(start, body string) []byte {
		return fmt.Appendf(nil, "%s\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s", start, len(body), body)
	}
	const envelope = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` +
		`<read xmlns="urn:h"><id>%d</id>%s</read></s:Body></s:Envelope>`
	return func(yield func([]byte, []byte) bool) {
		for id := 0; ; id++ {
			var rows strings.Builder
			for range 2 {
				fmt.Fprintf(&rows, "<value>%d.%d</value>", rnd.IntN(100), rnd.IntN(10))
			}
			if !yield(message("POST /m HTTP/1.1\r\nHost: m", fmt.Sprintf(envelope, id, "")),
				message("HTTP/1.1 200 OK", fmt.Sprintf(envelope, id, rows.String()))) {
				return
			}
		}
	}
}

// A capture with more connections than are followed at once, most without a call and some without
// an end, misses nothing, and takes no memory for those that are over.
func TestManyConnectionsMissNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "many.pcapng")
	all := talkers(t, 20, func(client int) (iter.Seq2[[]byte, []byte], bool) { return readings(client), client > 0 })
	for _, k := range all[1:] {
		k.probes = 9
	}
	longCapture(t, file, 500_000, all)
	const enough = 96 << 20
	requireFrugal(t, enough, nil, "estimate", file, "-q", "--link", "gprs", "-o", "json")
	requireFrugal(t, enough, nil, "decode", file, "-q", "-o", "jsonl")
}
