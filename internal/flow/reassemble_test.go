package flow_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/pcap"
	"github.com/hhfr/hhfr/internal/pcapng"
)

// runs shows a direction: each run with the gap before it, then the gap at the end.
func runs(w *whole, dir int) []any {
	out := []any{}
	for _, r := range w.dirs[dir] {
		out = append(out, r.gapBefore, string(r.data))
	}
	return append(out, w.Ends[dir].GapAfter)
}

func TestReassembly(t *testing.T) {
	c := func(flags byte, seq uint32, s string) []byte { return seg(1, 1000, flags, seq, 501, s) }
	s := func(flags byte, acked uint32, s string) []byte { return seg(2, 1000, flags, 501, acked, s) }
	open := [][]byte{seg(1, 1000, syn, 100, 0, ""), seg(2, 1000, syn|ack, 500, 101, "")}
	wrap := [][]byte{seg(1, 1000, syn, 0xFFFFFFFD, 0, ""), seg(2, 1000, syn|ack, 500, 0xFFFFFFFE, "")}
	for name, tt := range map[string]struct {
		packets [][]byte
		want    []any
		second  []any // of a second connection
	}{
		"in order": {append(open, c(ack, 101, "ab"), c(ack|fin, 103, "cd")),
			[]any{int64(0), "abcd", int64(0)}, nil},
		"out of order": {append(open, c(ack, 105, "ef"), c(ack, 103, "cd"), c(ack, 101, "ab")),
			[]any{int64(0), "abcdef", int64(0)}, nil},
		"repeated": {append(open, c(ack, 101, "ab"), c(ack, 101, "ab"), c(ack, 103, "cd"),
			c(ack, 101, "abcd")), []any{int64(0), "abcd", int64(0)}, nil},
		"first wins": {append(open, c(ack, 101, "ab"), c(ack, 102, "XYZ")),
			[]any{int64(0), "abYZ", int64(0)}, nil},
		"first wins waiting": {append(open, c(ack, 103, "cd"), c(ack, 105, "ef"), c(ack, 102, "XYZVW"),
			c(ack, 101, "a")), []any{int64(0), "aXcdef", int64(0)}, nil},
		"keep-alive": {append(open, c(ack, 101, "ab"), c(ack, 102, "\x00"), c(ack, 103, "cd")),
			[]any{int64(0), "abcd", int64(0)}, nil},
		"gap acknowledged": {append(append(slices.Clip(open), c(ack, 101, "ab"), c(ack, 106, "fg")),
			append(slices.Repeat([][]byte{s(ack, 108, "")}, 16), c(ack, 103, "cde"))...),
			[]any{int64(0), "ab", int64(3), "fg", int64(0)}, nil},
		"acknowledgement overtakes": {append(open, c(ack, 101, "ab"), c(ack, 106, "fg"), s(ack, 108, ""),
			c(ack, 103, "cde")), []any{int64(0), "abcdefg", int64(0)}, nil},
		"gap at the end": {append(open, c(ack, 101, "ab"), c(ack, 106, "fg")),
			[]any{int64(0), "ab", int64(3), "fg", int64(0)}, nil},
		"gap waits": {append(open, c(ack, 106, "fg"), s(ack, 101, ""), c(ack, 101, "abcde")),
			[]any{int64(0), "abcdefg", int64(0)}, nil},
		"gap in front": {append(open, c(ack, 103, "cd")), []any{int64(2), "cd", int64(0)}, nil},
		"end known by ack": {append(open, c(ack, 101, "ab"), s(ack, 110, "")),
			[]any{int64(0), "ab", int64(7)}, nil},
		"end known by fin": {append(open, c(ack, 101, "ab"), c(ack|fin, 106, "")),
			[]any{int64(0), "ab", int64(3)}, nil},
		"fin acknowledged": {append(open, c(ack, 101, "ab"), s(ack, 104, "")),
			[]any{int64(0), "ab", int64(0)}, nil},
		"wrap": {append(wrap, c(ack, 0xFFFFFFFE, "ab"), c(ack, 2, "ef"), c(ack, 0, "cd")),
			[]any{int64(0), "abcdef", int64(0)}, nil},
		"no handshake": {[][]byte{c(ack, 105, "ef"), c(ack, 103, "cd"), s(ack, 107, ""),
			c(ack, 107, "gh")}, []any{int64(-1), "cdefgh", int64(0)}, nil},
		"only the reply of the handshake": {[][]byte{open[1], c(ack, 103, "cd"), c(ack, 101, "ab")},
			[]any{int64(0), "abcd", int64(0)}, nil},
		"handshake after data": {[][]byte{c(ack, 101, "ab"), open[0], open[1], c(ack, 103, "cd")},
			[]any{int64(0), "abcd", int64(0)}, nil},
		"data with syn": {[][]byte{seg(1, 1000, syn, 100, 0, "ab"), open[1], c(ack, 103, "cd")},
			[]any{int64(0), "abcd", int64(0)}, nil},
		"reset carries no data": {append(open, c(ack, 101, "ab"), c(rst|ack, 103, "why")),
			[]any{int64(0), "ab", int64(0)}, nil},
		"syn again": {append(open, open[0], open[1], c(ack, 101, "ab")),
			[]any{int64(0), "ab", int64(0)}, nil},
		"port reused": {append(open, c(ack, 101, "ab"), c(fin|ack, 103, ""), s(fin|ack, 104, ""),
			seg(1, 1000, syn, 9000, 0, ""), c(ack, 9001, "cd")),
			[]any{int64(0), "ab", int64(0)}, []any{int64(0), "cd", int64(0)}},
	} {
		flows, _ := flowsOf(t, flow.Limits{}, slices.Clone(tt.packets)...)
		if tt.second == nil {
			require.Len(t, flows, 1, name)
		} else if assert.Len(t, flows, 2, name) {
			assert.Equal(t, tt.second, runs(flows[1], 0), name)
		}
		assert.Equal(t, tt.want, runs(flows[0], 0), name)
		assert.Equal(t, "10.0.0.1:1000", flows[0].Src.String(), name)
	}
}

func TestLimits(t *testing.T) {
	begin := [][]byte{seg(1, 1000, syn, 0, 0, ""), seg(2, 1000, syn|ack, 0, 1, "")}
	data := bytes.Repeat([]byte("0123456789"), 10)
	packets := slices.Clone(begin)
	for i := range 100 { // after a gap of 1 byte
		packets = append(packets, seg(1, 1000, ack, uint32(2+100*i), 1, string(data)))
	}
	flows, stats := flowsOf(t, flow.Limits{PendingPieces: 10}, packets...)
	require.Len(t, flows, 1)
	assert.Equal(t, 1, stats.Gaps)
	assert.Len(t, flows[0].dirs[0][0].data, 10000)

	_, stats = flowsOf(t, flow.Limits{PendingOctets: 1000}, packets...)
	assert.Equal(t, 1, stats.Gaps)

	packets = nil
	for port := range 20 {
		packets = append(packets, seg(1, uint16(2000+port), ack, 1, 1, string(data)))
	}
	flows, stats = flowsOf(t, flow.Limits{Flows: 5}, packets...)
	assert.Len(t, flows, 20)
	assert.Equal(t, 1, flows[0].ID)
	evicted := 0
	for _, f := range flows {
		if f.Evicted {
			evicted++
		}
	}
	assert.Equal(t, 15, evicted)
	assert.Zero(t, stats.Evicted, "nothing came of them any more")
	flows, _ = flowsOf(t, flow.Limits{Octets: 1000}, packets...)
	assert.True(t, flows[0].Evicted)
}

// A connection that is evicted lacks something only if more comes of it. One that an end has ended
// goes before others, however long those are idle.
func TestEvictedConnections(t *testing.T) {
	limits := flow.Limits{Flows: 5}
	idle := [][]byte{seg(1, 1000, ack, 1, 1, "a"), seg(1, 1001, ack, 1, 1, "a")}
	for port := range uint16(20) {
		idle = append(idle, seg(1, 2000+port, ack|fin, 1, 1, "x"))
	}
	_, stats := flowsOf(t, limits, append(slices.Clone(idle), seg(1, 1000, ack, 2, 1, "b"))...)
	assert.Zero(t, stats.Evicted, "half-closed ones went before it")
	assert.Equal(t, 22, stats.TCPFlows)
	_, stats = flowsOf(t, limits, append(slices.Clone(idle), seg(2, 2003, ack|fin, 1, 3, ""))...)
	assert.Zero(t, stats.Evicted, "its end has no bytes")
	_, stats = flowsOf(t, limits, append(slices.Clone(idle), seg(2, 2003, ack, 1, 3, "late"),
		seg(2, 2003, ack, 5, 3, "later"))...)
	assert.Equal(t, 1, stats.Evicted)
	_, stats = flowsOf(t, limits, append(slices.Clone(idle), seg(1, 2003, syn, 900, 0, ""),
		seg(1, 2003, ack, 901, 1, "another"))...)
	assert.Zero(t, stats.Evicted, "its addresses are used again")
}

func TestEndedConnectionsAreGivenOutEarly(t *testing.T) {
	given := 0
	a := flow.NewAssembler(gather(flow.Limits{}, func(*whole) error { given++; return nil }))
	at := 0
	add := func(data []byte) {
		at++
		require.NoError(t, a.Add(flow.CapturedPacket{No: at, PacketRecord: pcap.PacketRecord{Time: at2time(at),
			Link: pcap.LinkRaw, Length: len(data), Data: data}}))
	}
	add(seg(1, 1, ack|fin, 1, 1, "x"))
	add(seg(2, 1, ack|fin, 1, 3, "y"))
	for range 40 {
		add(seg(1, 2, ack, 1, 1, "x"))
	}
	assert.Equal(t, 1, given)

	stop := errors.New("stop")
	f, err := flow.Open(bytes.NewReader(pcapOf(101, seg(1, 1, ack, 1, 1, "x"))))
	require.NoError(t, err)
	_, err = flow.Read(gather(flow.Limits{}, func(*whole) error { return stop }), f)
	assert.ErrorIs(t, err, stop)
}

// recording is a recorded connection: its packets, and what both ends sent.
func recording(tb testing.TB, seed uint64) (packets []flow.CapturedPacket, said [2][]byte, file []byte) {
	tb.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	client, server := net.Pipe()
	var out bytes.Buffer
	rec := pcapng.NewRecorder(&out, nil)
	c := rec.Conn(client)
	for i := range 40 {
		b := make([]byte, 1+rnd.IntN(3000))
		for j := range b {
			b[j] = byte(rnd.Uint32())
		}
		from, to := net.Conn(c), server
		if i%3 == 1 {
			from, to = server, c
		}
		done := make(chan error, 1)
		go func() { _, err := from.Write(b); done <- err }()
		_, err := io.ReadFull(to, make([]byte, len(b)))
		require.NoError(tb, err)
		require.NoError(tb, <-done)
		way := 0
		if from == server {
			way = 1
		}
		said[way] = append(said[way], b...)
		require.NoError(tb, c.Comment("comment"))
	}
	require.NoError(tb, c.Close())
	require.NoError(tb, server.Close())
	f, err := flow.Open(bytes.NewReader(out.Bytes()))
	require.NoError(tb, err)
	for {
		p, err := f.Next()
		if err != nil {
			require.ErrorIs(tb, err, io.EOF)
			return packets, said, out.Bytes()
		}
		packets = append(packets, p)
	}
}

func TestRecordingsGiveBackWhatWasSent(t *testing.T) {
	for seed := range uint64(5) {
		packets, said, file := recording(t, seed)
		s := read(t, file)
		require.Len(t, s.flows, 1)
		comments := 0
		for i, d := range s.flows[0].dirs {
			require.Len(t, d, 1)
			assert.True(t, bytes.Equal(said[i], d[0].data))
			assert.Zero(t, s.flows[0].Ends[i].GapAfter)
			for _, m := range d[0].marks {
				comments += len(m.Comments)
				assert.Equal(t, packets[m.PacketNo-1].Time, m.Time)
			}
		}
		assert.Equal(t, 39, comments) // the last one is on the FIN
	}
}

// TestLostPacketsLeaveExactGaps removes any packets: the remaining bytes stay at their offsets, and
// the gaps are exactly what was removed.
func TestLostPacketsLeaveExactGaps(t *testing.T) {
	for seed := range uint64(60) {
		packets, said, _ := recording(t, seed%4)
		rnd := rand.New(rand.NewPCG(seed, 2))
		kept := slices.DeleteFunc(slices.Clone(packets), func(flow.CapturedPacket) bool { return rnd.IntN(4) == 0 })
		if seed%3 == 0 { // a run of packets instead
			at, n := rnd.IntN(len(packets)), rnd.IntN(20)
			kept = slices.Concat(packets[:at], packets[min(at+n, len(packets)):])
		}
		for i := range kept { // late packets, of either direction
			if j := i + 1; seed%2 == 0 && j < len(kept) && len(kept[i].Data) > 40 && len(kept[j].Data) > 40 &&
				rnd.IntN(3) == 0 {
				kept[i], kept[j] = kept[j], kept[i]
			}
		}
		var flows []*whole
		a := flow.NewAssembler(gather(flow.Limits{}, func(f *whole) error { flows = append(flows, f); return nil }))
		left := int64(0)
		for _, p := range kept {
			require.NoError(t, a.Add(p))
			left += int64(len(p.Data) - tcpHead(p.Data))
		}
		stats, err := a.Close()
		require.NoError(t, err)
		if left == 0 {
			continue
		}
		require.Len(t, flows, 1, "seed %d", seed)
		f := flows[0]
		checkFlow(t, f)
		assert.Equal(t, left, stats.TCPOctets, "seed %d", seed)
		first := packets[0].Data
		client := f.Src.Addr().As4() == [4]byte(first[12:16]) && f.Src.Port() == 40000
		for i, d := range f.dirs {
			sent := said[i]
			if !client {
				sent = said[1-i]
			}
			at := int64(-1)
			for _, r := range d {
				if at < 0 { // the offset of the first run is known if the handshake was seen
					at = int64(bytes.Index(sent, r.data))
					require.GreaterOrEqual(t, at, int64(0), "seed %d", seed)
					if r.gapBefore >= 0 {
						require.Equal(t, r.offset, at, "seed %d", seed)
					}
					at -= r.offset
				}
				from := at + r.offset
				require.True(t, bytes.Equal(sent[from:from+int64(len(r.data))], r.data), "seed %d", seed)
			}
		}
	}
}

func tcpHead(ip []byte) int { return 20 + int(ip[32]>>4)*4 }
