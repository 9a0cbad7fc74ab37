package flow_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"slices"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/http1"
)

// turn is what one end sends in one packet; lost packets are not in the capture.
type turn struct {
	reply bool
	text  string
	lost  bool
}

func q(s string) turn  { return turn{text: s} }
func a(s string) turn  { return turn{text: s, reply: true} }
func lost(t turn) turn { t.lost = true; return t }
func post(b string) string {
	return fmt.Sprintf("POST /s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
}
func ok(b string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
}

// talkOf makes the packets of a connection.
func talkOf(ended bool, turns ...turn) [][]byte {
	packets := [][]byte{seg(1, 1000, syn, 99, 0, ""), seg(2, 1000, syn|ack, 199, 100, "")}
	at := [2]uint32{100, 200}
	for _, t := range turns {
		i := byte(0)
		if t.reply {
			i = 1
		}
		if !t.lost {
			packets = append(packets, seg(i+1, 1000, ack, at[i], at[1-i], t.text))
		}
		at[i] += uint32(len(t.text))
	}
	if ended {
		packets = append(packets, seg(2, 1000, ack|fin, at[1], at[0], ""), seg(1, 1000, ack|fin, at[0], at[1]+1, ""))
	}
	return packets
}

// show writes a message as its start line, its body, and why it is not complete.
func show(m *flow.HTTPMessage) string {
	if m == nil {
		return "-"
	}
	head, _, _ := http1.ParseHead(m.Octets, 0)
	s := string(head.StartLine())
	if head.IsReply() {
		s = fmt.Sprint(head.Status())
	} else if s != "" {
		s = string(head.Method())
	}
	if b := octets(m); len(b) > 0 {
		s += " " + string(b)
	}
	if m.Why != 0 {
		s += " (" + m.Why.String() + ")"
	}
	return s
}

func exchanges(h told) []string {
	var out []string
	for _, e := range h.exchanges {
		s := show(e.Request)
		for _, m := range e.Interim {
			s += " > " + show(m)
		}
		out = append(out, s+" > "+show(e.Reply))
	}
	return out
}

func TestHTTP(t *testing.T) {
	for name, tt := range map[string]struct {
		turns []turn
		open  bool // the connection does not end
		want  []string
	}{
		"kept alive": {turns: []turn{q(post("1")), a(ok("2")), q(post("3")), a(ok("4"))},
			want: []string{"POST 1 > 200 2", "POST 3 > 200 4"}},
		"in pieces": {turns: []turn{q(post("12")[:9]), q(post("12")[9:47]), q(post("12")[47:]), a(ok("34")[:3]),
			a(ok("34")[3:])}, want: []string{"POST 12 > 200 34"}},
		"pipelined": {turns: []turn{q(post("1") + post("2")), a(ok("3") + ok("4"))},
			want: []string{"POST 1 > 200 3", "POST 2 > 200 4"}},
		"head": {turns: []turn{q("HEAD / HTTP/1.1\r\n\r\n"),
			a("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), q(post("1")), a(ok("2"))},
			want: []string{"HEAD > 200", "POST 1 > 200 2"}},
		"continue": {turns: []turn{q(post("1")[:48]), a("HTTP/1.1 100 Continue\r\n\r\n"), q(post("1")[48:]),
			a(ok("2"))}, want: []string{"POST 1 > 100 > 200 2"}},
		"chunked": {turns: []turn{q(post("1")),
			a("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\n34\r\n1\r\n5\r\n"),
			a("0\r\nT: u\r\n\r\n" + ok("6"))}, want: []string{"POST 1 > 200 345", "- > 200 6"}},
		"until close": {turns: []turn{q(post("1")), a("HTTP/1.0 200 OK\r\n\r\n2"), a("3")},
			want: []string{"POST 1 > 200 23"}},
		"not yet closed": {turns: []turn{q(post("1")), a("HTTP/1.0 200 OK\r\n\r\n2")}, open: true,
			want: []string{"POST 1 > 200 2 (cut)"}},
		"cut in a body": {turns: []turn{q(post("12")[:49])}, want: []string{"POST 1 (cut) > -"}},
		"cut in a head": {turns: []turn{q(post("1")), a("HTTP/1.1 200 OK\r\nCont")},
			want: []string{"POST 1 >  (cut)"}},
		"request lost": {turns: []turn{q(post("1")), a(ok("2")), lost(q(post("3"))), a(ok("4")), q(post("5")),
			a(ok("6"))}, want: []string{"POST 1 > 200 2", "- > 200 4", "POST 5 > 200 6"}},
		"reply lost": {turns: []turn{q(post("1")), lost(a(ok("2"))), q(post("3")), a(ok("4"))},
			want: []string{"POST 1 > -", "POST 3 > 200 4"}},
		"gap in a body": {turns: []turn{q(post("123456")[:49]), lost(q("234")), q("56" + post("7")),
			a(ok("8") + ok("9"))}, want: []string{"POST 1 (gap) > 200 8", "POST 7 > 200 9"}},
		"gap in chunks": {turns: []turn{q(post("1")),
			a("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n"), lost(a("34\r\n")), a("0\r\n\r\n"),
			q(post("5")), a(ok("6"))}, want: []string{"POST 1 > 200 (gap)", "POST 5 > 200 6"}},
		"gap in a head": {turns: []turn{q(post("1")[:20]), lost(q(post("1")[20:])), a(ok("2")), q(post("3")),
			a(ok("4"))}, want: []string{" (gap) > 200 2", "POST 3 > 200 4"}},
		"malformed length": {turns: []turn{q("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\nabc"), a(ok("1")),
			q(post("2")), a(ok("3"))}, want: []string{"POST (malformed) > 200 1", "POST 2 > 200 3"}},
		"malformed head": {turns: []turn{q("POST / HTTP/1.1\r\nno colon\r\n\r\n"), a(ok("1")), q(post("2")),
			a(ok("3"))}, want: []string{" (malformed) > 200 1", "POST 2 > 200 3"}},
		"malformed chunk": {turns: []turn{q(post("1")),
			a("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), q(post("2")), a(ok("3"))},
			want: []string{"POST 1 > 200 (malformed)", "POST 2 > 200 3"}},
		"nul after it": {turns: []turn{q(post("1") + "\x00\x00"), a(ok("2") + "\r\n")},
			want: []string{"POST 1 > 200 2"}},
		"no HTTP": {turns: []turn{q("\x01HHFR/1\n"), a("SSH-2.0-x\r\n")}},
		"reply first": {turns: []turn{lost(q(post("1"))), a(ok("2")), q(post("3")), a(ok("4"))},
			want: []string{"- > 200 2", "POST 3 > 200 4"}},
	} {
		flows, _ := flowsOf(t, flow.Limits{}, talkOf(!tt.open, tt.turns...)...)
		require.Len(t, flows, 1, name)
		assert.Equal(t, tt.want, exchanges(httpOf(t, flows[0], flow.HTTPConfig{})), name)
	}
}

// A capture that has packets out of order, also those of different directions, has the same
// exchanges: a reply that acknowledges a request comes after it.
func TestHTTPOutOfOrder(t *testing.T) {
	for name, turns := range map[string][]turn{
		"kept alive": {q(post("1")), a(ok("2")), q(post("3")), a(ok("4")), q(post("5")), a(ok("6")), q(post("7")),
			a(ok("8"))},
		"in pieces": {q(post("1")[:30]), q(post("1")[30:]), a(ok("2")[:10]), a(ok("2")[10:]), q(post("3")[:9]),
			q(post("3")[9:]), a(ok("4"))},
		"pipelined": {q(post("1") + post("3")), q(post("5")), a(ok("2")), a(ok("4") + ok("6"))},
		"interim":   {q(post("1")[:48]), a("HTTP/1.1 100 Continue\r\n\r\n"), q(post("1")[48:]), a(ok("2"))},
	} {
		packets := talkOf(true, turns...)
		flows, _ := flowsOf(t, flow.Limits{}, packets...)
		want := exchanges(httpOf(t, flows[0], flow.HTTPConfig{}))
		for late := 1; late < len(packets); late++ {
			for i := 2; i+late < len(packets); i++ {
				moved := slices.Insert(slices.Delete(slices.Clone(packets), i, i+1), i+late, packets[i])
				flows, _ := flowsOf(t, flow.Limits{}, moved...)
				require.Len(t, flows, 1)
				assert.Equal(t, want, exchanges(httpOf(t, flows[0], flow.HTTPConfig{})), "%s: packet %d is %d late",
					name, i, late)
			}
		}
	}
}

// Bytes that are acknowledged and not captured hold up those of the other direction for some
// packets, once if nothing at all of a direction is captured, and not beyond the end.
func TestAcknowledgedBytesThatAreMissing(t *testing.T) {
	var turns []turn
	for range 40 {
		turns = append(turns, lost(q(post("1"))), a(ok("2")))
	}
	var at []int // packets by which replies were passed on
	one := func(packets [][]byte) (replies int) {
		at = nil
		n := 0
		as := flow.NewAssembler(flow.Config{Flow: func(*flow.Flow) flow.Receiver {
			return switched{HTTP: flow.NewHTTP(flow.HTTPConfig{Reply: func(*flow.HTTPExchange) {
				at = append(at, n)
				replies++
			}})}
		}})
		f, err := flow.Open(bytes.NewReader(pcapOf(101, packets...)))
		require.NoError(t, err)
		for p, err := f.Next(); err == nil; p, err = f.Next() {
			n++
			require.NoError(t, as.Add(p))
		}
		_, err = as.Close()
		require.NoError(t, err)
		return replies
	}
	assert.Equal(t, 40, one(talkOf(true, turns...)))
	assert.Equal(t, []int{19, 19, 19}, at[:3], "one direction alone is captured")
	assert.Equal(t, 20, at[17], "without a wait from then on")

	turns[0].lost = false
	assert.Equal(t, 40, one(talkOf(true, turns...)))
	assert.Equal(t, []int{4, 21, 22}, at[:3])

	assert.Equal(t, 3, one(talkOf(false, turns[:6]...)))
}

func TestTunnelsAreLeftAlone(t *testing.T) {
	up := "POST / HTTP/1.1\r\nUpgrade: hhfr/1\r\nContent-Length: 1\r\n\r\n1"
	sw := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: hhfr/1\r\n\r\n"
	flows, _ := flowsOf(t, flow.Limits{}, talkOf(true, q(up), a(sw+"\x01HHFR"), q("\x01HHFR"), q(post("no")))...)
	h := httpOf(t, flows[0], flow.HTTPConfig{})
	assert.Equal(t, []string{"POST 1 > 101"}, exchanges(h))

	connect, two := "CONNECT h:1 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"
	flows, _ = flowsOf(t, flow.Limits{}, talkOf(true, q(connect), a(two), q("x"), a("y"))...)
	h = httpOf(t, flows[0], flow.HTTPConfig{})
	assert.Equal(t, []string{"CONNECT > 200"}, exchanges(h))

	flows, _ = flowsOf(t, flow.Limits{}, talkOf(true, q(up), a(ok("2")), q(post("3")), a(ok("4")))...)
	h = httpOf(t, flows[0], flow.HTTPConfig{})
	assert.Equal(t, []string{"POST 1 > 200 2", "POST 3 > 200 4"}, exchanges(h))
}

func TestCaptureThatBeginsWithTheServer(t *testing.T) {
	packets := talkOf(true, q(post("1")), a(ok("2")), q(post("3")), a(ok("4")))
	flows, _ := flowsOf(t, flow.Limits{}, packets[3:]...)
	require.Len(t, flows, 1)
	assert.Equal(t, "10.0.0.2:80", flows[0].Src.String())
	h := httpOf(t, flows[0], flow.HTTPConfig{})
	assert.Equal(t, 1, h.requests)
	assert.Equal(t, []string{"- > 200 2", "POST 3 > 200 4"}, exchanges(h))
}

func TestMessageSaysWhereAndWhen(t *testing.T) {
	flows, _ := flowsOf(
		t,
		flow.Limits{},
		talkOf(true, q(post("abcdef")[:49]), q(post("abcdef")[49:]+post("1")), a(ok("2")+ok("3")))...)
	h := httpOf(t, flows[0], flow.HTTPConfig{})
	require.Len(t, h.exchanges, 2)
	m := h.exchanges[0].Request
	assert.Equal(t, []int{3, 4}, []int{m.FirstPacket, m.LastPacket})
	assert.Equal(t, at2time(2), m.First)
	assert.Equal(t, at2time(3), m.Last)
	assert.Equal(t, int64(len(post("abcdef"))), m.Wire)
	m = h.exchanges[1].Request
	assert.Equal(t, int64(len(post("abcdef"))), m.Offset)
	assert.Equal(t, m.Offset+m.Wire, m.End())
	assert.Equal(t, "POST /s HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n", string(m.Octets))
}

func TestContentCodings(t *testing.T) {
	plain := bytes.Repeat([]byte("<a/>"), 1000)
	var gz, zl bytes.Buffer
	w := gzip.NewWriter(&gz)
	_, _ = w.Write(plain)
	require.NoError(t, w.Close())
	z := zlib.NewWriter(&zl)
	_, _ = z.Write(plain)
	require.NoError(t, z.Close())
	raw := zl.Bytes()[2 : zl.Len()-4]
	var br bytes.Buffer
	b := brotli.NewWriter(&br)
	_, _ = b.Write(plain)
	require.NoError(t, b.Close())
	e, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	zs := e.EncodeAll(plain, nil)
	twice := e.EncodeAll(gz.Bytes(), nil)
	for _, tt := range []struct {
		coding string
		entity []byte
		ok     bool
	}{
		{"gzip", gz.Bytes(), true}, {"X-GZIP", gz.Bytes(), true}, {"deflate", zl.Bytes(), true}, {"deflate", raw, true},
		{"identity", plain, true},
		{"br", br.Bytes(), true}, {"zstd", zs, true}, {"gzip, zstd", twice, true}, {"identity, br", br.Bytes(), true},
		{"br", []byte("no brotli"), false}, {"br", br.Bytes()[:br.Len()-2], false}, {"zstd", zs[:len(zs)-2], false},
		{"zstd", []byte("?"), false}, {"compress", plain, false}, {"zstd, gzip", twice, false},
		{"gzip, gzip, gzip, gzip, gzip", gz.Bytes(), false},
		{"gzip", []byte("no gzip"), false}, {"gzip, gzip", gz.Bytes(), false},
	} {
		reply := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", tt.coding,
			len(tt.entity), tt.entity)
		flows, _ := flowsOf(t, flow.Limits{}, talkOf(true, q(post("1")), a(reply))...)
		m := httpOf(t, flows[0], flow.HTTPConfig{}).exchanges[0].Reply
		assert.True(t, m.Complete())
		if tt.ok {
			assert.NoError(t, m.CodingErr, tt.coding)
			assert.Equal(t, plain, octets(m), tt.coding)
		} else {
			assert.Error(t, m.CodingErr, tt.coding)
			assert.Equal(t, tt.entity, octets(m), tt.coding)
		}
	}
	reply := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", gz.Len(),
		gz.Bytes())
	flows, _ := flowsOf(t, flow.Limits{}, talkOf(true, q(post("123")), a(reply))...)
	h := httpOf(t, flows[0], flow.HTTPConfig{Body: 100})
	m := h.exchanges[0].Reply
	assert.Error(t, m.CodingErr)
	assert.Len(t, octets(m), 100)
	assert.Equal(t, "POST 1 (limit)", show(httpOf(t, flows[0], flow.HTTPConfig{Body: 1}).exchanges[0].Request))
}

// TestBombs: what expands without end is cut, whatever the coding.
func TestBombs(t *testing.T) {
	plain := make([]byte, 8<<20)
	var br, gz bytes.Buffer
	b := brotli.NewWriter(&br)
	_, _ = b.Write(plain)
	require.NoError(t, b.Close())
	g := gzip.NewWriter(&gz)
	_, _ = g.Write(plain)
	require.NoError(t, g.Close())
	e, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	for coding, entity := range map[string][]byte{
		"br": br.Bytes(), "gzip": gz.Bytes(), "zstd": e.EncodeAll(plain, nil),
	} {
		reply := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", coding,
			len(entity), entity)
		flows, _ := flowsOf(t, flow.Limits{}, talkOf(true, q(post("1")), a(reply))...)
		m := httpOf(t, flows[0], flow.HTTPConfig{Body: 1 << 20}).exchanges[0].Reply
		assert.ErrorContains(t, m.CodingErr, "longer than the limit", coding)
		assert.Len(t, octets(m), 1<<20, coding)
	}
}

func TestDoubtsAreReported(t *testing.T) {
	smuggle := "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
	flows, _ := flowsOf(t, flow.Limits{}, talkOf(true, q(smuggle+post("1")), a(ok("2")+ok("3")))...)
	h := httpOf(t, flows[0], flow.HTTPConfig{})
	assert.Equal(t, []string{"POST > 200 2", "POST 1 > 200 3"}, exchanges(h))
	assert.True(t, slices.Contains(h.exchanges[0].Request.Doubts, http1.BothLengths.String()))
}

// Bytes after an upgrade are given as they came: of replies after the head, of requests after the
// body of the one that was upgraded, although the reply is captured before that is whole.
func TestSwitch(t *testing.T) {
	up := "POST / HTTP/1.1\r\nUpgrade: hhfr/1\r\nContent-Length: 3\r\n\r\n"
	sw := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: hhfr/1\r\n\r\n"
	for name, turns := range map[string][]turn{
		"in order":          {q(up + "123"), a(sw + "back"), q("out")},
		"reply first":       {q(up + "1"), a(sw + "ba"), q("2"), a("ck"), q("3"), q("out")},
		"within the head":   {q(up[:20]), a(sw + "ba"), q(up[20:] + "12"), a("ck"), q("3out")},
		"rest of it lost":   {q(up + "1"), a(sw + "back"), lost(q("23")), q("out")},
		"after an interim":  {q(up), a("HTTP/1.1 100 Continue\r\n\r\n"), q("123"), a(sw), a("back"), q("out")},
		"after an exchange": {q(post("0")), a(ok("0")), q(up + "123"), a(sw + "back"), q("out")},
	} {
		var rest [2]string
		var h *flow.HTTP
		f, err := flow.Open(bytes.NewReader(pcapOf(101, talkOf(true, turns...)...)))
		require.NoError(t, err)
		_, err = flow.Read(flow.Config{Flow: func(*flow.Flow) flow.Receiver {
			h = flow.NewHTTP(flow.HTTPConfig{})
			return switched{h, &rest}
		}}, f)
		require.NoError(t, err)
		require.NotNil(t, h.Switch, name)
		assert.True(t, h.Tunnel, name)
		assert.Equal(t, [2]string{"out", "back"}, rest, name)
		want := "POST 123"
		if name == "rest of it lost" {
			want = "POST 1 (gap)"
		}
		assert.Equal(t, want, show(h.Switch.Request), name)
	}
}

// switched reads the bytes after HTTP.
type switched struct {
	*flow.HTTP
	rest *[2]string
}

func (s switched) Octets(dir int, gap int64, b []byte, m flow.Mark) error {
	err := s.HTTP.Octets(dir, gap, b, m)
	if s.Tunnel {
		for i := range s.rest {
			b, _ := s.Rest(i)
			s.rest[i] += string(b)
		}
	}
	return err
}

func (s switched) Closed() error {
	s.Close([2]flow.End{})
	return nil
}

// A request whose rest never comes does not keep everything that follows its reply.
func TestSwitchIsBounded(t *testing.T) {
	h := flow.NewHTTP(flow.HTTPConfig{})
	mark := flow.Mark{PacketNo: 1}
	require.NoError(t,
		h.Octets(0, 0, []byte("POST / HTTP/1.1\r\nUpgrade: hhfr/1\r\nTransfer-Encoding: chunked\r\n\r\n1"), mark))
	mark.PacketNo++
	require.NoError(t, h.Octets(1, 0, []byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: hhfr/1\r\n\r\n"), mark))
	for range 20 {
		require.NoError(t, h.Octets(1, 0, make([]byte, 100_000), mark))
		if h.Tunnel {
			break
		}
	}
	assert.True(t, h.Tunnel)
	b, _ := h.Rest(1)
	assert.Less(t, len(b), 1_300_000)
	assert.Equal(t, "gap", h.Switch.Request.Why.String())
}
