package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/hhfr/hhfr/compare/internal/pcap"
	"github.com/hhfr/hhfr/compare/internal/program"
	"github.com/hhfr/hhfr/pkg/workload"
)

// conversationCalls is how long a conversation is.
const conversationCalls = 100

// conversationRow is what the calls of a conversation take: as they are, in a tunnel that
// compresses each direction with zstd as one stream, and through a pair that meets for the first
// time. Bytes on the link have the headers of packets in them, those of payload have not; both have
// the negotiation of the pair.
type conversationRow struct {
	Name         string  `json:"conversation"`
	Calls        int     `json:"calls"`
	Plain        float64 `json:"plain"`         // on the link
	PlainPayload float64 `json:"plain_payload"` // payload
	Pair         float64 `json:"pair"`          // on the link
	PairPayload  float64 `json:"pair_payload"`
	SteadyPair   float64 `json:"steady_pair"`         // on the link, by the second half of the calls
	ZstdLevel3   float64 `json:"zstd_stream_3"`       // payload
	Zstd         float64 `json:"zstd_stream_best"`    // payload, of the best compressor
	Tunnel       float64 `json:"zstd_tunnel"`         // on the link, of the estimate: one window, in frames, flushed
	ToPlain      float64 `json:"pair_to_plain"`       // on the link
	ToZstd       float64 `json:"pair_to_zstd_stream"` // payload, to the best compressor
}

// carriedConversation is a conversation, and how a pair takes connections.
type carriedConversation struct {
	workload.Conversation
	perAddress bool
}

// carriedConversations has those with a connection for each call twice: a pair may know the client
// by its connection, as is the default, or by its address.
func carriedConversations() (list []carriedConversation) {
	for _, c := range workload.Conversations() {
		list = append(list, carriedConversation{c, false})
		if c.Closed {
			c.Name += ", client per address"
			list = append(list, carriedConversation{c, true})
		}
	}
	return list
}

func measureConversations(ctx context.Context) (rows []conversationRow, err error) {
	for _, c := range carriedConversations() {
		row, err := measureConversation(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func measureConversation(ctx context.Context, c carriedConversation) (row conversationRow, err error) {
	said, captured, err := recordConversation(c.Conversation, conversationCalls)
	if err != nil {
		return row, err
	}
	e, err := program.Estimate(ctx, captured, "gprs", c.perAddress)
	if err != nil {
		return row, err
	}
	plain, pair := program.Of(e.Total, program.Plain), program.Of(e.Total, program.FirstContact)
	row = conversationRow{
		Name: c.Name, Calls: e.Calls,
		Plain: float64(plain.Bytes), PlainPayload: float64(plain.Payload()),
		Pair: float64(pair.Bytes), PairPayload: float64(pair.Payload()),
		SteadyPair: float64(program.Of(e.Steady, program.FirstContact).Bytes),
		Tunnel:     float64(program.Of(e.Total, program.Zstd).Bytes),
	}
	tunnels := []func([][]byte) (int, error){
		zstdStream(zstdC(3)), zstdStream(zstdC(19)), zstdStream(zstdGoDefault), zstdStream(zstdGoBest),
	}
	for i, tunnel := range tunnels {
		took := 0
		for _, direction := range said {
			n, err := tunnel(direction)
			if err != nil {
				return row, err
			}
			took += n
		}
		if i == 0 {
			row.ZstdLevel3 = float64(took)
		}
		if took > 0 && (row.Zstd == 0 || float64(took) < row.Zstd) {
			row.Zstd = float64(took)
		}
	}
	row.ToPlain, row.ToZstd = row.Pair/row.Plain, row.PairPayload/row.Zstd
	return row, nil
}

func zstdGoDefault(w io.Writer) (flusher, error) { return zstdGo(w, zstd.SpeedDefault) }

// recordConversation returns what a conversation says, by direction, and a capture of it taken at
// the client.
func recordConversation(c workload.Conversation, calls int) (said [2][][]byte, captured []byte, err error) {
	now := time.Date(2026, 3, 14, 9, 27, 0, 0, time.UTC)
	var b bytes.Buffer
	captures := pcap.New(&b)
	server := netip.MustParseAddrPort("192.0.2.1:80")
	var conn *pcap.Conn
	port := uint16(20_000)
	for request, reply := range c.Calls(seed) {
		if conn == nil || c.Closed {
			port++
			conn = captures.Open(now, netip.AddrPortFrom(netip.MustParseAddr("192.0.2.10"), port), server)
		}
		next := now.Add(c.Every)
		conn.Said(now, 0, request)
		now = now.Add(c.Took)
		conn.Said(now, 1, reply)
		if said[0], said[1] = append(said[0], request), append(said[1], reply); c.Closed {
			conn.End(now, 0)
			conn.End(now, 1)
		}
		if now = next; len(said[0]) == calls {
			break
		}
	}
	return said, b.Bytes(), captures.Err()
}

func (r *results) writeConversations(p *tablePrinter) {
	if len(r.Conversations) == 0 {
		return
	}
	p.printf("\n%d calls of conversations at their pace, bytes a call, both directions, negotiation in them. On the "+
		"link: with the headers of packets. A tunnel compresses each direction of all connections with zstd as one "+
		"stream; on the link: in frames, flushed as the data came. The pair meets for the first time; steady: by the "+
		"second half of the calls.\n\n", conversationCalls)
	t := cells{{"conversation", "plain, on the link", "zstd, on the link", "pair, on the link", "steady", "plain",
		"zstd C 3", "best zstd", "pair", "pair / plain, on the link", "pair / best zstd"}}
	for _, row := range r.Conversations {
		line := []string{row.Name}
		for _, v := range []float64{row.Plain, row.Tunnel, row.Pair, row.SteadyPair, row.PlainPayload,
			row.ZstdLevel3, row.Zstd, row.PairPayload} {
			line = append(line, number(v/float64(row.Calls)))
		}
		t = append(t, append(line, strconv.FormatFloat(row.ToPlain, 'f', 3, 64), ratio(row.ToZstd)))
	}
	p.table(t)
}

// conversationOf is a figure of one of them.
func conversationOf(name string, of func(*conversationRow) float64) func(*results) (float64, bool) {
	return func(r *results) (float64, bool) {
		i := slices.IndexFunc(r.Conversations, func(row conversationRow) bool { return row.Name == name })
		if i < 0 {
			return 0, false
		}
		return of(&r.Conversations[i]), true
	}
}

// conversationGoals limit what a pair that meets for the first time takes of the link.
func conversationGoals() (list []goal) {
	for _, c := range carriedConversations() {
		list = append(list,
			goal{16, c.Name + ", 100 calls, bytes on the link to plain SOAP", 0.16, false,
				conversationOf(c.Name, func(row *conversationRow) float64 { return row.ToPlain })},
			goal{16, c.Name + ", 100 calls, payload to the best zstd stream", 0.65, false,
				conversationOf(c.Name, func(row *conversationRow) float64 { return row.ToZstd })})
	}
	return list
}
