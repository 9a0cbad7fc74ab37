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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/workload"
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
	// pieces are how messages are written: so many bytes of them, and then a pause; the rest comes
	// at once. A message is as long as all of them together at least.
	pieces func(m []byte) []piece
	// continues: the server sends 100 Continue before the second piece of a request.
	continues bool
}

// piece is a part of a message that is written at once.
type piece struct {
	octets int
	pause  time.Duration // after it
}

// say writes a message as the service does.
func (s service) say(t *testing.T, to net.Conn, m []byte, between func()) {
	if s.pieces != nil {
		for i, p := range s.pieces(m) {
			_, err := to.Write(m[:p.octets])
			require.NoError(t, err)
			m = m[p.octets:]
			time.Sleep(p.pause)
			if i == 0 && between != nil {
				between()
			}
		}
	}
	_, err := to.Write(m)
	require.NoError(t, err)
}

// headFirst has the head of a message come before its body, which comes in so many pieces.
func headFirst(pause time.Duration, bodies int, between time.Duration) func(m []byte) []piece {
	return func(m []byte) []piece {
		head := bytes.Index(m, []byte("\r\n\r\n")) + 4
		all := []piece{{head, pause}}
		for range bodies - 1 {
			all = append(all, piece{(len(m) - head) / bodies, between})
		}
		return all
	}
}

const interim = "HTTP/1.1 100 Continue\r\n\r\n"

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
		var between func()
		if s.continues {
			between = func() {
				_, _ = there.Write([]byte(interim))
				_, err := io.ReadFull(here, make([]byte, len(interim)))
				require.NoError(t, err)
				time.Sleep(time.Millisecond)
			}
		}
		s.say(t, here, request, between)
		_, err := io.ReadFull(there, make([]byte, len(request)))
		require.NoError(t, err)
		time.Sleep(s.took + time.Millisecond)
		var heard sync.WaitGroup
		heard.Go(func() {
			_, err := io.ReadFull(here, make([]byte, len(reply)))
			assert.NoError(t, err)
		})
		s.say(t, there, reply, nil)
		heard.Wait()
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
		"a connection for each call, ended by the server": {clients: 2, every: 8 * time.Second, closed: true,
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

// slow are services whose messages come in pieces, as those of common programs do.
func slow(times int) map[string]service {
	floats := func(n int, reply func([]byte) []byte) func(int) iter.Seq2[[]byte, []byte] {
		return func(client int) iter.Seq2[[]byte, []byte] {
			return calls(workload.Floats(uint64(client), n), 7*times, reply)
		}
	}
	expecting := func(int) iter.Seq2[[]byte, []byte] {
		return func(yield func([]byte, []byte) bool) {
			for request, reply := range floats(10, plainReply)(1) {
				request = bytes.Replace(request, []byte("\r\n"), []byte("\r\nExpect: 100-continue\r\n"), 1)
				if !yield(request, reply) {
					return
				}
			}
		}
	}
	return map[string]service{
		"head and body apart, 40 ms": {clients: 1, every: 2 * time.Second, calls: floats(10, plainReply),
			pieces: headFirst(40*time.Millisecond, 1, 0)},
		"head and body apart, 300 ms": {clients: 1, every: 2 * time.Second, calls: floats(10, plainReply),
			pieces: headFirst(300*time.Millisecond, 1, 0)},
		"bodies in pieces, 60 ms": {clients: 1, every: 2 * time.Second, calls: floats(30, plainReply),
			pieces: headFirst(60*time.Millisecond, 4, 60*time.Millisecond)},
		"bodies in pieces, 300 ms": {clients: 1, every: 9 * time.Second, calls: floats(30, plainReply),
			pieces: headFirst(0, 4, 300*time.Millisecond)},
		"chunked replies in pieces, 10 ms": {clients: 1, every: 2 * time.Second, calls: floats(30, chunked),
			pieces: headFirst(10*time.Millisecond, 3, 10*time.Millisecond)},
		"chunked replies in pieces, 60 ms": {clients: 1, every: 3 * time.Second, calls: floats(30, chunked),
			pieces: headFirst(0, 3, 60*time.Millisecond)},
		"100 Continue": {clients: 1, every: 2 * time.Second, calls: expecting, continues: true,
			pieces: headFirst(30*time.Millisecond, 1, 0)},
		"long bodies in pieces, 60 ms": {clients: 1, every: 60 * time.Second, calls: floats(5000, plainReply),
			pieces: headFirst(0, 5, 60*time.Millisecond)},
		"connections for each call, head and body apart": {clients: 2, every: 2 * time.Second, closed: true,
			calls: floats(10, plainReply), pieces: headFirst(time.Millisecond, 1, 0)},
	}
}

// So it is for messages that come in pieces: what the pair waits for, and what it does not.
func TestEstimateAgreesOnPieces(t *testing.T) {
	for name, s := range slow(1) {
		t.Run(name, func(t *testing.T) {
			agree(t, s.capture(t), "gprs")
			agreeFor(t, principal.ByConnection, s.capture(t), "gprs")
		})
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

// showing has requests show a proof, which may change from call to call.
func showing(s service, proof func(call int) string) service {
	of := s.calls
	s.calls = func(client int) iter.Seq2[[]byte, []byte] {
		return func(yield func([]byte, []byte) bool) {
			call := 0
			for request, reply := range of(client) {
				request = bytes.Replace(request, []byte("\r\n"), []byte("\r\n"+proof(call)+"\r\n"), 1)
				if call++; !yield(request, reply) {
					return
				}
			}
		}
	}
	return s
}

// And where connections are of one client that shows the same proof, or of several that show
// others.
func TestEstimateAgreesByProof(t *testing.T) {
	apart := service{clients: 2, every: 700 * time.Millisecond, closed: true, calls: floatCalls(12)}
	kept := service{clients: 1, every: 700 * time.Millisecond, calls: floatCalls(12)}
	same := func(int) string { return "Authorization: Basic bWV0ZXI6c2VjcmV0" }
	for name, s := range map[string]service{
		"the same":        showing(apart, same),
		"one, then other": showing(apart, func(call int) string { return fmt.Sprintf("Cookie: id=%d", call/6) }),
		"several on one":  showing(kept, func(call int) string { return fmt.Sprintf("Cookie: id=%d", call/3) }),
		"anew each time": showing(apart, func(call int) string {
			return fmt.Sprintf("Authorization: Digest %d", call)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			capture := s.capture(t)
			agree(t, capture, "gprs")
			r := run(t, Config{}, capture)
			if is := r.Total; name == "the same" {
				assert.Less(t, is[firstContact].Bytes, is[byConnection].Bytes*2/3)
			} else {
				assert.InEpsilon(t, is[firstContact].Bytes, is[byConnection].Bytes, 0.4)
			}
		})
	}
}

// So it is for clients of two kinds, recorded with their server.
func TestEstimateAgreesOnARecording(t *testing.T) {
	octets := shared.Read(t, shared.Testdata(t, "pcap", "pump.pcap"))
	for _, mode := range []principal.Mode{principal.ByProof, principal.ByConnection, principal.ByAddress} {
		agreeFor(t, mode, octets, "wifi")
	}
}

// And where the connections from an address are one client's.
func TestEstimateAgreesByAddress(t *testing.T) {
	for _, c := range workload.Conversations() {
		if c.Closed {
			t.Run(c.Name, func(t *testing.T) {
				agreeFor(t, principal.ByAddress, conversation(c, 20).capture(t), "gprs")
			})
		}
	}
}
