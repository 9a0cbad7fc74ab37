package flow_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/hhfr/hhfr/internal/shared"
)

func FuzzCapture(f *testing.F) {
	f.Add(
		pcapOf(
			101,
			talkOf(true, q(post("1")), a(ok("2")), q(post("3")), lost(a(ok("4"))),
				a("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n5\r\n0\r\n\r\n"))...),
	)
	f.Add(
		pcapOf(
			101,
			talkOf(true, q("POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\nContent-Length: 2\r\n\r\n1"),
				a("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\n\r\nback"),
				q("2out"))...),
	)
	f.Add(pcapOf(1, append(append(make([]byte, 12), 0x81, 0, 0, 6, 8, 0), seg(1, 1, syn|ack, 1, 1, "x")...)))
	f.Add(pcapOf(101, fragmentsOf(seg(1, 1000, ack, 1, 1, "a payload of forty bytes, in 3 fragments"), 16)...))
	_, _, file := recording(f, 1)
	f.Add(file[:3000])
	f.Add(slices.Concat(file[:3000], secretsOf(binary.LittleEndian, 0x544C534B, keyLine("1"))))
	if shared.Has(f) {
		for _, path := range corpusFiles(f) {
			if b := shared.Read(f, path); len(b) < 20000 {
				f.Add(b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := read(t, in)
		if s.stats.TCPOctets > int64(len(in)) && (len(in) < 2 || in[0] != 0x1F) {
			t.Fatalf("%d bytes out of %d", s.stats.TCPOctets, len(in))
		}
	})
}
