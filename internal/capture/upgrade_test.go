package capture_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// turn is what one end sends before the other one sends something.
type turn struct {
	dir    int
	octets string
	lost   bool // it is not in the capture
}

// out and back are what the client sends, and the server.
func out(octets string) turn  { return turn{dir: 0, octets: octets} }
func back(octets string) turn { return turn{dir: 1, octets: octets} }

// cut makes several turns of one.
func (s turn) cut(at ...int) (all []turn) {
	from := 0
	for _, to := range append(at, len(s.octets)) {
		all = append(all, turn{dir: s.dir, octets: s.octets[from:to]})
		from = to
	}
	return all
}

const (
	asksUpgrade   = "Connection: Upgrade\r\nUpgrade: hhfr/1\r\nHHFR: 1\r\n"
	goOn          = "HTTP/1.1 100 Continue\r\n\r\n"
	agreesUpgrade = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\n\r\n"
)

func posted(fields, body string) string {
	return fmt.Sprintf("POST /service HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\n%sContent-Length: %d\r\n\r\n%s",
		fields, len(body), body)
}

// chunked is a request to upgrade in two chunks.
func chunked(body string) turn {
	head := strings.Replace(posted(asksUpgrade, ""), "Content-Length: 0", "Transfer-Encoding: chunked", 1)
	return out(head + fmt.Sprintf("%x\r\n%s\r\n%X;x=y\r\n%s\r\n0\r\n\r\n", 10, body[:10], len(body)-10, body[10:]))
}

func answered(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// message returns the bodies of the exchange with a number: 0 of the request, 1 of its reply.
func messageOf(n int, reply bool) string { return string(body(2*n + b2i(reply))) }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// upgraded is a connection with plain exchanges, an upgraded one, and ones that follow on the
// stream.
type upgraded struct {
	x         *talk
	turns     []turn
	exchanges int // with the plain ones and the upgraded one
	first     int // turn of the request that was upgraded
}

// upgrade makes one; exchange 1 of lane 0 is the request that was upgraded, unless that is no
// exchange.
func upgrade(t testing.TB, plain, streamed int, request ...turn) *upgraded {
	x := newTalkOf(t, func(h *frame.Hello) {
		if h.Session[0] = 1; h.Responder {
			h.Token, h.Lifetime = []byte("the next token 1"), 3600
		}
	})
	u := &upgraded{x: x}
	for u.exchanges < plain {
		u.exchanges++
		u.turns = append(u.turns, out(posted("", messageOf(u.exchanges, false))),
			back(answered(messageOf(u.exchanges, true))))
	}
	u.first = len(u.turns)
	u.exchanges++
	if request == nil {
		request = []turn{out(posted(asksUpgrade, messageOf(u.exchanges, false)))}
	}
	u.turns = append(u.turns, request...)
	program := learned(t, body(1))
	exchange := uint64(1)
	if strings.HasPrefix(request[0].octets, "OPTIONS") {
		u.exchanges--
		exchange = 0
	} else {
		x.message(1, wire.Outgoing{Key: frame.Key{Reply: true, Exchange: 1}}, program,
			[]byte(messageOf(u.exchanges, true)))
	}
	u.turns = append(u.turns, back(agreesUpgrade+x.new(1)))
	for range streamed {
		u.exchanges++
		exchange++
		x.message(0, wire.Outgoing{Key: frame.Key{Exchange: exchange}}, program, []byte(messageOf(u.exchanges, false)))
		x.enc[0].Sync(timeZero)
		x.take(0)
		x.message(1, wire.Outgoing{Key: frame.Key{Reply: true, Exchange: exchange}}, program,
			[]byte(messageOf(u.exchanges, true)))
		x.enc[1].Sync(timeZero)
		x.take(1)
		u.turns = append(u.turns, out(x.new(0)), back(x.new(1)))
	}
	x.close()
	u.turns = append(u.turns, out(x.new(0)), back(x.new(1)))
	return u
}

// new returns what was sent since.
func (x *talk) new(dir int) string {
	b := x.said[dir][x.took[dir]:]
	x.took[dir] = len(x.said[dir])
	return string(b)
}

// file is a capture of it in packets of so many bytes, from a turn on.
func (u *upgraded) file(t testing.TB, most int) []byte { return fileOf(t, u.turns, most) }

func fileOf(t testing.TB, turns []turn, most int) []byte {
	p := newPackets(t)
	c := p.connect(1000)
	for _, turn := range turns {
		for b := range slices.Chunk([]byte(turn.octets), most) {
			if turn.lost {
				c.seq[turn.dir] += uint32(len(b))
				continue
			}
			c.segment(turn.dir, flagACK, b)
		}
	}
	c.end()
	return p.bytes()
}

// brief is a listing: of each message its number, q or a for question and answer, and its state, !
// for verified and nothing for unchecked.
func brief(messages []*capture.Decoded) string {
	var all []string
	for _, m := range messages {
		kind, state := "q", ":"+m.State.String()
		if m.Reply {
			kind = "a"
		}
		switch m.State {
		case capture.Verified:
			state = "!"
		case capture.Unchecked:
			state = ""
		default:
		}
		all = append(all, fmt.Sprint(m.Number, kind, state))
	}
	return strings.Join(all, " ")
}

// requireRight requires that the whole messages are what was sent under their numbers, or, where
// earlier ones are missing, under later numbers.
func requireRight(t testing.TB, messages []*capture.Decoded, exact bool, what string) {
	t.Helper()
	sent := map[string]bool{}
	for n := range 50 {
		for _, reply := range []bool{false, true} {
			sent[fmt.Sprint(reply, messageOf(n, reply))] = true
		}
	}
	for _, m := range messages {
		switch {
		case !m.Whole():
		case exact:
			require.Equal(t, messageOf(m.Number, m.Reply), string(m.Body), "%s: %d %v", what, m.Number, m.Reply)
		default:
			require.True(t, sent[fmt.Sprint(m.Reply, string(m.Body))], "%s: %s", what, m.Body)
		}
	}
}

// A request that is upgraded and the reply to exchange 1 of the stream are one exchange, numbered
// with those before and after it, however the connection is cut into packets.
func TestUpgradedConnection(t *testing.T) {
	for _, plain := range []int{0, 2} {
		u := upgrade(t, plain, 3)
		var want []string
		for n := 1; n <= u.exchanges; n++ {
			states := [2]string{"!", "!"}
			if n <= plain+1 {
				states[0] = ""
			}
			if n <= plain {
				states[1] = ""
			}
			want = append(want, fmt.Sprint(n, "q", states[0]), fmt.Sprint(n, "a", states[1]))
		}
		for _, most := range []int{1, 7, 1400} {
			file := u.file(t, most)
			r := decode(t, file, nil)
			require.Equal(t, strings.Join(want, " "), brief(r.Messages), "%d bytes a packet", most)
			assert.False(t, r.Partial())
			assert.Empty(t, r.Others)
			require.Len(t, r.Streams, 1)
			assert.Empty(t, r.Streams[0].Problems)
			var sent [][]byte
			for n := 1; n <= u.exchanges; n++ {
				for i, reply := range []bool{false, true} {
					m := r.Messages[2*n-2+i]
					require.Equal(t, messageOf(n, reply), string(m.Body))
					require.Equal(t, n > plain+1 || reply && n > plain, m.HHFR)
					require.Equal(t, "192.0.2.1:1000", m.Client().String())
				}
				sent = append(sent, []byte(messageOf(n, false)))
			}
			dir := t.TempDir()
			save(t, r, dir)
			assert.Len(t, readDir(t, dir), 2*len(sent))
			runs := runsOf(t, file, nil)
			require.Len(t, runs, 2)
			for i := range runs {
				assert.Equal(t, capture.RunName(1, i, 0), runs[i].name)
				assert.True(t, bytes.Equal(u.x.said[i], runs[i].octets), "only what is of the stream")
			}
			all, sum := events(t, capture.DecodeConfig{}, once{bytes.NewReader(file)})
			var piped []*capture.Decoded
			for _, ev := range all {
				if ev.Message != nil {
					piped = append(piped, ev.Message)
				}
			}
			requireRight(t, piped, true, "from a pipe")
			assert.Len(t, piped, len(want))
			assert.Equal(t, r.Counts(), sum.Counts(), "after the checks")
		}
	}
}

// The ways in which a request is upgraded, or not.
func TestUpgrades(t *testing.T) {
	one, two := messageOf(1, false), messageOf(1, true)
	head, soap, _ := strings.Cut(posted("Expect: 100-continue\r\n"+asksUpgrade, one), "\r\n\r\n")
	web := "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	const all = "1q 1a! 2q! 2a!"
	for name, tt := range map[string]struct {
		turns  []turn
		want   string
		others map[string]int
		cut    bool
	}{
		"continue": {turns: upgrade(t, 0, 1, out(head+"\r\n\r\n"), back(goOn), out(soap)).turns, want: all},
		"chunked":  {turns: upgrade(t, 0, 1, chunked(one)).turns, want: all},
		"no SOAP":  {turns: upgrade(t, 0, 1, out("GET /service HTTP/1.1\r\n"+asksUpgrade+"\r\n")).turns, want: all},
		"options": {turns: upgrade(t, 0, 2, out("OPTIONS /service HTTP/1.1\r\n"+asksUpgrade+"\r\n")).turns,
			want: "1q! 1a! 2q! 2a!"},
		"refused": {turns: []turn{out(posted(asksUpgrade, one)), back(answered(two)),
			out(posted("", messageOf(2, false))), back(answered(messageOf(2, true)))},
			want: "1q 1a 2q 2a"},
		"refused, then agreed": {turns: slices.Concat([]turn{out(posted(asksUpgrade, one)), back(answered(two))},
			upgrade(t, 1, 0).turns[2:]),
			want: "1q 1a 2q 2a!"},
		"without hello": {turns: []turn{out(posted(asksUpgrade, one)), back(agreesUpgrade)}, want: "1q",
			others: map[string]int{capture.OtherUpgraded: 1}, cut: true},
		"something else after it": {turns: []turn{out(posted(asksUpgrade, one)), back(agreesUpgrade + answered("x"))},
			want: "1q", others: map[string]int{capture.OtherUpgraded: 1}, cut: true},
		"websocket": {turns: []turn{out(posted(web, one)),
			back(strings.Replace(agreesUpgrade, "hhfr/1", "websocket", 1)),
			out("\x81\x85")},
			want: "1q 1a", others: map[string]int{"other TCP connections": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, most := range []int{1, 1400} {
				r := decode(t, fileOf(t, tt.turns, most), nil)
				assert.Equal(t, tt.want, brief(r.Messages))
				assert.Equal(t, tt.cut, r.Partial())
				if tt.others == nil {
					tt.others = map[string]int{}
				}
				assert.Equal(t, tt.others, r.Others)
				if name != "no SOAP" && name != "websocket" {
					requireRight(t, r.Messages, true, name)
				}
			}
		})
	}
}

// Where a part of an upgraded connection is not in a capture, the rest is found.
func TestUpgradesInPart(t *testing.T) {
	const plain = 1
	u := upgrade(t, plain, 3)
	agreed, hello := u.turns[u.first+1], openingLen(t, u.x.said[1])
	half := len(u.turns[u.first].octets) / 2
	turns := slices.Concat(u.turns[:u.first], u.turns[u.first].cut(half),
		agreed.cut(len(agreesUpgrade), len(agreesUpgrade)+hello), u.turns[u.first+2:])
	request, rest, switching, opening, reply := u.first, u.first+1, u.first+2, u.first+3, u.first+4
	for name, tt := range map[string]struct {
		turns []turn // nil: all
		lost  []int
		want  string
	}{
		"without the switch":    {lost: []int{switching}, want: "1q 1a 2q 2a! 3q! 3a! 4q! 4a! 5q! 5a!"},
		"without switch, hello": {lost: []int{switching, opening, reply}, want: "1q 1a 2q 3q! 4q! 4a! 5q! 5a!"},
		"without hello":         {lost: []int{opening, reply}, want: "1q 1a 2q 3q! 4q! 4a! 5q! 5a!"},
		"without the request":   {lost: []int{request, rest}, want: "1q 1a 2a! 3q! 3a! 4q! 4a! 5q! 5a!"},
		"without its end":       {lost: []int{rest}, want: "1q 1a 2q:incomplete 2a! 3q! 3a! 4q! 4a! 5q! 5a!"},
		"without its head": {turns: slices.Concat(turns[:request], u.turns[u.first].cut(40)[:1],
			[]turn{{lost: true, octets: u.turns[u.first].octets[40:]}}, turns[switching:]),
			want: "1q 1a 2q:incomplete 2a! 3q! 3a! 4q! 4a! 5q! 5a!"},
		"without the upgrade": {lost: []int{request, rest, switching, opening, reply},
			want: "1q 1a 3q! 4q! 4a! 5q! 5a!"},
		"without hellos": {lost: []int{switching, opening, reply, reply + 1},
			want: "1q 1a 2q 4a:undecodable 5q:undecodable 5a:undecodable"},
		"begins with the request": {turns: turns[request:], want: "1q 1a! 2q! 2a! 3q! 3a! 4q! 4a!"},
		"begins with the switch":  {turns: turns[switching:], want: "1a! 2q! 2a! 3q! 3a! 4q! 4a!"},
		"begins with hello":       {turns: turns[opening:], want: "1a! 2q! 2a! 3q! 3a! 4q! 4a!"},
		"initiator alone":         {turns: only(turns, 0), want: "1q 2q 3q! 4q! 5q!"},
		"responder alone":         {turns: only(turns, 1), want: "1a 2a! 3a! 4a! 5a!"},
		"out of order": {turns: slices.Concat(turns[:rest], turns[switching:reply], turns[rest:switching],
			turns[reply:]),
			want: "1q 1a 2q 2a! 3q! 3a! 4q! 4a! 5q! 5a!"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.turns == nil {
				tt.turns = slices.Clone(turns)
			}
			for _, n := range tt.lost {
				tt.turns[n].lost = true
			}
			r := decode(t, fileOf(t, tt.turns, 1400), nil)
			assert.Equal(t, tt.want, brief(r.Messages))
			assert.Len(t, r.Streams, 1)
			requireRight(t, r.Messages, false, name)
		})
	}
}

// openingLen returns the length of the hello that bytes begin with.
func openingLen(t testing.TB, b []byte) int {
	_, n, err := frame.Parse(b, 0, 0)
	require.NoError(t, err)
	return n
}

// only returns one direction.
func only(turns []turn, dir int) []turn {
	return slices.DeleteFunc(slices.Clone(turns), func(s turn) bool { return s.dir != dir })
}
