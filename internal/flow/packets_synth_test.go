package flow_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/pcap"
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

// run is a part of a direction without a gap; gapBefore is how many bytes are missing before it, -1
// if the number is not known.
type run struct {
	offset, gapBefore int64
	data              []byte
	marks             []flow.Mark
	at                []int // where in data the bytes of each mark begin
}

func (r *run) end() int64 { return r.offset + int64(len(r.data)) }

// whole is a connection as an assembler passed it on.
type whole struct {
	*flow.Flow
	dirs  [2][]run
	calls []func(flow.Receiver) error
	done  func(*whole) error
}

func (w *whole) Octets(dir int, gap int64, b []byte, m flow.Mark) error {
	b = bytes.Clone(b)
	w.calls = append(w.calls, func(r flow.Receiver) error { return r.Octets(dir, gap, b, m) })
	list := w.dirs[dir]
	if len(list) == 0 || gap > 0 {
		offset := max(gap, 0)
		if len(list) > 0 {
			offset += list[len(list)-1].end()
		}
		list = append(list, run{offset: offset, gapBefore: gap})
	}
	r := &list[len(list)-1]
	r.at, r.marks = append(r.at, len(r.data)), append(r.marks, m)
	r.data = append(r.data, b...)
	w.dirs[dir] = list
	return nil
}

func (w *whole) Closed() error { return w.done(w) }

// gather makes an assembler pass connections to done.
func gather(l flow.Limits, done func(*whole) error) flow.Config {
	return flow.Config{Limits: l, Flow: func(f *flow.Flow) flow.Receiver { return &whole{Flow: f, done: done} }}
}

// flowsOf reassembles raw packets, one a second.
func flowsOf(tb testing.TB, l flow.Limits, packets ...[]byte) ([]*whole, flow.Stats) {
	tb.Helper()
	var flows []*whole
	a := flow.NewAssembler(gather(l, func(f *whole) error {
		checkFlow(tb, f)
		flows = append(flows, f)
		return nil
	}))
	for i, p := range packets {
		require.NoError(tb, a.Add(flow.CapturedPacket{No: i + 1, PacketRecord: pcap.PacketRecord{
			Time: time.Unix(int64(i), 0), Link: pcap.LinkRaw, Length: len(p), Data: p}}))
	}
	stats, err := a.Close()
	require.NoError(tb, err)
	return flows, stats
}

// told describes the HTTP messages of a connection.
type told struct {
	requests  int
	exchanges []*flow.HTTPExchange
}

func httpOf(tb testing.TB, w *whole, c flow.HTTPConfig) (t told) {
	tb.Helper()
	add := func(x *flow.HTTPExchange) {
		if !slices.Contains(t.exchanges, x) {
			t.exchanges = append(t.exchanges, x)
		}
	}
	c.Request, c.Reply = add, add
	h := flow.NewHTTP(c)
	for _, call := range w.calls {
		require.NoError(tb, call(httpReceiver{h}))
	}
	h.Close(w.Ends)
	slices.SortFunc(t.exchanges, func(a, b *flow.HTTPExchange) int { return a.ID - b.ID })
	t.requests = h.Requests
	return t
}

type httpReceiver struct{ *flow.HTTP }

func (httpReceiver) Closed() error { return nil }

// bytes returns those of a body.
func octets(m *flow.HTTPMessage) []byte {
	if m.Body == nil {
		return nil
	}
	b, _ := io.ReadAll(m.Body.Reader())
	return b
}

func at2time(s int) time.Time { return time.Unix(int64(s), 0) }
