package pcap_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/compare/internal/pcap"
	"github.com/hhfr/hhfr/compare/internal/program"
)

const envelope = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>%s</s:Body></s:Envelope>`

// `hhfr decode` reads what was said, in packets of a connection that opens and ends, at its times.
func TestCaptureIsDecoded(t *testing.T) {
	at := time.Date(2026, 3, 14, 9, 27, 0, 123_456_789, time.UTC)
	var b bytes.Buffer
	c := pcap.New(&b)
	server := netip.MustParseAddrPort("192.0.2.1:80")
	var bodies []string
	for port := range uint16(2) {
		conn := c.Open(at, netip.AddrPortFrom(netip.MustParseAddr("192.0.2.10"), 20_000+port), server)
		for call := range 2 {
			body := fmt.Sprintf(envelope, strings.Repeat("<v>1</v>", 500*(1+call)))
			head := fmt.Sprintf("Content-Type: text/xml\r\nContent-Length: %d\r\n\r\n", len(body))
			conn.Said(at, 0, []byte("POST /a HTTP/1.1\r\nHost: a\r\n"+head+body))
			conn.Said(at.Add(time.Second), 1, []byte("HTTP/1.1 200 OK\r\n"+head+body))
			bodies = append(bodies, body, body)
		}
		conn.End(at, 0)
		conn.End(at, 1)
	}
	require.NoError(t, c.Err())
	out, _, err := program.Run(t.Context(), &b, "decode", "-q", "-o", "json", "-")
	require.NoError(t, err, "%s", out)
	var said struct {
		Messages []struct {
			Octets int `json:"body_octets"`
			First  time.Time
		}
	}
	require.NoError(t, json.Unmarshal(out, &said))
	require.Len(t, said.Messages, len(bodies))
	for i, m := range said.Messages {
		assert.Equal(t, len(bodies[i]), m.Octets)
		if i%2 == 0 {
			assert.Equal(t, at, m.First)
		}
	}
}

// A capture that cannot be written says so.
func TestCaptureThatFails(t *testing.T) {
	c := pcap.New(full{})
	c.Open(time.Now(), netip.MustParseAddrPort("192.0.2.10:1"), netip.MustParseAddrPort("192.0.2.1:80"))
	assert.ErrorIs(t, c.Err(), errFull)
}

var errFull = errors.New("no space is left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
