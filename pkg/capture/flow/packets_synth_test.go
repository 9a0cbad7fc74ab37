package flow_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/capture/flow"
)

// TCP flags of made-up packets.
const (
	fin = 1 << iota
	syn
	rst
	_
	ack
)

// seg makes a raw IPv4 packet with TCP; from is 1 or 2, the client or the server.
func seg(from byte, port uint16, flags byte, seq, acked uint32, payload string) []byte {
	b := make([]byte, 40, 40+len(payload))
	b[0], b[8], b[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(b[2:], uint16(40+len(payload)))
	copy(b[12:], []byte{10, 0, 0, from, 10, 0, 0, 3 - from})
	ports := []uint16{port, 80}
	binary.BigEndian.PutUint16(b[20:], ports[from-1])
	binary.BigEndian.PutUint16(b[22:], ports[2-from])
	binary.BigEndian.PutUint32(b[24:], seq)
	binary.BigEndian.PutUint32(b[28:], acked)
	b[32], b[33] = 0x50, flags
	return append(b, payload...)
}

// pcapOf makes a pcap file of packets, one a second.
func pcapOf(link uint32, packets ...[]byte) []byte {
	var w bytes.Buffer
	put := func(vs ...uint32) {
		for _, v := range vs {
			_ = binary.Write(&w, binary.LittleEndian, v)
		}
	}
	put(0xA1B2C3D4, 4<<16|2, 0, 0, 262144, link)
	for i, p := range packets {
		put(uint32(i+1), 0, uint32(len(p)), uint32(len(p)))
		w.Write(p)
	}
	return w.Bytes()
}

// flowsOf reassembles raw packets, one a second.
func flowsOf(tb testing.TB, l flow.Limits, packets ...[]byte) ([]*flow.Flow, flow.Stats) {
	tb.Helper()
	var flows []*flow.Flow
	a := flow.NewAssembler(flow.Config{Limits: l, Flow: func(f *flow.Flow) error {
		checkFlow(tb, f)
		flows = append(flows, f)
		return nil
	}})
	for i, p := range packets {
		require.NoError(tb, a.Add(flow.Packet{No: i + 1, Time: time.Unix(int64(i), 0), Link: 101, Length: len(p), Data: p}))
	}
	stats, err := a.Close()
	require.NoError(tb, err)
	return flows, stats
}

func at2time(s int) time.Time { return time.Unix(int64(s), 0) }
