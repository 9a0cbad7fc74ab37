package estimate

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"iter"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/workload"
)

// service is a server and its clients, of which a capture is made.
type service struct {
	clients int
	// calls are those of one client, each with the reply.
	calls func(client int) iter.Seq2[[]byte, []byte]
	// every is the time from one call to the next one, took that of the server.
	every, took time.Duration
	// closed: each call has a connection of its own; the server ends it, or else the client.
	closed, byServer bool
}

var service1 = netip.MustParseAddrPort("192.0.2.1:8080")

// ends are the addresses of a connection.
type ends struct {
	net.Conn
	local, remote netip.AddrPort
}

func (c ends) LocalAddr() net.Addr  { return net.TCPAddrFromAddrPort(c.local) }
func (c ends) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

// capture returns a capture of the service, taken at its clients.
func (s service) capture(t *testing.T) []byte {
	var b bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		rec := pcapng.NewRecorder(&b, time.Now)
		var all sync.WaitGroup
		for client := range s.clients {
			all.Go(func() {
				time.Sleep(time.Duration(client) * s.every / time.Duration(s.clients))
				s.client(t, rec, client)
			})
		}
		all.Wait()
		require.NoError(t, rec.Close())
	})
	return b.Bytes()
}

func (s service) client(t *testing.T, rec *pcapng.Recorder, client int) {
	port := uint16(20000)
	var here, there net.Conn
	for request, reply := range s.calls(client) {
		next := time.Now().Add(s.every)
		if here == nil || s.closed {
			var conn net.Conn
			conn, there = inproc.Pipe(1 << 20)
			host := netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + client)})
			port++
			here = rec.Conn(ends{conn, netip.AddrPortFrom(host, port), service1})
		}
		_, err := here.Write(request)
		require.NoError(t, err)
		_, err = io.ReadFull(there, make([]byte, len(request)))
		require.NoError(t, err)
		time.Sleep(s.took + time.Millisecond)
		_, err = there.Write(reply)
		require.NoError(t, err)
		_, err = io.ReadFull(here, make([]byte, len(reply)))
		require.NoError(t, err)
		if s.closed {
			time.Sleep(time.Millisecond)
			if s.byServer {
				_ = there.Close()
				_, _ = io.Copy(io.Discard, here)
			}
			_ = here.Close()
		}
		time.Sleep(time.Until(next))
	}
}

// post is an HTTP request or reply with a body.
func post(start string, body []byte, fields ...string) []byte {
	b := []byte(start + "\r\nContent-Type: text/xml; charset=utf-8\r\n")
	for _, f := range fields {
		b = append(b, f+"\r\n"...)
	}
	return append(http1.AppendEnd(fmt.Appendf(b, "Content-Length: %d\r\n", len(body))), body...)
}

const requestLine = "POST /echo HTTP/1.1\r\nHost: 192.0.2.1:8080\r\nUser-Agent: client/1.0\r\nSOAPAction: \"\""

// chunked is an HTTP reply in chunks.
func chunked(body []byte) []byte {
	b := http1.AppendEnd([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n"))
	for len(body) > 0 {
		n := min(4096, len(body))
		b, body = http1.AppendChunk(b, body[:n]), body[n:]
	}
	return http1.AppendLastChunk(b)
}

// zipped is a reply that is compressed.
func zipped(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body)
	_ = w.Close()
	return post("HTTP/1.1 200 OK", b.Bytes(), "Content-Encoding: gzip")
}

// byZlib is the same, as zlib compresses it.
func byZlib(body []byte) []byte {
	how, _ := deflate.Parse("6f8g3")
	coded, _ := how.Append(nil, body)
	return post("HTTP/1.1 200 OK", coded, "Content-Encoding: gzip")
}

// calls makes n calls of messages, each of which is replied to with the one after it.
func calls(messages iter.Seq[[]byte], n int, reply func([]byte) []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		next, stop := iter.Pull(messages)
		defer stop()
		for range n {
			request, _ := next()
			request = post(requestLine, bytes.Clone(request))
			answer, _ := next()
			if !yield(request, reply(bytes.Clone(answer))) {
				return
			}
		}
	}
}

func plainReply(body []byte) []byte { return post("HTTP/1.1 200 OK", body, "Server: server/2.0") }

// services are of different kinds: in messages, connections, framing, and concurrency. Each client
// makes a multiple of some calls.
func services(times int) map[string]service {
	of := func(messages func(uint64) iter.Seq[[]byte], n int, reply func([]byte) []byte,
	) func(int) iter.Seq2[[]byte, []byte] {
		return func(client int) iter.Seq2[[]byte, []byte] {
			return calls(messages(uint64(client)), n*times, reply)
		}
	}
	floats := func(seed uint64) iter.Seq[[]byte] { return workload.Floats(seed, 10) }
	words := func(seed uint64) iter.Seq[[]byte] { return workload.Strings(seed, 20) }
	records := func(n int) func(seed uint64) iter.Seq[[]byte] {
		return func(seed uint64) iter.Seq[[]byte] { return workload.Records(seed, n) }
	}
	return map[string]service{
		"kept connections of a few clients, chunked": {clients: 3, every: 5 * time.Second,
			took: 30 * time.Millisecond, calls: of(floats, 5, chunked)},
		"a connection for each call, ended by the client": {clients: 1, every: 2 * time.Second, closed: true,
			calls: of(workload.Headers, 5, plainReply)},
		"a connection for each call, ended by the server": {clients: 2, every: 3 * time.Second, closed: true,
			byServer: true, calls: of(records(20), 5, plainReply)},
		"rare calls, and compressed replies": {clients: 1, every: 90 * time.Second, took: time.Second,
			calls: of(words, 5, zipped)},
		"replies that zlib compressed": {clients: 2, every: 5 * time.Second, calls: of(words, 5, byZlib)},
		"long messages":                {clients: 1, every: 20 * time.Second, calls: of(records(1000), 3, plainReply)},
	}
}

// The estimate of calls is what a real pair does with them, replayed at their pace over an emulated
// link: within 2 % of the bytes, and 5 % of the time.
func TestEstimateAgreesWithThePair(t *testing.T) {
	for name, s := range services(3) {
		t.Run(name, func(t *testing.T) { agree(t, s.capture(t), "gprs") })
	}
}

// conversation is the service of one, with so many calls.
func conversation(c workload.Conversation, n int) service {
	return service{clients: 1, every: c.Every, took: c.Took, closed: c.Closed,
		calls: func(int) iter.Seq2[[]byte, []byte] {
			return func(yield func([]byte, []byte) bool) {
				left := n
				for request, reply := range c.Calls(1) {
					if left--; left < 0 || !yield(request, reply) {
						return
					}
				}
			}
		}}
}

// So it is for conversations of the kinds that compare has.
func TestEstimateAgreesOnConversations(t *testing.T) {
	for _, c := range workload.Conversations() {
		t.Run(c.Name, func(t *testing.T) {
			agree(t, conversation(c, 8).capture(t), "gprs")
		})
	}
}

// And where the connections from an address are one client's.
func TestEstimateAgreesByAddress(t *testing.T) {
	for _, c := range workload.Conversations() {
		if c.Closed {
			t.Run(c.Name, func(t *testing.T) {
				agreeFor(t, Config{PerAddress: true}, conversation(c, 20).capture(t), "gprs")
			})
		}
	}
}
