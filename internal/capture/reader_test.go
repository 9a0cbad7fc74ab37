package capture_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// once is an input that cannot be read again.
type once struct{ io.Reader }

func body(i int) []byte { return []byte(envelope("op", "", fmt.Sprintf("<n>%d</n>", i))) }

func named(inputs []io.Reader) (all []capture.Input) {
	for _, in := range inputs {
		all = append(all, capture.Input{Octets: in})
	}
	return all
}

// events returns everything that a reader gives of a capture.
func events(t testing.TB, cfg capture.DecodeConfig, inputs ...io.Reader) (all []capture.Event, s *capture.Summary) {
	t.Helper()
	r := capture.NewReader(t.Context(), cfg)
	for ev, err := range r.Captures(t.Context(), named(inputs)...) {
		require.NoError(t, err)
		if ev.Message != nil {
			kept := *ev.Message
			kept.Body = bytes.Clone(kept.Body)
			ev.Message = &kept
		}
		all = append(all, ev)
	}
	return all, r.Summary()
}

// A pipe's messages are unverified when they come, and each is covered by one check; a file's
// messages have the states from these checks.
func TestChecksFromAPipe(t *testing.T) {
	file := record(t, mixed(t), 2048).file
	from, sum := events(t, capture.DecodeConfig{}, once{bytes.NewReader(file)})
	type id struct {
		stream, direction int
		index             uint64
	}
	states := map[id]capture.State{}
	checks := 0
	for _, ev := range from {
		if m := ev.Message; m != nil && m.HHFR {
			require.Equal(t, capture.Unverified, m.State)
			states[id{m.Stream, m.Direction, m.Index}] = m.State
		}
		if c := ev.Check; c != nil {
			checks++
			require.Len(t, c.Messages, int(c.To-c.From+1))
			for i, m := range c.Messages {
				k := id{c.Stream, c.Direction, c.From + uint64(i)}
				require.Equal(t, capture.Unverified, states[k], "before, and once")
				require.Equal(t, k.index, m.Index)
				require.Equal(t, c.State, m.State)
				states[k] = c.State
			}
		}
	}
	assert.Greater(t, checks, 20)
	twice, again := events(t, capture.DecodeConfig{}, bytes.NewReader(file))
	verified := 0
	for _, ev := range twice {
		require.Nil(t, ev.Check)
		if m := ev.Message; m.HHFR {
			verified++
			require.Equal(t, states[id{m.Stream, m.Direction, m.Index}], m.State)
		}
	}
	assert.Equal(t, len(states), verified)
	assert.Equal(t, sum.Counts(), again.Counts())
}

// A wrong check withdraws the messages since the one before, and no others, from a pipe and from a
// file.
func TestWithdrawn(t *testing.T) {
	x := newTalk(t, 1)
	for i := range 6 {
		x.message(0, wire.Outgoing{Key: frame.Key{Exchange: uint64(i + 1)}, OneWay: true}, nil,
			fmt.Appendf(nil, "message %d", i))
		if i%2 == 1 {
			x.enc[0].Sync(timeZero)
			x.take(0)
		}
	}
	x.close()
	x.said[0][bytes.Index(x.said[0], []byte("message 3"))] = 'M'
	p := newPackets(t)
	c := p.connect(1000)
	c.carry(x, 50)
	c.end()
	want := []string{"verified", "verified", "withdrawn", "withdrawn", "verified", "verified"}
	for name, in := range map[string]io.Reader{"pipe": once{bytes.NewReader(p.bytes())},
		"file": bytes.NewReader(p.bytes())} {
		all, sum := events(t, capture.DecodeConfig{}, in)
		got := make([]string, 6)
		dir := t.TempDir()
		for _, ev := range all {
			if m := ev.Message; m != nil {
				got[m.Index-1] = m.State.String()
				require.NoError(t, m.Save(dir))
			} else {
				require.NoError(t, ev.Check.Withdraw(dir))
				for _, m := range ev.Check.Messages {
					got[m.Index-1] = m.State.String()
				}
			}
		}
		assert.Equal(t, want, got, name)
		assert.Equal(t, 2, sum.Counts().Withdrawn, name)
		assert.True(t, sum.Partial(), name)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		var names []string
		for _, f := range files {
			names = append(names, f.Name())
		}
		assert.Equal(
			t,
			[]string{"000001-request.xml", "000002-request.xml", "000003-request.xml.withdrawn",
				"000004-request.xml.withdrawn", "000005-request.xml", "000006-request.xml"},
			names,
			name,
		)
	}
}

// However the bytes are cut into packets, and however connections interleave, messages are the
// same.
func TestAnyPackets(t *testing.T) {
	program := learned(t, body(1))
	for _, most := range []int{1, 2, 7, 1400} {
		p := newPackets(t)
		var talks []*talk
		var conns []*connection
		for i := range 3 {
			talks, conns = append(talks, newTalk(t, byte(i+1))), append(conns, p.connect(uint16(1000+i)))
		}
		for range 5 {
			for i, x := range talks {
				x.message(0, wire.Outgoing{Key: frame.Key{Exchange: uint64(len(x.said[0]))}, OneWay: true}, program,
					body(i))
				conns[i].carry(x, most)
			}
		}
		for i, x := range talks {
			x.close()
			conns[i].carry(x, most)
			conns[i].end()
		}
		r := decode(t, p.bytes(), nil)
		require.Len(t, r.Messages, 15, "%d bytes a packet", most)
		for i, m := range r.Messages {
			require.Equal(t, capture.Verified, m.State)
			require.Equal(t, string(body(i%3)), string(m.Body))
		}
		assert.False(t, r.Partial())
	}
}

// A shape that one stream refers to and a later one announces is found in a file.
func TestShapesThatComeLater(t *testing.T) {
	program := learned(t, body(1))
	p := newPackets(t)
	first, second := newTalk(t, 1), newTalk(t, 2)
	// The peer has the shape already: it travels as a reference.
	first.enc[0] = wire.NewEncoder(
		wire.EncoderConfig{
			Origin: frame.Origin{Session: [16]byte{1}, Representation: frame.Binary, Stages: allStages},
			Word:   [8]byte{9, 8, 0},
			Peer:   knowing{program.Shape().Fingerprint(): true},
			Limits: frame.Limits{MaxFragment: 16384, MaxShapes: 10, MaxShapeBytes: 1 << 20},
		},
		len(first.said[0]),
		timeZero,
	)
	for i, x := range []*talk{first, second} {
		x.calls(5, program, body)
		x.close()
		c := p.connect(uint16(1000 + i))
		c.carry(x, 1000)
		c.end()
	}
	assert.Equal(t, 20, decode(t, p.bytes(), nil).Counts().Verified)
	r, err := capture.Decode(t.Context(), once{bytes.NewReader(p.bytes())}, capture.DecodeConfig{})
	require.NoError(t, err)
	assert.Equal(t, 5, r.Counts().Undecodable, "%+v", r.Counts())
}

// writeEvery writes some packets as a capture.
func writeEvery(t testing.TB, file io.Writer, packets []packetEnd, which func(n int) bool) {
	w, err := pcapgo.NewNgWriter(file, layers.LinkTypeRaw)
	require.NoError(t, err)
	for i, p := range packets {
		if p.ci.InterfaceIndex = 0; which(i) {
			require.NoError(t, w.WritePacket(p.ci, p.raw))
		}
	}
	require.NoError(t, w.Flush())
}

// Captures are merged in the order of the times of their packets.
func TestSeveralCaptures(t *testing.T) {
	m := newMissing(t, tree(t), 4096)
	var files [3]bytes.Buffer
	for i := range files {
		writeEvery(t, &files[i], m.packets, func(n int) bool { return n%3 == i })
	}
	inputs := []io.Reader{bytes.NewReader(files[2].Bytes()), bytes.NewReader(files[0].Bytes()),
		bytes.NewReader(files[1].Bytes())}
	r := capture.NewReader(t.Context(), capture.DecodeConfig{})
	var all []string
	for ev, err := range r.Captures(t.Context(), named(inputs)...) {
		require.NoError(t, err)
		all = append(all, said(ev.Message))
	}
	var want []string
	for ev, err := range capture.NewReader(t.Context(), capture.DecodeConfig{}).Captures(t.Context(),
		capture.Input{Octets: bytes.NewReader(m.rec.file)}) {
		require.NoError(t, err)
		want = append(want, said(ev.Message))
	}
	assert.Equal(t, want, all)
	assert.False(t, r.Summary().Partial())
}

// An interim reply is distinguished from the final one, and has a file of its own.
func TestInterimReplies(t *testing.T) {
	x := newTalk(t, 1)
	k := frame.Key{Exchange: 1}
	x.message(0, wire.Outgoing{Key: k}, nil, []byte("asked"))
	k.Reply = true
	for i := range 2 {
		x.message(1, wire.Outgoing{Key: k, Interim: true}, nil, fmt.Appendf(nil, "wait %d", i))
	}
	x.message(1, wire.Outgoing{Key: k}, nil, []byte("done"))
	x.close()
	p := newPackets(t)
	c := p.connect(1000)
	c.carry(x, 1000)
	r := decode(t, p.bytes(), nil)
	var got []string
	dir := t.TempDir()
	for _, m := range r.Messages {
		got = append(got, fmt.Sprintf("%d %v %v %s %s", m.Number, m.Reply, m.Interim, m.Body, m.FileName()))
		require.NoError(t, m.Save(dir))
	}
	assert.Equal(
		t,
		[]string{"1 false false asked 000001-request.xml", "1 true true wait 0 000001-interim-1-1.xml",
			"1 true true wait 1 000001-interim-1-2.xml", "1 true false done 000001-reply.xml"},
		got,
	)
	assert.Len(t, readDir(t, dir), 4)
}

// A stream that goes through an HTTP proxy is one from its hello on.
func TestStreamInATunnel(t *testing.T) {
	x := newTalk(t, 1)
	x.calls(3, nil, body)
	x.close()
	p := newPackets(t)
	c := p.connect(1000)
	c.segment(0, flagACK, []byte("CONNECT example.org:80 HTTP/1.1\r\n\r\n"))
	c.segment(1, flagACK, []byte("HTTP/1.1 200 OK\r\n\r\n"))
	c.carry(x, 30)
	c.end()
	r := decode(t, p.bytes(), nil)
	assert.Equal(t, 6, r.Counts().Verified, "%+v %v", r.Counts(), r.Others)
	assert.False(t, r.Partial())
	runs := runsOf(t, p.bytes(), nil)
	require.Len(t, runs, 2)
	for i := range runs {
		assert.Equal(t, capture.RunName(1, i, 0), runs[i].name)
		assert.True(t, bytes.Equal(x.said[i], runs[i].octets))
	}
}

// A hello in the body of an HTTP message makes no stream of the connection.
func TestStreamsInHTTPBodies(t *testing.T) {
	x := newTalk(t, 1)
	x.calls(9, nil, body)
	x.enc[0].Sync(timeZero)
	x.close()
	soap := envelope("op", "", "1")
	p := newPackets(t)
	c := p.connect(1000)
	c.segment(0, flagACK,
		fmt.Appendf(nil, "POST /a HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", len(x.said[0]), x.said[0]))
	c.segment(1, flagACK, []byte("HTTP/1.1 204 No Content\r\n\r\n"))
	c.segment(0, flagACK, fmt.Appendf(nil, "POST /a HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s", len(soap), soap))
	c.end()
	r := decode(t, p.bytes(), nil)
	assert.Empty(t, r.Streams)
	require.Len(t, r.Messages, 1)
	assert.Equal(t, soap, string(r.Messages[0].Body))
	assert.Equal(t, map[string]int{capture.OtherRequests: 1}, r.Others)
}

// Long bodies are read from where they are stored; only their beginnings are kept if no more is
// needed.
func TestLongBodies(t *testing.T) {
	long := []byte(envelope("op", "", strings.Repeat("<r>long enough to be of no use in memory</r>", 60000)))
	require.Greater(t, len(long), 2<<20)
	program := learned(t, long)
	x := newTalk(t, 1)
	x.calls(3, program, func(int) []byte { return long })
	x.close()
	p := newPackets(t)
	c := p.connect(1000)
	c.carry(x, 1400)
	c.segment(0, flagACK, nil)
	plain := p.connect(1001)
	head := fmt.Appendf(nil, "POST /a HTTP/1.1\r\nContent-Length: %d\r\n\r\n", len(long))
	for b := range slices.Chunk(append(head, long...), 30000) {
		plain.segment(0, flagACK, b)
	}
	whole := 0
	r := capture.NewReader(t.Context(), capture.DecodeConfig{})
	for ev, err := range r.Captures(t.Context(), capture.Input{Octets: bytes.NewReader(p.bytes())}) {
		require.NoError(t, err)
		m := ev.Message
		require.Less(t, len(m.Body), len(long))
		require.EqualValues(t, len(long), m.BodyOctets)
		require.Equal(t, "op", m.Operation.Local)
		var b bytes.Buffer
		require.NoError(t, m.WriteBody(&b))
		require.True(t, bytes.Equal(long, b.Bytes()))
		whole++
	}
	assert.Equal(t, 7, whole)
	all, _ := events(t, capture.DecodeConfig{Starts: true}, bytes.NewReader(p.bytes()))
	require.Len(t, all, 7)
	for _, ev := range all {
		assert.EqualValues(t, len(long), ev.Message.BodyOctets)
		assert.Equal(t, "op", ev.Message.Operation.Local)
	}
}

// Reading stops when the caller takes no more.
func TestReadingStops(t *testing.T) {
	file := record(t, tree(t), 4096).file
	for _, in := range []io.Reader{once{bytes.NewReader(file)}, bytes.NewReader(file)} {
		n := 0
		for _, err := range capture.NewReader(t.Context(), capture.DecodeConfig{}).Captures(t.Context(),
			capture.Input{Octets: in}) {
			require.NoError(t, err)
			if n++; n == 5 {
				break
			}
		}
		assert.Equal(t, 5, n)
	}
}

// The bytes of streams are the same from a pipe, also from captures that begin in the middle, and
// with missing datagrams.
func TestOctetsFromAPipe(t *testing.T) {
	grams, _ := overUDP(t, badLink+"3", 2048, slices.Repeat(tree(t), 3))
	m := newMissing(t, mixed(t), 2048)
	var middle bytes.Buffer
	writeEvery(t, &middle, m.packets, func(n int) bool { return n > 30 && n != 60 })
	for name, file := range map[string][]byte{
		"session": m.rec.file, "middle": middle.Bytes(), "datagrams": pcapOf(t, grams, form{}),
		"some": pcapOf(t, slices.Concat(grams[20:50], grams[52:]), form{}),
	} {
		octets := func(in io.Reader) map[string]string {
			all := map[string]string{}
			var name [2]string
			var end [2]int64
			_, err := capture.Decode(t.Context(), in,
				capture.DecodeConfig{Octets: func(stream, direction int, offset int64, b []byte) error {
					if name[direction] == "" || offset != end[direction] {
						name[direction] = capture.RunName(stream, direction, offset)
					}
					all[name[direction]] += string(b)
					end[direction] = offset + int64(len(b))
					return nil
				}})
			require.NoError(t, err)
			return all
		}
		want := octets(bytes.NewReader(file))
		assert.NotEmpty(t, want, name)
		assert.Equal(t, want, octets(once{bytes.NewReader(file)}), name)
	}
}
