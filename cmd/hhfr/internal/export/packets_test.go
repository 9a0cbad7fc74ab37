package export_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/export"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/facts"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/pcap"
	"github.com/hhfr/hhfr/pkg/soap"
)

// tagsIn are the tags of a packet, in their order, and what is behind them.
func tagsIn(t *testing.T, b []byte) (tags []string, body string) {
	t.Helper()
	for {
		require.GreaterOrEqual(t, len(b), 4)
		tag, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		require.GreaterOrEqual(t, len(b), 4+n)
		require.Zero(t, n%4)
		value := b[4 : 4+n]
		b = b[4+n:]
		switch tag {
		case 0:
			return tags, string(b)
		case 12, 33, 36:
			tags = append(tags, fmt.Sprintf("%d %s", tag, bytes.TrimRight(value, "\x00")))
		default:
			tags = append(tags, fmt.Sprintf("%d %x", tag, value))
		}
	}
}

// TestPackets: each wanted message is a packet, with what Wireshark shows beside it, and nothing in
// that which a terminal would obey.
func TestPackets(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	request := message(1, false, "\n<a/>")
	request.Src, request.Dst = netip.MustParseAddrPort("192.0.2.1:999"), netip.MustParseAddrPort("192.0.2.2:80")
	request.First, request.Packet, request.Kind = at, 7, "request"
	request.Operation = soap.Name{Local: "a\x1b[31m\u202eb"}
	reply := message(1, true, "\uFEFF<a>"+strings.Repeat("x", 300<<10)+"</a>")
	reply.Src, reply.Dst = netip.MustParseAddrPort("[2001:db8::2]:80"), netip.MustParseAddrPort("[2001:db8::1]:999")
	reply.HHFR, reply.Kind, reply.Took = true, "reply", 1500*time.Microsecond
	broken := message(2, false, "{}")
	broken.State, broken.Why, broken.Kind = capture.Incomplete, "bytes are\nmissing", "one-way"

	var out bytes.Buffer
	e := export.New(&out, "pcapng", service)
	require.NotEmpty(t, out.Bytes(), "a reader waits for the beginning")
	for _, m := range []facts.Asked{request, reply, broken} {
		written, err := e.Add(m, true)
		require.NoError(t, err)
		assert.True(t, written)
	}
	written, err := e.Add(request, false)
	require.NoError(t, err)
	assert.False(t, written)
	require.NoError(t, e.Close())

	r, err := pcap.NewReader(bufio.NewReader(&out))
	require.NoError(t, err)
	var bodies []string
	for i, want := range [][]string{
		{
			"12 xml", "20 c0000201", "21 c0000202", "24 00000002", "25 000003e7", "26 00000050", "30 00000007",
			"33 SOAP", "36 1 request a?[31m?b unchecked",
		},
		{
			"12 xml", "22 20010db8000000000000000000000002", "23 20010db8000000000000000000000001", "24 00000002",
			"25 00000050", "26 000003e7", "33 hhfr", "36 1 reply - 500 1.5 ms unchecked",
		},
		{"12 data", "33 SOAP", "36 2 one-way - incomplete (bytes are?missing)"},
	} {
		p, err := r.Next()
		require.NoError(t, err)
		assert.Equal(t, 252, p.Link)
		tags, body := tagsIn(t, p.Data)
		assert.Equal(t, want, tags)
		assert.Equal(t, []string{strings.TrimPrefix(want[len(want)-1], "36 ")}, p.Comments)
		bodies = append(bodies, body)
		switch i {
		case 0:
			assert.Equal(t, at, p.Time)
			assert.Len(t, p.Data, p.Length)
		case 1:
			assert.Len(t, p.Data, 256<<10, "as long as is read")
			assert.Equal(t, len(reply.Body)-len(body), p.Length-len(p.Data))
		case 2:
			assert.Equal(t, time.Unix(0, 0).UTC(), p.Time)
		}
	}
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, "\n<a/>", bodies[0])
	assert.Equal(t, string(reply.Body[:len(bodies[1])]), bodies[1])
	assert.Equal(t, "{}", bodies[2])
}
