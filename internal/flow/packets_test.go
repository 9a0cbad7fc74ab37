package flow_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/pcapng"
)

func TestOpenRefusesWhatIsNoCapture(t *testing.T) {
	for in, code := range map[string]flow.Code{
		"":                                      flow.NoCapture,
		"abc":                                   flow.NoCapture,
		"<?xml version='1.0'?>, and more of it": flow.NoCapture,
		"\x1f\x8b":                              flow.NoCapture,
		"\xd4\xc3\xb2\xa1\x02":                  flow.Truncated,
		"\x0a\x0d\x0d\x0a\x1c":                  flow.Truncated,
	} {
		_, err := flow.Open(bytes.NewReader([]byte(in)))
		assert.ErrorIs(t, err, &flow.Error{Code: code}, "%q", in)
	}
	_, err := flow.Open(iotest.ErrReader(errors.New("broken")))
	assert.ErrorIs(t, err, &flow.Error{Code: flow.ReadFailed})
}

func TestCutFileGivesItsWholePacketsAndSaysWhere(t *testing.T) {
	p := seg(1, 1000, ack, 1, 1, "hello")
	whole := pcapOf(101, p, p, p)
	record := 16 + len(p)
	for cut := 24; cut <= len(whole); cut++ {
		f, err := flow.Open(bytes.NewReader(whole[:cut]))
		require.NoError(t, err)
		n := 0
		for {
			if _, err = f.Next(); err != nil {
				break
			}
			n++
		}
		assert.Equal(t, (cut-24)/record, n)
		if (cut-24)%record == 0 {
			assert.ErrorIs(t, err, io.EOF)
			continue
		}
		var e *flow.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, flow.Truncated, e.Code)
		assert.Equal(t, int64(24+n*record), e.At)
	}
}

func TestCutGzipAndFailingDisk(t *testing.T) {
	p := seg(1, 1000, ack, 1, 1, "hello")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	for i, part := range slices.Collect(slices.Chunk(pcapOf(101, slices.Repeat([][]byte{p}, 1000)...), 10000)) {
		_, err := w.Write(part)
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, w.Flush())
		}
	}
	require.NoError(t, w.Close())
	f, err := flow.Open(bytes.NewReader(z.Bytes()[:z.Len()-20]))
	require.NoError(t, err)
	stats, err := flow.Read(flow.Config{}, f)
	require.NoError(t, err)
	assert.True(t, stats.Truncated)
	assert.Greater(t, stats.Packets, 500)

	// A file that is cut off within the first bytes, which are read at once, also gives what is
	// before the cut.
	z.Reset()
	w = gzip.NewWriter(&z)
	_, err = w.Write(pcapOf(101, p, p, p))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	f, err = flow.Open(bytes.NewReader(z.Bytes()[:z.Len()-9])) // its checksum and length, and a byte of data
	require.NoError(t, err)
	stats, err = flow.Read(flow.Config{}, f)
	require.NoError(t, err)
	assert.True(t, stats.Truncated)
	assert.Equal(t, 3, stats.Packets)

	f, err = flow.Open(io.MultiReader(bytes.NewReader(pcapOf(101, p)), iotest.ErrReader(errors.New("broken"))))
	require.NoError(t, err)
	_, err = flow.Read(flow.Config{}, f)
	assert.ErrorIs(t, err, &flow.Error{Code: flow.ReadFailed})
	_, err = f.Next()
	assert.Error(t, err)
}

func TestLinkTypes(t *testing.T) {
	ip := seg(1, 1000, ack, 1, 1, "hello")
	ether := append(make([]byte, 12), 0x08, 0)
	cat := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	pad, llc := make([]byte, 7), []byte{0xAA, 0xAA, 3, 0, 0, 0, 8, 0}
	ip6 := cat([]byte{0x60, 0, 0, 0, 0, byte(len(ip)-20) + 16, 0, 64}, make([]byte, 32),
		[]byte{60, 0, 1, 4, 0, 0, 0, 0}, []byte{6, 0, 1, 4, 0, 0, 0, 0}, ip[20:])
	gre := cat([]byte{0x45, 0, 0, byte(24 + len(ip)), 0, 0, 0, 0, 9, 47, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2},
		[]byte{0, 0, 8, 0}, ip)
	for name, tt := range map[string]struct {
		link uint32
		data []byte
	}{
		"ethernet padded":  {1, cat(ether, ip, pad)},
		"vlan in vlan":     {1, cat(ether[:12], []byte{0x88, 0xA8, 0, 5, 0x81, 0, 0, 6, 8, 0}, ip)},
		"mpls":             {1, cat(ether[:12], []byte{0x88, 0x47, 0, 0, 0x10, 9, 0, 0, 0x11, 9}, ip)},
		"pppoe":            {1, cat(ether[:12], []byte{0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, 0x21}, ip)},
		"snap":             {1, cat(ether[:12], []byte{0, 100, 0xAA, 0xAA, 3, 0, 0, 0, 8, 0}, ip)},
		"raw":              {101, ip},
		"raw 12":           {12, ip},
		"raw 14":           {14, ip},
		"raw IPv4":         {228, ip},
		"raw IPv6":         {229, ip6},
		"gre":              {101, gre},
		"null little":      {0, cat([]byte{2, 0, 0, 0}, ip)},
		"null big":         {0, cat([]byte{0, 0, 0, 2}, ip)},
		"loop":             {108, cat([]byte{0, 0, 0, 2}, ip)},
		"cooked":           {113, cat(make([]byte, 14), []byte{8, 0}, ip)},
		"cooked 2":         {276, cat([]byte{8, 0}, make([]byte, 18), ip)},
		"nflog":            {239, cat([]byte{2, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, byte(4 + len(ip)), 0, 9, 0}, ip)},
		"nflog big endian": {239, cat([]byte{2, 0, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, byte(4 + len(ip)), 0, 9}, ip)},
		"ppp":              {9, cat([]byte{0xFF, 3, 0, 0x21}, ip)},
		"pppoe in vlans": {1, cat(ether[:12], []byte{0x88, 0xA8, 0, 5, 0x81, 0, 0, 6, 0x88, 0x64},
			[]byte{0x11, 0, 0, 1, 0, 0, 0, 0x21}, ip)},
		"cisco hdlc":     {104, cat([]byte{0x0F, 0, 8, 0}, ip)},
		"802.11":         {105, cat([]byte{8, 1}, make([]byte, 22), llc, ip)},
		"802.11 qos":     {105, cat([]byte{0x88, 1}, make([]byte, 24), llc, ip)},
		"802.11 bridged": {105, cat([]byte{0x88, 0x83}, make([]byte, 34), llc, ip)},
		"radiotap":       {127, cat([]byte{0, 0, 8, 0, 0, 0, 0, 0, 8, 2}, make([]byte, 22), llc, ip)},
		// with a second mask, a time at offset 16, and flags behind that
		"radiotap padded": {127, cat([]byte{0, 0, 25, 0, 3, 0, 0, 0x80}, make([]byte, 16), []byte{0x20, 0x88, 2},
			make([]byte, 26), llc, ip)},
	} {
		s := read(t, pcapOf(tt.link, tt.data))
		if assert.Len(t, s.flows, 1, "%s %v", name, s.stats.Undecoded) && assert.Len(t, s.flows[0].dirs[0], 1, name) {
			assert.Equal(t, "hello", string(s.flows[0].dirs[0][0].data), name)
		}
		for cut := range tt.data { // no cut is a crash
			read(t, pcapOf(tt.link, tt.data[:cut]))
		}
	}
	for link, why := range map[uint32]string{147: "link type 147", 105: "not IP"} {
		s := read(t, pcapOf(link, ip))
		assert.Equal(t, map[string]int{why: 1}, s.stats.Undecoded)
	}
	s := read(t, pcapOf(105, cat([]byte{0x88, 1}, make([]byte, 22), []byte{0x80, 0}, llc, ip)))
	assert.Equal(t, map[string]int{flow.ReasonAggregate: 1}, s.stats.Undecoded)
	s = read(t, pcapOf(105, cat([]byte{8, 0x41}, make([]byte, 22), llc, ip)))
	assert.Equal(t, map[string]int{flow.ReasonNotIP: 1}, s.stats.Undecoded)
}

// fragmentsOf cuts an IPv4 packet into fragments of size bytes.
func fragmentsOf(ip []byte, size int) [][]byte {
	var out [][]byte
	for at := 0; at < len(ip)-20; at += size {
		end := min(at+size, len(ip)-20)
		b := append(slices.Clone(ip[:20]), ip[20+at:20+end]...)
		field := uint16(at / 8)
		if end < len(ip)-20 {
			field |= 0x2000
		}
		binary.BigEndian.PutUint16(b[6:], field)
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		out = append(out, b)
	}
	return out
}

func TestFragmentsInAnyOrder(t *testing.T) {
	frags := fragmentsOf(seg(1, 1000, ack, 1, 1, "a payload of forty bytes, in 3 fragments"), 16)
	require.Len(t, frags, 4)
	for range len(frags) {
		frags = append(frags[1:], frags[0])
		for _, order := range [][][]byte{frags, {frags[3], frags[2], frags[1], frags[0]},
			{frags[0], frags[0], frags[2], frags[1], frags[3]}} {
			flows, stats := flowsOf(t, flow.Limits{}, order...)
			require.Len(t, flows, 1)
			assert.Equal(t, "a payload of forty bytes, in 3 fragments", string(flows[0].dirs[0][0].data))
			assert.Zero(t, stats.LostDatagrams)
		}
	}
	_, stats := flowsOf(t, flow.Limits{}, frags[:3]...)
	assert.Zero(t, stats.TCPFlows)
	assert.Equal(t, 1, stats.LostDatagrams)
}

func TestFragmentsAreBounded(t *testing.T) {
	p := seg(1, 1000, ack, 1, 1, "0123456789abcdef")
	var all [][]byte
	for id := range 2000 {
		f := fragmentsOf(p, 16)[0]
		binary.BigEndian.PutUint16(f[4:], uint16(id))
		all = append(all, f)
	}
	_, stats := flowsOf(t, flow.Limits{}, all...)
	assert.Equal(t, 2000, stats.LostDatagrams)
}

func TestDatagramsAndComments(t *testing.T) {
	udp := append(
		[]byte{0x45, 0, 0, 31, 0, 0, 0, 0, 9, 17, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0, 9, 0, 10, 0, 11, 0, 0},
		"abc.."...)
	f, err := flow.Open(bytes.NewReader(pcapOf(101, udp)))
	require.NoError(t, err)
	var got []flow.UDPDatagram
	_, err = flow.Read(flow.Config{Datagram: func(d flow.UDPDatagram) error { got = append(got, d); return nil }}, f)
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, "abc", string(got[0].Data))
	assert.Equal(t, "1.1.1.1:9", got[0].Src.String())
	assert.Equal(t, time.Unix(1, 0).UTC(), got[0].Time)

	var file bytes.Buffer
	pcapng.NewRecorder(&file, nil)
	s := read(t, file.Bytes())
	assert.Zero(t, s.stats.Packets)
	assert.False(t, s.stats.Truncated)
}
