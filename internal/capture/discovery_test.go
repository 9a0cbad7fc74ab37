package capture_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/shared"
)

// sentDatagram is a UDP datagram; of those above cut bytes the rest is not captured.
type sentDatagram struct{ src, dst, text string }

// datagramsFile is a capture of datagrams, one a second, of whose packets at most snap bytes are
// captured.
func datagramsFile(t testing.TB, snap int, all ...sentDatagram) []byte {
	t.Helper()
	var file bytes.Buffer
	w := pcapgo.NewWriter(&file)
	require.NoError(t, w.WriteFileHeader(1<<16, layers.LinkTypeRaw))
	for i, one := range all {
		src, dst := netip.MustParseAddrPort(one.src), netip.MustParseAddrPort(one.dst)
		b := make([]byte, 28, 28+len(one.text))
		b[0], b[8], b[9] = 0x45, 64, 17
		binary.BigEndian.PutUint16(b[2:], uint16(28+len(one.text)))
		copy(b[12:], src.Addr().AsSlice())
		copy(b[16:], dst.Addr().AsSlice())
		binary.BigEndian.PutUint16(b[20:], src.Port())
		binary.BigEndian.PutUint16(b[22:], dst.Port())
		binary.BigEndian.PutUint16(b[24:], uint16(8+len(one.text)))
		b = append(b, one.text...)
		ci := gopacket.CaptureInfo{
			Timestamp: time.Unix(int64(i+1), 0), Length: len(b), CaptureLength: min(len(b), snap),
		}
		require.NoError(t, w.WritePacket(ci, b[:ci.CaptureLength]))
	}
	return file.Bytes()
}

// discovery is a message of WS-Discovery.
func discovery(operation, id, about string) string {
	header := "<a:MessageID> urn:uuid:" + id + " </a:MessageID>"
	if about != "" {
		header += "<a:RelatesTo>urn:uuid:" + about + "</a:RelatesTo>"
	}
	return `<?xml version="1.0"?>` + "\n" + `<s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope" ` +
		`xmlns:a="http://schemas.xmlsoap.org/ws/2004/08/addressing"><s:Header>` + header + `</s:Header><s:Body><` +
		operation + ` xmlns="http://schemas.xmlsoap.org/ws/2005/04/discovery"/></s:Body></s:Envelope>`
}

// TestDiscovery: datagrams with envelopes are messages; those about others have their number, and
// repeated ones that of the first.
func TestDiscovery(t *testing.T) {
	const client, group, camera, other = "10.0.0.1:40000", "239.255.255.250:3702", "10.0.0.2:3702", "10.0.0.3:3702"
	file := datagramsFile(t, 1<<16,
		sentDatagram{camera, group, discovery("Hello", "h", "")},
		sentDatagram{client, group, discovery("Probe", "p", "")},
		sentDatagram{client, group, discovery("Probe", "p", "")},
		sentDatagram{camera, client, discovery("ProbeMatches", "m", "p")},
		sentDatagram{other, client, discovery("ProbeMatches", "n", "p")},
		sentDatagram{client, group, "M-SEARCH * HTTP/1.1\r\n\r\n"},
		sentDatagram{client, group, "<html/>"},
		sentDatagram{other, group, "\xEF\xBB\xBF" + discovery("Bye", "b", "unknown")},
	)
	r := decode(t, file, nil)
	var got []string
	for _, m := range r.Messages {
		assert.Equal(t, capture.Unchecked, m.State)
		assert.Equal(t, m.First, m.Last)
		got = append(got, fmt.Sprintf("%d %s %v %v > %v %s%s", m.Number, m.Operation.Local, m.Reply, m.Src, m.Dst,
			m.FileName(), m.Why))
	}
	assert.Equal(t, []string{
		"1 Hello false 10.0.0.2:3702 > 239.255.255.250:3702 000001-request-1.xml",
		"2 Probe false 10.0.0.1:40000 > 239.255.255.250:3702 000002-request-2.xml",
		"2 Probe false 10.0.0.1:40000 > 239.255.255.250:3702 000002-request-3.xmlsent again, first in packet 2",
		"2 ProbeMatches true 10.0.0.2:3702 > 10.0.0.1:40000 000002-reply-4.xml",
		"2 ProbeMatches true 10.0.0.3:3702 > 10.0.0.1:40000 000002-reply-5.xml",
		"3 Bye false 10.0.0.3:3702 > 239.255.255.250:3702 000003-request-8.xml",
	}, got)
	assert.Equal(t, map[string]int{"UDP datagrams": 2}, r.Others)
	assert.Equal(t, "10.0.0.1:40000", r.Messages[3].Client().String())
	assert.False(t, r.Partial())

	long := sentDatagram{client, group, discovery("Probe", strings.Repeat("p", 400), "")}
	r = decode(t, datagramsFile(t, 400, long), nil)
	require.Len(t, r.Messages, 1)
	assert.Equal(t, capture.Incomplete, r.Messages[0].State)
	assert.True(t, r.Partial())
}

// TestDiscoveryOfTheCorpus: the messages of a real capture.
func TestDiscoveryOfTheCorpus(t *testing.T) {
	file := shared.Read(t, filepath.Join(shared.Dir(t, "corpus", "pcap", "soap"), "ndpi-upnp-wsdiscovery-udp.pcap"))
	r := decode(t, file, nil)
	assert.Len(t, r.Messages, 14)
	for _, m := range r.Messages {
		assert.Contains(t, []string{"Probe", "Resolve"}, m.Operation.Local)
		assert.True(t, m.Whole())
	}
}
