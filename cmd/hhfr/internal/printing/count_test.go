package printing

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 messages", 1: "1 message", 2: "2 messages"} {
		assert.Equal(t, want, Count(n, "message"))
	}
	assert.Equal(t, "1 TCP connection", Count(int64(1), "TCP connection"))
	assert.Equal(t, "3 replies", Count(uint64(3), "reply"))
	assert.Equal(t, "nothing", Kinds(nil))
	assert.Equal(t, "1 HTTP connection without SOAP, 2 TCP connections without data, 1 TLS connection "+
		"(record inside), "+
		"1 other UDP datagram, 1 packet left out: link type 105", Kinds(map[string]int{
		"TCP connections without data": 2, "HTTP connections without SOAP": 1, "other UDP datagrams": 1,
		"TLS connections (record inside)": 1, "packets left out: link type 105": 1,
	}))
}
