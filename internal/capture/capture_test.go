package capture_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

func decode(t testing.TB, file []byte, store ctxstore.Store) *capture.Result {
	t.Helper()
	r, err := capture.Decode(t.Context(), bytes.NewReader(file), capture.DecodeConfig{Store: store})
	require.NoError(t, err)
	return r
}

// run is the bytes of a run of a direction.
type run struct {
	name   string
	octets []byte
}

// runsOf returns the raw runs of a capture, as reconstruct has them, of each stream those of the
// end that opened it first.
func runsOf(t testing.TB, file []byte, store ctxstore.Store) (runs []run) {
	t.Helper()
	type way struct{ stream, direction int }
	all, end := map[way][]run{}, map[way]int64{}
	_, err := capture.Decode(t.Context(), bytes.NewReader(file),
		capture.DecodeConfig{Store: store, Octets: func(stream, direction int, offset int64, b []byte) error {
			w := way{stream, direction}
			list := all[w]
			if len(list) == 0 || offset != end[w] {
				assert.GreaterOrEqual(t, offset, end[w])
				list = append(list, run{name: capture.RunName(stream, direction, offset)})
			}
			list[len(list)-1].octets = append(list[len(list)-1].octets, b...)
			all[w], end[w] = list, offset+int64(len(b))
			return nil
		}})
	require.NoError(t, err)
	for _, w := range slices.SortedFunc(maps.Keys(all),
		func(a, b way) int { return cmp.Or(a.stream-b.stream, a.direction-b.direction) }) {
		runs = append(runs, all[w]...)
	}
	return runs
}

func decodeStreams(t testing.TB, runs []run, cfg capture.DecodeConfig) (*capture.Result, error) {
	t.Helper()
	var raw []capture.Input
	for _, r := range runs {
		raw = append(raw, capture.Input{Name: r.name, Octets: bytes.NewReader(r.octets)})
	}
	return capture.DecodeStreams(context.Background(), raw, cfg)
}

// save writes all messages.
func save(t testing.TB, r *capture.Result, dir string) {
	t.Helper()
	for _, m := range r.Messages {
		require.NoError(t, m.Save(dir))
	}
}

// requireLaw3 compares what every path from a recording back to its messages gives with what was
// sent.
func requireLaw3(t *testing.T, rec *recorded) {
	r := decode(t, rec.file, nil)
	assert.False(t, r.Partial())
	c := r.Counts()
	assert.Equal(t, c.Messages, c.Verified+2, "%+v", c)
	assert.Equal(t, 2, c.Unchecked, "%+v", c)
	assert.Equal(t, 2*len(rec.messages)+2, c.Messages, "requests, replies, offer and answer")
	dir := t.TempDir()
	save(t, r, dir)
	requireSaved(t, dir, rec.messages)

	runs := runsOf(t, rec.file, nil)
	require.Len(t, runs, 2)
	raw, err := decodeStreams(t, runs, capture.DecodeConfig{Store: copyStore(t, rec.server)})
	require.NoError(t, err)
	assert.False(t, raw.Partial())
	dir = t.TempDir()
	save(t, raw, dir)
	requireSaved(t, dir, rec.messages)

	for i, kind := range []string{"request", "reply"} {
		one, err := decodeStreams(t, runs[i:i+1], capture.DecodeConfig{Store: copyStore(t, rec.server)})
		require.NoError(t, err)
		dir = t.TempDir()
		save(t, one, dir)
		files := readDir(t, dir)
		require.Len(t, files, len(rec.messages))
		for n, m := range rec.messages {
			require.True(t, bytes.Equal(m, files[fmt.Sprintf("%06d-%s.xml", n+1, kind)]), "%s %d of one direction",
				kind, n+1)
		}
	}
}

func TestLaw3(t *testing.T)            { requireLaw3(t, record(t, mixed(t), 4096)) }
func TestLaw3OnTheCorpus(t *testing.T) { requireLaw3(t, record(t, corpus(t), 4096)) }

// place is where a message is: in which direction, from which offset to which.
type place struct {
	dir      int
	from, to int64
}

type key struct {
	reply    bool
	exchange uint64
}

// layout finds out, from a whole recording, the offsets of messages, and of the sync frames and the
// close frame after them.
func layout(t testing.TB, rec *recorded) (messages map[key]place, syncs [2][]int64) {
	messages = map[key]place{}
	for dir, one := range runsOf(t, rec.file, nil) {
		b := one.octets
		var n frame.Numbering
		for at := 0; at < len(b); {
			fr, size, err := frame.Parse(b[at:], int64(at), 0)
			require.NoError(t, err)
			switch fr := fr.(type) {
			case frame.Close:
				syncs[dir] = append(syncs[dir], int64(at))
			case frame.Sync:
				syncs[dir] = append(syncs[dir], int64(at))
				n.Sync(fr)
			case frame.Data:
				require.NoError(t, n.Resolve(&fr, int64(at)))
				k := key{fr.Reply, fr.Exchange}
				p, seen := messages[k]
				if !seen {
					p = place{dir: dir, from: int64(at)}
				}
				p.to = int64(at + size)
				messages[k] = p
			}
			at += size
		}
	}
	return messages, syncs
}

// hole is what is missing of a direction: bytes from from on, up to to.
type hole struct{ from, to int64 }

// requireWhatIsThere checks a decoded remainder. Every message that is given whole and not
// withdrawn is right. All are given that end before the hole, or begin after the first sync frame
// after it.
func requireWhatIsThere(
	t testing.TB, rec *recorded, messages map[key]place, syncs [2][]int64, r *capture.Result, holes [2]hole,
	what string,
) {
	t.Helper()
	got := map[key]*capture.Decoded{}
	for _, m := range r.Messages {
		if !m.HHFR {
			continue
		}
		k := key{m.Reply, m.Exchange}
		got[k] = m
		if m.Whole() {
			require.True(t, bytes.Equal(rec.messages[m.Exchange-1], m.Body), "%s: %v is wrong", what, k)
		}
		require.NotEqual(t, capture.Withdrawn, m.State, "%s: %v", what, k)
	}
	for k, p := range messages {
		h := holes[p.dir]
		there := p.to <= h.from
		for _, s := range syncs[p.dir] {
			there = there || s >= h.to && p.from >= s
		}
		if there {
			m := got[k]
			require.NotNil(t, m, "%s: %+v at %+v is missing, hole %+v", what, k, p, h)
			require.True(t, m.Whole(), "%s: %+v is %s %s", what, k, m.State, m.Why)
		}
		if m := got[k]; m != nil && m.State == capture.Verified {
			covered := false
			for _, s := range syncs[p.dir] {
				covered = covered || s >= p.to
			}
			require.True(t, covered || h.from == h.to, "%s: %+v is verified, by what?", what, k)
		}
	}
}

func TestCutAnywhere(t *testing.T) {
	rec := record(t, mixed(t), 4096)
	messages, syncs := layout(t, rec)
	store := copyStore(t, rec.server)
	ends := packetEnds(t, rec.file)
	octets := int64(0) // of both directions
	for _, e := range ends {
		if e.dir >= 0 {
			octets += e.to - e.from
		}
	}
	rnd := rand.New(rand.NewPCG(11, 12))
	for i := range shared.Some(250) {
		cut := rnd.IntN(len(rec.file))
		if i < 20 {
			cut = len(rec.file) - 1 - i
		}
		r, err := capture.Decode(t.Context(), bytes.NewReader(rec.file[:cut]), capture.DecodeConfig{Store: store})
		if err != nil {
			var e *flow.Error
			require.ErrorAs(t, err, &e)
			require.Less(t, cut, 200)
			continue
		}
		whole := 0
		for whole < len(ends) && ends[whole].at <= cut {
			whole++
		}
		var holes [2]hole
		for _, e := range ends[:whole] {
			if e.dir >= 0 {
				holes[e.dir].from = max(holes[e.dir].from, e.to)
			}
		}
		holes[0].to, holes[1].to = 1<<60, 1<<60
		requireWhatIsThere(t, rec, messages, syncs, r, holes, fmt.Sprintf("cut at %d of %d", cut, len(rec.file)))
		require.True(t, r.Partial() || len(r.Streams) == 0 || holes[0].from+holes[1].from == octets, "cut at %d", cut)
	}
}

// packetEnd is one packet: where its record ends in the file and, if it carries bytes of the
// stream, up to which offset of which direction.
type packetEnd struct {
	at       int
	dir      int
	from, to int64
	raw      []byte
	ci       gopacket.CaptureInfo
}

// packetEnds reads a recording packet by packet.
func packetEnds(t testing.TB, file []byte) (ends []packetEnd) {
	r, err := pcapgo.NewNgReader(bytes.NewReader(file), pcapgo.DefaultNgReaderOptions)
	require.NoError(t, err)
	var base [2]uint32
	var port [2]byte
	at := 0
	for {
		data, ci, err := r.ReadPacketData()
		if err != nil {
			break
		}
		at = bytes.Index(file[at:], data) + at + len(data)
		e := packetEnd{at: (at+3)/4*4 + 4, dir: -1, raw: bytes.Clone(data), ci: ci}
		head := int(data[0]&15) * 4
		segment := data[head:]
		payload := segment[int(segment[12]>>4)*4:]
		seq := uint32(segment[4])<<24 | uint32(segment[5])<<16 | uint32(segment[6])<<8 | uint32(segment[7])
		if frame.BeginsStream(payload) {
			side := 0
			if base[0] != 0 {
				side = 1
			}
			base[side], port[side] = seq, segment[1]
		}
		for side := range base {
			if base[side] != 0 && len(payload) > 0 && segment[1] == port[side] && int32(seq-base[side]) >= 0 &&
				int32(seq-base[side]) < 1<<26 {
				e.dir, e.from, e.to = side, int64(seq-base[side]), int64(seq-base[side])+int64(len(payload))
			}
		}
		ends = append(ends, e)
	}
	require.NotEmpty(t, ends)
	return ends
}

func TestPacketsMissing(t *testing.T) {
	m := newMissing(t, mixed(t), 4096)
	rnd := rand.New(rand.NewPCG(21, 22))
	for range shared.Some(200) {
		from := 4 + rnd.IntN(len(m.packets)-4)
		m.without(t, from, min(len(m.packets), from+1+rnd.IntN(1+rnd.IntN(40))))
	}
}

// missing is a recording from which packets are removed.
type missing struct {
	rec      *recorded
	messages map[key]place
	syncs    [2][]int64
	store    ctxstore.Store
	packets  []packetEnd
}

func newMissing(t testing.TB, messages [][]byte, sync int64) *missing {
	m := &missing{rec: record(t, messages, sync)}
	m.messages, m.syncs = layout(t, m.rec)
	m.store = copyStore(t, m.rec.server)
	m.packets = packetEnds(t, m.rec.file)
	return m
}

// without checks everything that can still be known of the recording without some packets.
func (m *missing) without(t testing.TB, from, to int) {
	t.Helper()
	what := fmt.Sprintf("packets %d to %d of %d", from, to, len(m.packets))
	holes := [2]hole{{1 << 60, 1 << 60}, {1 << 60, 1 << 60}}
	for _, p := range m.packets[from:to] {
		if p.dir >= 0 {
			h := &holes[p.dir]
			h.from = min(h.from, p.from)
			if h.to == 1<<60 {
				h.to = 0
			}
			h.to = max(h.to, p.to)
		}
	}
	var file bytes.Buffer
	w, err := pcapgo.NewNgWriter(&file, 101)
	require.NoError(t, err)
	for i, p := range m.packets {
		if i < from || i >= to {
			p.ci.InterfaceIndex = 0
			require.NoError(t, w.WritePacket(p.ci, p.raw))
		}
	}
	require.NoError(t, w.Flush())
	r := decode(t, file.Bytes(), m.store)
	requireWhatIsThere(t, m.rec, m.messages, m.syncs, r, holes, what)
	if holes[0].from < 1<<60 || holes[1].from < 1<<60 {
		require.True(t, r.Partial(), what)
	}
}

// For a stream whose hello is not in a capture, and without a sync yet, the summary says what it
// may be, and when more will be known.
func TestStreamsWithoutSync(t *testing.T) {
	m := newMissing(t, tree(t), 65536)
	told := 0
	for from := range m.packets {
		if m.packets[from].dir < 0 {
			continue
		}
		var file bytes.Buffer
		w, err := pcapgo.NewNgWriter(&file, 101)
		require.NoError(t, err)
		for _, p := range m.packets[from:] {
			p.ci.InterfaceIndex = 0
			require.NoError(t, w.WritePacket(p.ci, p.raw))
		}
		require.NoError(t, w.Flush())
		for what := range decode(t, file.Bytes(), m.store).Others {
			if regexp.MustCompile(`^connections with what may be an hhfr stream \(no sync frame in \d+ bytes; ` +
				`the next is due 1 MiB, 16,384 messages or 15 minutes after the last\)$`).MatchString(what) {
				told++
			}
		}
	}
	assert.Greater(t, told, 3)
}
