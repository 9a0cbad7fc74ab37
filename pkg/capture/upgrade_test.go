package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/capture"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// turn is what one end says before the other one says something.
type turn struct {
	dir    int
	octets string
	lost   bool // it is not in the capture
}

// cut makes more turns of one.
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
	agreesUpgrade = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\n\r\n"
)

func posted(fields, body string) string {
	return fmt.Sprintf("POST /service HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\n%sContent-Length: %d\r\n\r\n%s", fields, len(body), body)
}

func answered(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// message are the bodies of the exchange with a number: 0 of the request, 1 of its reply.
func messageOf(n int, reply bool) string { return string(body(2*n + b2i(reply))) }

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// upgraded is a connection with plain exchanges, an upgraded one, and ones that follow on the stream.
type upgraded struct {
	x         *talk
	turns     []turn
	exchanges int // with the plain ones and the upgraded one
	first     int // turn of the request that was upgraded
}

// upgrade makes one; exchange 1 of lane 0 is the request that was upgraded, unless that is none.
func upgrade(t testing.TB, plain, streamed int, request ...turn) *upgraded {
	x := newTalkOf(t, func(h *frame.Hello) {
		if h.Session[0] = 1; h.Responder {
			h.Token, h.Lifetime = []byte("the next token 1"), 3600
		}
	})
	u := &upgraded{x: x}
	for u.exchanges < plain {
		u.exchanges++
		u.turns = append(u.turns, turn{dir: 0, octets: posted("", messageOf(u.exchanges, false))}, turn{dir: 1, octets: answered(messageOf(u.exchanges, true))})
	}
	u.first = len(u.turns)
	u.exchanges++
	if request == nil {
		request = []turn{{dir: 0, octets: posted(asksUpgrade, messageOf(u.exchanges, false))}}
	}
	u.turns = append(u.turns, request...)
	program := learned(t, body(1))
	exchange := uint64(1)
	if strings.HasPrefix(request[0].octets, "OPTIONS") {
		u.exchanges--
		exchange = 0
	} else {
		x.message(1, wire.Outgoing{Key: frame.Key{Reply: true, Exchange: 1}}, program, []byte(messageOf(u.exchanges, true)))
	}
	u.turns = append(u.turns, turn{dir: 1, octets: agreesUpgrade + x.new(1)})
	for range streamed {
		u.exchanges++
		exchange++
		x.message(0, wire.Outgoing{Key: frame.Key{Exchange: exchange}}, program, []byte(messageOf(u.exchanges, false)))
		x.enc[0].Sync(timeZero)
		x.take(0)
		x.message(1, wire.Outgoing{Key: frame.Key{Reply: true, Exchange: exchange}}, program, []byte(messageOf(u.exchanges, true)))
		x.enc[1].Sync(timeZero)
		x.take(1)
		u.turns = append(u.turns, turn{dir: 0, octets: x.new(0)}, turn{dir: 1, octets: x.new(1)})
	}
	x.close()
	u.turns = append(u.turns, turn{dir: 0, octets: x.new(0)}, turn{dir: 1, octets: x.new(1)})
	return u
}

// new is what was said since.
func (x *talk) new(dir int) string {
	b := x.said[dir][x.took[dir]:]
	x.took[dir] = len(x.said[dir])
	return string(b)
}

// file is a capture of it in packets of so many octets, from a turn on.
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

// brief is a listing: number, q or a for question and answer, and the beginning of the state of each message.
func brief(messages []*capture.Decoded) string {
	var all []string
	for _, m := range messages {
		kind := "q"
		if m.Reply {
			kind = "a"
		}
		all = append(all, fmt.Sprintf("%d%s-%.4s", m.Number, kind, m.State))
	}
	return strings.Join(all, " ")
}

// requireRight requires of the messages that are whole that they are what was sent under their numbers, or, where what
// came before is not there, under later ones.
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

// A request that is upgraded and the reply to exchange 1 of the stream are one exchange, numbered with those before and
// behind, however the connection is cut into packets.
func TestUpgradedConnection(t *testing.T) {
	for _, plain := range []int{0, 2} {
		u := upgrade(t, plain, 3)
		var want []string
		for n := 1; n <= u.exchanges; n++ {
			states := [2]string{"veri", "veri"}
			if n <= plain+1 {
				states[0] = "unch"
			}
			if n <= plain {
				states[1] = "unch"
			}
			want = append(want, fmt.Sprintf("%dq-%s", n, states[0]), fmt.Sprintf("%da-%s", n, states[1]))
		}
		for _, most := range []int{1, 7, 1400} {
			file := u.file(t, most)
			r := decode(t, file, nil)
			require.Equal(t, strings.Join(want, " "), brief(r.Messages), "%d octets a packet", most)
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
	chunked := strings.Replace(posted(asksUpgrade, ""), "Content-Length: 0", "Transfer-Encoding: chunked", 1) +
		fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", 10, one[:10], len(one)-10, one[10:])
	web := "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	const all = "1q-unch 1a-veri 2q-veri 2a-veri"
	for name, tt := range map[string]struct {
		turns  []turn
		want   string
		others map[string]int
		cut    bool
	}{
		"continue": {turns: upgrade(t, 0, 1, turn{dir: 0, octets: head + "\r\n\r\n"}, turn{dir: 1, octets: "HTTP/1.1 100 Continue\r\n\r\n"}, turn{dir: 0, octets: soap}).turns, want: all},
		"chunked":  {turns: upgrade(t, 0, 1, turn{dir: 0, octets: chunked}).turns, want: all},
		"no SOAP":  {turns: upgrade(t, 0, 1, turn{dir: 0, octets: "GET /service HTTP/1.1\r\n" + asksUpgrade + "\r\n"}).turns, want: all},
		"options": {turns: upgrade(t, 0, 2, turn{dir: 0, octets: "OPTIONS /service HTTP/1.1\r\n" + asksUpgrade + "\r\n"}).turns,
			want: "1q-veri 1a-veri 2q-veri 2a-veri"},
		"refused": {turns: []turn{{dir: 0, octets: posted(asksUpgrade, one)}, {dir: 1, octets: answered(two)}, {dir: 0, octets: posted("", messageOf(2, false))}, {dir: 1, octets: answered(messageOf(2, true))}},
			want: "1q-unch 1a-unch 2q-unch 2a-unch"},
		"refused, then agreed": {turns: slices.Concat([]turn{{dir: 0, octets: posted(asksUpgrade, one)}, {dir: 1, octets: answered(two)}}, upgrade(t, 1, 0).turns[2:]),
			want: "1q-unch 1a-unch 2q-unch 2a-veri"},
		"without hello": {turns: []turn{{dir: 0, octets: posted(asksUpgrade, one)}, {dir: 1, octets: agreesUpgrade}}, want: "1q-unch",
			others: map[string]int{capture.OtherUpgraded: 1}, cut: true},
		"something else behind": {turns: []turn{{dir: 0, octets: posted(asksUpgrade, one)}, {dir: 1, octets: agreesUpgrade + "HTTP/1.1 200 OK\r\n\r\n"}}, want: "1q-unch",
			others: map[string]int{capture.OtherUpgraded: 1}, cut: true},
		"websocket": {turns: []turn{{dir: 0, octets: posted(web, one)}, {dir: 1, octets: strings.Replace(agreesUpgrade, "hhfr/1", "websocket", 1)}, {dir: 0, octets: "\x81\x85"}},
			want: "1q-unch 1a-unch", others: map[string]int{"other TCP connections": 1}},
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

// Where a part of an upgraded connection is not in a capture, what is there is found.
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
		"without the switch":      {lost: []int{switching}, want: "1q-unch 1a-unch 2q-unch 2a-veri 3q-veri 3a-veri 4q-veri 4a-veri 5q-veri 5a-veri"},
		"without switch, hello":   {lost: []int{switching, opening, reply}, want: "1q-unch 1a-unch 2q-unch 3q-veri 4q-veri 4a-veri 5q-veri 5a-veri"},
		"without hello":           {lost: []int{opening, reply}, want: "1q-unch 1a-unch 2q-unch 3q-veri 4q-veri 4a-veri 5q-veri 5a-veri"},
		"without the request":     {lost: []int{request, rest}, want: "1q-unch 1a-unch 2a-veri 3q-veri 3a-veri 4q-veri 4a-veri 5q-veri 5a-veri"},
		"without its end":         {lost: []int{rest}, want: "1q-unch 1a-unch 2q-inco 2a-veri 3q-veri 3a-veri 4q-veri 4a-veri 5q-veri 5a-veri"},
		"without the upgrade":     {lost: []int{request, rest, switching, opening, reply}, want: "1q-unch 1a-unch 3q-veri 4q-veri 4a-veri 5q-veri 5a-veri"},
		"without hellos":          {lost: []int{switching, opening, reply, reply + 1}, want: "1q-unch 1a-unch 2q-unch 4a-unde 5q-unde 5a-unde"},
		"begins with the request": {turns: turns[request:], want: "1q-unch 1a-veri 2q-veri 2a-veri 3q-veri 3a-veri 4q-veri 4a-veri"},
		"begins with the switch":  {turns: turns[switching:], want: "1a-veri 2q-veri 2a-veri 3q-veri 3a-veri 4q-veri 4a-veri"},
		"begins with hello":       {turns: turns[opening:], want: "1a-veri 2q-veri 2a-veri 3q-veri 3a-veri 4q-veri 4a-veri"},
		"initiator alone":         {turns: only(turns, 0), want: "1q-unch 2q-unch 3q-veri 4q-veri 5q-veri"},
		"responder alone":         {turns: only(turns, 1), want: "1a-unch 2a-veri 3a-veri 4a-veri 5a-veri"},
		"out of order": {turns: slices.Concat(turns[:rest], turns[switching:reply], turns[rest:switching], turns[reply:]),
			want: "1q-unch 1a-unch 2q-unch 2a-veri 3q-veri 3a-veri 4q-veri 4a-veri 5q-veri 5a-veri"},
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

// openingLen is how long the hello is that octets begin with.
func openingLen(t testing.TB, b []byte) int {
	_, n, err := frame.Parse(b, 0, 0)
	require.NoError(t, err)
	return n
}

// only is one direction.
func only(turns []turn, dir int) []turn {
	return slices.DeleteFunc(slices.Clone(turns), func(s turn) bool { return s.dir != dir })
}

// A capture of an upgraded connection that ends at any octet, or lacks any packet, or two: nothing is verified that was not
// sent, and nothing under another number but where exchanges before are not there.
func TestUpgradesCutAnywhere(t *testing.T) {
	head, request, _ := strings.Cut(posted("Expect: 100-continue\r\n"+asksUpgrade, messageOf(2, false)), "\r\n\r\n")
	u := upgrade(t, 1, 2, turn{dir: 0, octets: head + "\r\n\r\n"},
		turn{dir: 1, octets: "HTTP/1.1 100 Continue\r\n\r\n"}, turn{dir: 0, octets: request})
	file := u.file(t, 150)
	for cut := range file {
		for _, in := range []io.Reader{bytes.NewReader(file[:cut]), once{bytes.NewReader(file[:cut])}} {
			r, err := capture.Decode(t.Context(), in, capture.DecodeConfig{})
			if err != nil {
				require.Less(t, cut, 200)
				continue
			}
			requireRight(t, r.Messages, true, fmt.Sprintf("cut at %d", cut))
		}
	}
	whole := u.x.said
	for dir := range whole { // the stream ends at any octet
		for cut := range whole[dir] {
			turns := slices.Clone(u.turns)
			left := cut
			for i := range turns {
				if s := &turns[i]; s.dir == dir && i > u.first+2 {
					head := len(s.octets) - len(strings.TrimPrefix(s.octets, agreesUpgrade))
					keep := min(len(s.octets)-head, left)
					left -= keep
					s.octets = s.octets[:head+keep]
				}
			}
			requireRight(t, decode(t, fileOf(t, turns, 1400), nil).Messages, true, fmt.Sprintf("direction %d cut at %d", dir, cut))
		}
	}
	packets := segmentsOf(t, file)
	for a := range packets {
		for b := a; b < min(a+12, len(packets)); b++ {
			var some bytes.Buffer
			writeEvery(t, &some, packets, func(n int) bool { return n != a && n != b })
			requireRight(t, decode(t, some.Bytes(), nil).Messages, false, fmt.Sprintf("without packets %d and %d", a, b))
		}
	}
}

// segmentsOf are the packets of a capture.
func segmentsOf(t testing.TB, file []byte) (all []packetEnd) {
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	for {
		data, ci, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, packetEnd{raw: bytes.Clone(data), ci: ci})
	}
}

// What is damaged in an upgraded connection is not verified.
func TestNothingDamagedInAnUpgradeIsVerified(t *testing.T) {
	d := damagedIn(t, upgrade(t, 1, 3).file(t, 1400))
	d.flips(t, 8*len(d.input)/400)
	d.random(t, 100)
}

// TestIndependentDecoderOfUpgrades: it finds the same streams behind HTTP, whatever is missing before, and the request that was upgraded.
func TestIndependentDecoderOfUpgrades(t *testing.T) {
	python := shared.Program(t, "python3")
	chunked := turn{dir: 0, octets: strings.Replace(posted(asksUpgrade, ""), "Content-Length: 0", "Transfer-Encoding: chunked", 1) +
		fmt.Sprintf("%x\r\n%s\r\n%X;x=y\r\n%s\r\n0\r\n\r\n", 10, messageOf(1, false)[:10], len(messageOf(1, false))-10, messageOf(1, false)[10:])}
	options := turn{dir: 0, octets: "OPTIONS /service HTTP/1.1\r\n" + asksUpgrade + "\r\n"}
	after := upgrade(t, 1, 2)
	for name, turns := range map[string][]turn{
		"at once": upgrade(t, 0, 2).turns, "chunked": upgrade(t, 0, 2, chunked).turns, "OPTIONS": upgrade(t, 0, 2, options).turns,
		"behind plain SOAP": after.turns, "refused": after.turns[:after.first],
	} {
		t.Run(name, func(t *testing.T) {
			file, dir := filepath.Join(t.TempDir(), "c.pcapng"), t.TempDir()
			require.NoError(t, os.WriteFile(file, fileOf(t, turns, 100), 0o600))
			out, err := exec.CommandContext(t.Context(), python, shared.Testdata(t, "..", "scripts", "decode.py"), "capture", file, "--save-dir", dir).CombinedOutput()
			if name == "refused" {
				require.Error(t, err)
				require.Contains(t, string(out), "nothing found")
				return
			}
			require.NoError(t, err, "%s", out)
			want := map[string][]byte{}
			first := 0 // it numbers what belongs to streams alone
			for _, m := range decode(t, fileOf(t, turns, 100), nil).Messages {
				if m.HHFR || m.Number > 1 || name != "behind plain SOAP" {
					m.Number -= first
					want[m.FileName()] = m.Body
				} else {
					first = 1
				}
			}
			assert.Equal(t, want, readDir(t, dir), "%s", out)
			assert.Equal(t, 4+b2i(name != "OPTIONS"), strings.Count(string(out), " verified"), "%s", out)
		})
	}
}

// tapeOfTurns and turnsOf write turns as octets, and read them again: a direction, and whether it is lost, a length, and so many octets each.
func tapeOfTurns(turns []turn) (tape []byte) {
	for _, s := range turns {
		tape = append(tape, byte(s.dir|2*b2i(s.lost)), byte(len(s.octets)>>8), byte(len(s.octets)))
		tape = append(tape, s.octets...)
	}
	return tape
}

func turnsOf(tape []byte) (turns []turn) {
	for len(tape) >= 3 {
		n := min(int(tape[1])<<8|int(tape[2]), len(tape)-3)
		turns = append(turns, turn{dir: int(tape[0] & 1), lost: tape[0]&2 != 0, octets: string(tape[3 : 3+n])})
		tape = tape[3+n:]
	}
	return turns
}

// FuzzUpgrades: whatever stands before, in and behind an upgrade, the runs of streams are in order and no longer than what came, and what
// is verified was sent.
func FuzzUpgrades(f *testing.F) {
	u := upgrade(f, 1, 2)
	options := upgrade(f, 0, 1, turn{dir: 0, octets: "OPTIONS * HTTP/1.1\r\n" + asksUpgrade + "\r\n"})
	head, rest, _ := strings.Cut(posted("Expect: 100-continue\r\n"+asksUpgrade, messageOf(1, false)), "\r\n\r\n")
	expects := upgrade(f, 0, 1, turn{dir: 0, octets: head + "\r\n\r\n"}, turn{dir: 1, octets: "HTTP/1.1 100 Continue\r\n\r\n"}, turn{dir: 0, octets: rest})
	early := slices.Concat(u.turns[u.first].cut(150)[:1], u.turns[u.first+1].cut(len(agreesUpgrade), len(agreesUpgrade)+40), u.turns[u.first].cut(150)[1:], u.turns[u.first+2:])
	lossy := slices.Clone(u.turns)
	lossy[u.first+1].lost = true
	for _, turns := range [][]turn{u.turns, options.turns, expects.turns, early, lossy, only(u.turns, 0), only(u.turns, 1), u.turns[u.first+1:]} {
		f.Add(tapeOfTurns(turns))
	}
	sent := map[string]bool{}
	for n := range 5 {
		for _, reply := range []bool{false, true} {
			sent[messageOf(n, reply)] = true
		}
	}
	f.Fuzz(func(t *testing.T, tape []byte) {
		file := fileOf(t, turnsOf(tape), 1400)
		end, octets := map[[2]int]int64{}, 0
		for _, in := range []io.Reader{bytes.NewReader(file), once{bytes.NewReader(file)}} {
			clear(end)
			octets = 0
			r, err := capture.Decode(t.Context(), in, capture.DecodeConfig{Octets: func(n, direction int, offset int64, b []byte) error {
				at := [2]int{n, direction}
				if offset < end[at] || len(b) == 0 {
					return fmt.Errorf("%d octets at %d behind %d", len(b), offset, end[at])
				}
				end[at] = offset + int64(len(b))
				octets += len(b)
				return nil
			}})
			require.NoError(t, err)
			assert.LessOrEqual(t, octets, len(tape))
			for _, m := range r.Messages {
				require.True(t, m.State != capture.Verified || sent[string(m.Body)], "%s", m.Body)
			}
		}
	})
}
