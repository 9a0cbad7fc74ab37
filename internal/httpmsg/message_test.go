package httpmsg_test

import (
	"testing"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTrimHead(t *testing.T) {
	in := "POST /x HTTP/1.1\r\nhost: a\r\nsoapACTION: \"q\"\r\nContent-Length: 7\r\nX: 1\r\nX: " +
		"2\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
	out, err := httpmsg.TrimHead([]byte(in))
	require.NoError(t, err)
	assert.Equal(t, "POST /x HTTP/1.1\r\nsoapACTION: \"q\"\r\nX: 1\r\nX: 2\r\n\r\n", string(out))
	for _, bad := range []string{"", "hello", "POST / HTTP/1.1\r\n", in + "x"} {
		_, err := httpmsg.TrimHead([]byte(bad))
		require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed}, "%q", bad)
	}
}
