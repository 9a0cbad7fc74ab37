package proxy_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/proxy"
)

// Whatever came, and however: what a replay says of it is in the order of time, and of a body that
// is as it came, it says all.
func FuzzReplay(f *testing.F) {
	const head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/xml\r\n"
	f.Add([]byte(head+"Content-Length: 4\r\n\r\n<a/>"), uint16(60), uint16(300), "")
	f.Add([]byte(head+"Content-Length: 4\r\n\r\n<a/>"), uint16(70), uint16(40), "")
	f.Add([]byte(head+"Transfer-Encoding: chunked\r\n\r\n2\r\n<a\r\n2\r\n/>\r\n0\r\n\r\n"), uint16(90), uint16(60), "")
	f.Add([]byte(head+"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n<a/>"), uint16(10), uint16(1), "")
	f.Add([]byte(head+"Upgrade: a\r\nConnection: upgrade\r\nContent-Length: 4\r\n\r\n<a/>"), uint16(10), uint16(1), "")
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<a/>"), uint16(30), uint16(900), "POST")
	f.Fuzz(func(t *testing.T, octets []byte, at, pause uint16, method string) {
		first := min(int(at), len(octets))
		came := []proxy.Arrival{{Octets: first}, {Octets: len(octets), At: time.Duration(pause) * time.Millisecond}}
		replay := proxy.NewReplay()
		for range 2 { // the second one has what the first one left
			var coded deflate.Finder
			said, ok := replay.Message(octets, came, method, &coded)
			if !ok {
				return
			}
			assert.NotEmpty(t, said.Steps)
			assert.True(t, !said.Whole || len(said.Steps) == 1)
			last, body := time.Duration(0), []byte(nil)
			for _, s := range said.Steps {
				assert.GreaterOrEqual(t, s.At, last)
				last, body = s.At, append(body, s.Octets...)
			}
			if bytes.HasSuffix(said.Head, []byte("\r\n\r\n\n")) { // the line behind the head is empty
				assert.True(t, bytes.HasPrefix(octets, said.Head[:len(said.Head)-1]))
				assert.True(t, bytes.HasPrefix(octets[len(said.Head)-1:], body))
			}
		}
	})
}
