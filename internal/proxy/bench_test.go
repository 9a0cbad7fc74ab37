package proxy_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCall makes one call after another through a pair; scripts/figures.sh counts in its trace
// how often one goroutine wakes another for it.
func BenchmarkCall(b *testing.B) {
	o := startOrigin(b, "127.0.0.1:0", server(echoReply))
	near, _ := pair(b, o.url(), nil)
	c := connect(b, near.url())
	request, reply := []byte(post("", envelope)), make([]byte, len(echoReply(nil, []byte(envelope))))
	for b.Loop() {
		_, _ = c.Write(request)
		_, err := io.ReadFull(c, reply)
		require.NoError(b, err)
	}
}
