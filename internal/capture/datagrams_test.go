package capture_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// tapped is a socket whose datagrams are captured.
type tapped struct {
	net.PacketConn
	mu    sync.Mutex
	grams []captured
}

// captured is one datagram: what the socket's end sent, or what arrived.
type captured struct {
	at     time.Time
	sent   bool
	octets []byte
	moved  int // how often the near end's address had changed
}

func (s *tapped) note(sent bool, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grams = append(s.grams, captured{at: time.Now(), sent: sent, octets: bytes.Clone(p)})
}

func (s *tapped) WriteTo(p []byte, to net.Addr) (int, error) {
	s.note(true, p)
	return s.PacketConn.WriteTo(p, to)
}

func (s *tapped) ReadFrom(p []byte) (int, net.Addr, error) {
	n, from, err := s.PacketConn.ReadFrom(p)
	if err == nil {
		s.note(false, p[:n])
	}
	return n, from, err
}

// overUDP sends messages to an echo service over a stream over UDP, on an emulated link, and
// captures the datagrams at the near end.
func overUDP(t *testing.T, profile string, sync int64, messages [][]byte) (grams []captured, store ctxstore.Store) {
	t.Helper()
	return overUDPAs(t, profile, streamer.Config{SyncBytes: sync}, 1, messages)
}

// overUDPAs does so over a stream with its initiator's configuration, with so many messages in
// flight at once.
func overUDPAs(
	t *testing.T, profile string, initiator streamer.Config, atOnce int, messages [][]byte,
) (grams []captured, store ctxstore.Store) {
	t.Helper()
	sync := initiator.SyncBytes
	store = memory.New(memory.Config{})
	synctest.Test(t, func(t *testing.T) {
		p, err := link.ParseProfile(profile)
		require.NoError(t, err)
		near, far, err := link.Packets(nil, p)
		require.NoError(t, err)
		tap := &tapped{PacketConn: near}
		cfg := udp.Config{Linger: time.Hour}
		l, err := udp.Listen(far, cfg)
		require.NoError(t, err)
		served := make(chan *streamer.Stream)
		go func() {
			c, err := l.Accept()
			require.NoError(t, err)
			coder := binary.NewBook(ctxstore.Shapes{Store: store}).Coder(binary.Options{})
			s, err := streamer.Over(t.Context(), c, streamer.Config{
				SyncBytes: sync,
				Accept: func(context.Context, frame.Hello) (streamer.Admission, error) {
					return streamer.Admission{
						Coder: coder,
						Handler: func(ctx context.Context, x *streamer.Exchange) {
							body, err := x.Message().ReadAll(1 << 20)
							assert.NoError(t, err)
							assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, body)))
						},
					}, nil
				},
			})
			require.NoError(t, err)
			served <- s
		}()
		connect := udp.Dial
		if initiator.Early != nil {
			connect = udp.DialEarly
		}
		c, err := connect(t.Context(), tap, far.LocalAddr(), cfg)
		require.NoError(t, err)
		coder := binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(binary.Options{})
		initiator.Initiator, initiator.Session = true, [16]byte{7}
		initiator.Token, initiator.Representation = make([]byte, frame.TokenLen), frame.Binary
		initiator.Coder = coder
		s, err := streamer.Over(t.Context(), c, initiator)
		require.NoError(t, err)
		var pending []*streamer.Pending
		for i := range len(messages) + atOnce - 1 {
			if i < len(messages) {
				p, err := s.Lane(0).Begin(t.Context(), streamer.NewMessage(nil, messages[i]))
				require.NoError(t, err)
				pending = append(pending, p)
			}
			if i -= atOnce - 1; i < 0 {
				continue
			}
			reply, err := pending[i].Reply(t.Context())
			require.NoError(t, err)
			got, err := reply.ReadAll(1 << 20)
			require.NoError(t, err)
			require.True(t, bytes.Equal(messages[i], got), "message %d", i)
		}
		there := <-served
		require.NoError(t, s.Close())
		<-there.Done()
		require.NoError(t, there.Close())
		require.NoError(t, l.Close())
		grams = tap.grams
	})
	return grams, store
}

// form is how a capture is written.
type form struct {
	v6, ng   bool
	fragment int // bytes of an IPv4 packet; 0: as long as need be
}

var (
	client = net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 40000}
	server = net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 8081}
)

// pcapOf writes datagrams as a capture of raw IP.
func pcapOf(t testing.TB, grams []captured, f form) []byte {
	t.Helper()
	var file bytes.Buffer
	var write func(ci gopacket.CaptureInfo, b []byte) error
	if f.ng {
		w, err := pcapgo.NewNgWriter(&file, layers.LinkTypeRaw)
		require.NoError(t, err)
		write = func(ci gopacket.CaptureInfo, b []byte) error {
			defer func() { _ = w.Flush() }()
			return w.WritePacket(ci, b)
		}
	} else {
		w := pcapgo.NewWriterNanos(&file)
		require.NoError(t, w.WriteFileHeader(1<<16, layers.LinkTypeRaw))
		write = w.WritePacket
	}
	buf := gopacket.NewSerializeBuffer()
	put := func(at time.Time, ls ...gopacket.SerializableLayer) {
		require.NoError(t,
			gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ls...))
		require.NoError(
			t,
			write(gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(buf.Bytes()), Length: len(buf.Bytes())},
				buf.Bytes()),
		)
	}
	for i, g := range grams {
		src, dst := client, server
		src.Port += g.moved
		if !g.sent {
			src, dst = dst, src
		}
		u := &layers.UDP{SrcPort: layers.UDPPort(src.Port), DstPort: layers.UDPPort(dst.Port)}
		if f.v6 {
			v6 := func(a net.UDPAddr) net.IP { return append(net.ParseIP("2001:db8::")[:12], a.IP.To4()...) }
			ip := &layers.IPv6{
				Version:    6,
				HopLimit:   9,
				NextHeader: layers.IPProtocolUDP,
				SrcIP:      v6(src),
				DstIP:      v6(dst),
			}
			require.NoError(t, u.SetNetworkLayerForChecksum(ip))
			put(g.at, ip, u, gopacket.Payload(g.octets))
			continue
		}
		ip := &layers.IPv4{
			Version:  4,
			TTL:      9,
			Id:       uint16(i),
			Protocol: layers.IPProtocolUDP,
			SrcIP:    src.IP.To4(),
			DstIP:    dst.IP.To4(),
		}
		require.NoError(t, u.SetNetworkLayerForChecksum(ip))
		if f.fragment == 0 || len(g.octets) <= f.fragment {
			put(g.at, ip, u, gopacket.Payload(g.octets))
			continue
		}
		require.NoError(
			t,
			gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, u,
				gopacket.Payload(g.octets)),
		)
		whole := bytes.Clone(buf.Bytes())
		for from := 0; from < len(whole); from += f.fragment {
			to := min(from+f.fragment, len(whole))
			part := *ip
			part.FragOffset = uint16(from / 8)
			if to < len(whole) {
				part.Flags = layers.IPv4MoreFragments
			}
			put(g.at, &part, gopacket.Payload(whole[from:to]))
		}
	}
	return file.Bytes()
}

const badLink = "3g,loss=8%,reorder=5%,dup=5%,jitter=20ms,seed="

// Whatever the link did to the datagrams, their capture gives the messages, and the bytes of the
// streams.
func TestLaw3OverUDP(t *testing.T) {
	messages := mixed(t)
	for seed, f := range []form{{}, {v6: true, ng: true}, {fragment: 400}} {
		grams, server := overUDP(t, badLink+fmt.Sprint(seed+1), 4096, messages)
		rec := &recorded{file: pcapOf(t, grams, f), messages: messages, server: server}
		r := decode(t, rec.file, nil)
		assert.False(t, r.Partial(), "%+v %+v", r.Stats, r.Counts())
		assert.Positive(t, r.Stats.Repeated, "the link repeated nothing: the test shows nothing")
		require.Len(t, r.Streams, 1)
		assert.EqualValues(t, client.Port, r.Streams[0].Src.Port())
		assert.Equal(t, 2*len(messages), r.Counts().Verified)
		assert.Empty(t, r.Others)
		dir := t.TempDir()
		save(t, r, dir)
		requireSaved(t, dir, messages)
		runs := runsOf(t, rec.file, nil)
		require.Len(t, runs, 2)
		raw, err := decodeStreams(t, runs, capture.DecodeConfig{Store: server})
		require.NoError(t, err)
		assert.Equal(t, 2*len(messages), raw.Counts().Verified)
	}
}

// The dialing side used other addresses later: it is one session.
func TestDatagramsFromNewAddresses(t *testing.T) {
	messages := mixed(t)
	grams, _ := overUDP(t, badLink+"9", 4096, messages)
	for i := range grams {
		grams[i].moved = i * 3 / len(grams)
	}
	r := decode(t, pcapOf(t, grams, form{}), nil)
	require.Len(t, r.Streams, 1)
	assert.False(t, r.Partial())
	assert.Equal(t, 2*len(messages), right(t, r, messages))
}

// right reports that all messages that a decoder gives are those that were sent, and how many there
// are.
func right(t *testing.T, r *capture.Result, messages [][]byte) (whole int) {
	t.Helper()
	for _, m := range r.Messages {
		if m.Whole() {
			whole++
			require.True(t, slices.ContainsFunc(messages, func(sent []byte) bool { return bytes.Equal(sent, m.Body) }),
				"exchange %d was never sent like that", m.Exchange)
			require.True(t, bytes.Equal(messages[m.Exchange-1], m.Body), "exchange %d", m.Exchange)
		}
	}
	return whole
}

// From the middle on, without the shapes before: everything from the next sync on is there.
func TestDatagramsFromTheMiddle(t *testing.T) {
	messages := slices.Repeat(mixed(t), 2)
	grams, store := overUDP(t, badLink+"5", 2048, messages)
	for _, share := range []int{10, 40, 70} {
		from := len(grams) * share / 100
		r := decode(t, pcapOf(t, grams[from:], form{}), store)
		assert.True(t, r.Partial())
		require.Len(t, r.Streams, 1)
		assert.Greater(t, right(t, r, messages), 2*len(messages)*(72-share)/100,
			"from %d %% on; how far it is to the next sync depends on what was lost", share)
	}
}

// Datagrams that are not in the capture: those that were sent again are no loss; each of the others
// costs what was between two syncs.
func TestDatagramsMissing(t *testing.T) {
	messages := slices.Repeat(mixed(t), 2)
	grams, store := overUDP(t, badLink+"6", 2048, messages)
	chance := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		n := 1 + chance.IntN(4)
		left := slices.Clone(grams)
		for range n {
			i := 5 + chance.IntN(len(left)-5)
			left = slices.Delete(left, i, i+1)
		}
		r := decode(t, pcapOf(t, left, form{}), store)
		whole := right(t, r, messages)
		if r.Stats.Gaps == 0 {
			assert.Equal(t, 2*len(messages), whole)
			assert.False(t, r.Partial())
			continue
		}
		assert.True(t, r.Partial())
		assert.Positive(t, r.Stats.MissingOctets)
		raw, err := decodeStreams(t, runsOf(t, pcapOf(t, left, form{}), store), capture.DecodeConfig{Store: store})
		require.NoError(t, err)
		assert.Equal(t, whole, right(t, raw, messages), "runs have their places, also without the capture around them")
		assert.Greater(t, whole, 2*len(messages)*(10-n)/10, "%d missing", n)
	}
	r := decode(t, pcapOf(t, grams[:len(grams)*9/10], form{}), store)
	assert.True(t, r.Partial(), "the end is missing")
	assert.Greater(t, right(t, r, messages), 2*len(messages)*8/10)
}

// A capture that has a datagram some places late loses nothing: what the next ones say of their
// floor does not make its units missing at once.
func TestDatagramsLateInTheCapture(t *testing.T) {
	messages := tree(t)
	grams, store := overUDP(t, "3g", 4096, messages)
	for _, late := range []int{3, 1, 7}[:shared.Some(3)] {
		for i := range len(grams) - late {
			moved := slices.Insert(slices.Delete(slices.Clone(grams), i, i+1), i+late, grams[i])
			r := decode(t, pcapOf(t, moved, form{}), store)
			require.Equal(t, 2*len(messages), r.Counts().Verified, "datagram %d of %d is %d late", i, len(grams), late)
			require.False(t, r.Partial())
		}
	}
}

// What is missing in a capture holds up what follows for some datagrams, not up to its end.
func TestMissingDatagramsHoldUpLittle(t *testing.T) {
	messages := slices.Repeat(tree(t), 2)
	grams, store := overUDP(t, "3g", 2048, messages)
	file := pcapOf(t, slices.Delete(slices.Clone(grams), 10, 14), form{})
	r := capture.NewReader(t.Context(), capture.DecodeConfig{Store: store})
	in := &counted{Reader: bytes.NewReader(file)}
	var at [2]int
	for ev, err := range r.Captures(t.Context(), capture.Input{Octets: in}) {
		require.NoError(t, err)
		if m := ev.Message; m != nil && m.Whole() && m.Exchange > uint64(len(messages)/2) && at[m.Direction] == 0 {
			at[m.Direction] = in.n
		}
	}
	require.Equal(t, 2, r.Summary().Stats.Gaps)
	for _, n := range at {
		assert.Positive(t, n)
		assert.Less(t, n, len(file)*9/10)
	}
}

// counted counts what is read of an input, which cannot be read again, packet by packet.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b[:min(len(b), 64)])
	c.n += n
	return n, err
}

var update = flag.Bool("update", false, "write the captures in testdata/pcap anew")

// A capture of a session on a bad link, made once.
func TestDatagramsInTheTree(t *testing.T) {
	inTheTree(t, "datagrams.pcap", func() []captured {
		grams, _ := overUDP(t, badLink+"4", 4096, tree(t))
		return grams
	})
}

// inTheTree decodes a capture in testdata, which -update makes anew; it has all messages, and
// datagrams that were sent again.
func inTheTree(t *testing.T, name string, anew func() []captured) {
	t.Helper()
	name = shared.Testdata(t, "pcap", name)
	if *update {
		require.NoError(t, os.WriteFile(name, pcapOf(t, anew(), form{}), 0o644))
	}
	r := decode(t, shared.Read(t, name), nil)
	assert.False(t, r.Partial())
	assert.Positive(t, r.Stats.Repeated)
	dir := t.TempDir()
	save(t, r, dir)
	requireSaved(t, dir, tree(t))
}

// Other datagrams are counted by kind.
func TestOtherDatagrams(t *testing.T) {
	messages := tree(t)[:3]
	grams, _ := overUDP(t, "lte", 4096, messages)
	var more []captured
	for _, octets := range [][]byte{
		{}, {4}, []byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03foo\x03bar\x00\x00\x01\x00\x01"),
		append([]byte{4, 1, 2, 3, 4, 5, 6, 7, 8}, packetOf(1, 1<<62, "far").Append(nil)...),
	} {
		more = append(more, captured{at: time.Now(), sent: true, octets: octets})
	}
	r := decode(t, pcapOf(t, append(more, grams...), form{}), nil)
	assert.Equal(t, 2*len(messages), right(t, r, messages))
	assert.Equal(t, map[string]int{"UDP datagrams": 4}, r.Others)
	r = decode(t, pcapOf(t, more, form{}), nil)
	assert.Empty(t, r.Streams)
	r = decode(t, pcapOf(t, grams[:4], form{}), nil)
	assert.Empty(t, r.Messages, "hello alone")
	long, _ := overUDP(t, "lte", 4096, slices.Repeat(tree(t), 2))
	// from the end on, until there is one sync frame, which no other contradicts
	for from := len(long) - 1; len(r.Streams) == 0; from-- {
		require.Positive(t, from)
		r = decode(t, pcapOf(t, long[from:], form{}), nil)
	}
	assert.Empty(t, r.Others)
	for _, m := range r.Messages {
		assert.NotEqual(t, capture.Withdrawn, m.State)
	}
	limited, err := capture.Decode(t.Context(), bytes.NewReader(pcapOf(t, grams, form{})),
		capture.DecodeConfig{Limits: flow.Limits{Octets: 1}})
	require.NoError(t, err)
	assert.Positive(t, limited.Stats.Dropped)
	assert.True(t, limited.Partial())
}

// packetOf is a packet with one message.
func packetOf(number, unit uint64, payload string) *window.Packet {
	return &window.Packet{Number: number, Floor: 1, Units: []window.Unit{{Number: unit, First: true, Last: true,
		Payload: []byte(payload)}}}
}

// tapeOf and gramsOf write datagrams as bytes, and read them again: a direction, a length, and so
// many bytes each.
func tapeOf(grams []captured) (tape []byte) {
	for _, g := range grams {
		way := byte(0)
		if g.sent {
			way = 1
		}
		tape = append(tape, way, byte(len(g.octets)>>8), byte(len(g.octets)))
		tape = append(tape, g.octets...)
	}
	return tape
}

func gramsOf(tape []byte) (grams []captured) {
	for len(tape) >= 3 {
		n := min(int(tape[1])<<8|int(tape[2]), len(tape)-3)
		grams = append(grams,
			captured{at: time.Unix(int64(len(grams)), 0), sent: tape[0]&1 != 0, octets: tape[3 : 3+n]})
		tape = tape[3+n:]
	}
	return grams
}

// FuzzDatagrams: whatever datagrams a capture has, its runs are in order, and no longer than what
// came.
func FuzzDatagrams(f *testing.F) {
	for _, name := range []string{"datagrams.pcap", "early.pcap"} {
		file, err := flow.Open(bytes.NewReader(shared.Read(f, shared.Testdata(f, "pcap", name))))
		require.NoError(f, err)
		var grams []captured
		_, err = flow.Read(flow.Config{Datagram: func(d flow.UDPDatagram) error {
			grams = append(grams, captured{sent: d.Src.Port() == uint16(client.Port), octets: d.Data})
			return nil
		}}, file)
		require.NoError(f, err)
		require.Greater(f, len(grams), 50)
		f.Add(tapeOf(grams[:20]))
		f.Add(tapeOf(grams[len(grams)-30:]))
		f.Add(tapeOf(slices.Concat(grams[:5], grams[8:12], grams[4:6])))
	}
	f.Fuzz(func(t *testing.T, tape []byte) {
		grams := gramsOf(tape)
		end := map[[2]int]int64{} // by stream and direction
		octets := 0
		_, err := capture.Decode(t.Context(), bytes.NewReader(pcapOf(t, grams, form{})),
			capture.DecodeConfig{Octets: func(n, direction int, offset int64, b []byte) error {
				at := [2]int{n, direction}
				if offset < end[at] || len(b) == 0 {
					return fmt.Errorf("%d bytes at %d after %d", len(b), offset, end[at])
				}
				end[at] = offset + int64(len(b))
				octets += len(b)
				return nil
			}})
		require.NoError(t, err)
		assert.LessOrEqual(t, octets, len(tape))
	})
}
