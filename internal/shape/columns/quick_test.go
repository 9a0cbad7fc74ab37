package columns

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/workload"
)

// pair is two ends of one kind, of which the second takes each item for itself.
type pair struct {
	packers   [2]Packer
	unpackers [2]Unpacker
	ours      [2]Memory
	theirs    [2]Memory
}

func newPair() *pair {
	p := new(pair)
	p.ours[1].careful, p.theirs[1].careful = true, true
	return p
}

// pack packs a segment, the last of its part, in both ways, and requires the same of both. It gives
// nil for what cannot be packed: the quick way may have noted the shape by then, or even values, of
// which its segment tells the peer.
func (k *pair) pack(t testing.TB, p *program.Program, segment []byte) []byte {
	t.Helper()
	var packed [2][]byte
	for i := range packed {
		packed[i] = k.packers[i].Pack(nil, p, new(Packing), &k.ours[i], segment, true, 16384)
	}
	if k.ours[0].careful {
		return nil
	}
	require.Equal(t, packed[1], packed[0], "packed item by item, and at one look")
	if !Packed(packed[0]) {
		return nil
	}
	return packed[0]
}

// unpack unpacks a segment in both ways, and requires the same of both.
func (k *pair) unpack(t testing.TB, p *program.Program, packed []byte) ([]byte, error) {
	t.Helper()
	var out [2][]byte
	var errs [2]error
	for i := range out {
		out[i], errs[i] = k.unpackers[i].Unpack(nil, p, new(Packing), &k.theirs[i], packed, true, 16384)
	}
	require.Equal(t, errs[1] == nil, errs[0] == nil, "item by item: %v, at one look: %v", errs[1], errs[0])
	if errs[0] != nil {
		return nil, errs[0]
	}
	require.Equal(t, out[1], out[0], "unpacked item by item, and at one look")
	return out[0], nil
}

// sameMemories requires that both ways remember the same, but for kinds of one bit outside arrays:
// these are written as they are, and only one way notes them.
func (k *pair) sameMemories(t testing.TB) {
	t.Helper()
	for _, memories := range []*[2]Memory{&k.ours, &k.theirs} {
		memories[0].careful = true
		for i := range memories {
			if memories[i].latest == nil { // too many places
				continue
			}
			for pc, step := range memories[i].latest.program.Steps() {
				if o := &memories[i].latest.program.Ops()[pc]; step.At == int32(pc) && o.KindBits() == 1 {
					memories[i].latest.places[step.Place].kind = 1
				}
			}
		}
		var item, once Folded
		item.Fold(&memories[1])
		once.Fold(&memories[0])
		require.Equal(t, item.rest, once.rest)
	}
}

// values gives the contents of messages with values of every type outside arrays: the same, others,
// such at the limits, and such that are in no usual form.
func values(t testing.TB) (p *program.Program, contents [][]byte) {
	t.Helper()
	const format = "<m><b>%s</b><i>%s</i><d>%s</d><t>%s</t><z>%s</z><u>%s</u><x>%s</x><s>%s</s><h>%s</h></m>"
	const uuid, other = "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "urn:uuid:6BA7B810-9DAD-11D1-80B4-00C04FD430C9"
	const limit, beyond = "576460752303423487", "576460752303423488"
	const z, day, west = "2006-06-11T04:26:40Z", "2006-06-12T04:26:40.5Z", "2011-01-01T00:00:00-08:00"
	const base64, hex = "AAECAwQFBgcICQoLDA0ODw==", "00112233445566778899aabb"
	for _, v := range [][]any{
		{"true", "7", "1.25", z, west, uuid, base64, "words", hex},
		{"false", "8", "1.5", day, "2011-01-02T00:00:00-08:00", uuid, base64, "other words", hex},
		{"false", "9", "1.5", day, "2011-01-02T00:00:00+01:00", other, base64[:20], "words", hex[:20]},
		{"true", limit, "-" + limit, z, "2011-01-02T00:00:00Z", uuid, base64, "", "00112233445566778899AABB"},
		{"TRUE", beyond, "1.5E-05", "today", west, "none", "A?", "words", "none"},
		{"true", "-" + limit, limit[:17] + ".5", z, west, uuid, "", "item 17 of 20", hex},
		{"false", "0", "0.0000001", day, west, other, base64, "item 18 of 20", hex},
	} {
		message := fmt.Appendf(nil, format, v...)
		if p == nil {
			s, err := learn.FromMessage(message)
			require.NoError(t, err)
			p = program.Compile(s)
		}
		var content []byte
		var s program.Splitter
		s.Reset(p, 16384, true, func(_ bool, segment []byte) error {
			content = append(content, segment...)
			return nil
		})
		require.NoError(t, s.Split(message))
		contents = append(contents, content)
	}
	return p, contents
}

// TestUnpackQuickOfEveryFlip: with any bit of what was packed turned over, both ways give the same,
// or refuse it.
func TestUnpackQuickOfEveryFlip(t *testing.T) {
	p, contents := values(t)
	refused := 0
	for i, c := range contents {
		sender := newPair()
		before := sender.pack(t, p, contents[(i+1)%len(contents)])
		packed := sender.pack(t, p, c)
		for bit := range 8 * len(packed) {
			k := newPair()
			_, err := k.unpack(t, p, before)
			require.NoError(t, err)
			packed[bit/8] ^= 1 << (bit % 8)
			if _, err := k.unpack(t, p, packed); err != nil {
				refused++
			} else {
				_, _ = k.unpack(t, p, before) // by what is remembered now, which may not fit
			}
			packed[bit/8] ^= 1 << (bit % 8)
		}
	}
	assert.Greater(t, refused, 100)
}

// addContents seeds a target with shapes and segments: of the vectors, and of the workloads.
func addContents(f *testing.F) {
	for _, path := range shared.Files(f, shared.Testdata(f, "vectors", "packed"), nil) {
		var v struct {
			Shape    string
			Messages [][]struct {
				Segment string
				Last    bool
			}
		}
		require.NoError(f, json.Unmarshal(shared.Read(f, path), &v))
		octets, err := hex.DecodeString(v.Shape)
		require.NoError(f, err)
		var before []byte
		for _, m := range v.Messages {
			for _, s := range m {
				segment, err := hex.DecodeString(s.Segment)
				require.NoError(f, err)
				if before != nil {
					f.Add(octets, before, segment)
				}
				before = segment
			}
		}
	}
	p, contents := values(f)
	for i, c := range contents {
		f.Add(p.Shape().Octets(), c, contents[(i+1)%len(contents)])
	}
	all := []iter.Seq[[]byte]{workload.Strings(1, 4), workload.Floats(2, 10), workload.Records(3, 20),
		workload.Headers(4)}
	for _, messages := range all {
		var p *program.Program
		var before []byte
		left := 20
		for m := range messages {
			if p == nil {
				s, err := learn.FromMessage(m)
				require.NoError(f, err)
				p = program.Compile(s)
			}
			var content []byte
			var s program.Splitter
			s.Reset(p, 16384, true, func(_ bool, segment []byte) error {
				content = append(content, segment...)
				return nil
			})
			require.NoError(f, s.Split(m))
			if before != nil {
				f.Add(p.Shape().Octets(), before, content)
			}
			before = content
			if left--; left == 0 {
				break
			}
		}
	}
}

// FuzzPackQuick: what is packed and unpacked at one look, and what is item by item, is the same,
// and leaves the same in the memories of both ends.
func FuzzPackQuick(f *testing.F) {
	addContents(f)
	f.Fuzz(func(t *testing.T, octets, first, second []byte) {
		s, err := shape.Parse(octets)
		if err != nil || len(first) > 8192 || len(second) > 8192 {
			return
		}
		p := program.Compile(s)
		k := newPair()
		for _, segment := range [][]byte{first, second, first, first, second} {
			packed := k.pack(t, p, segment)
			if packed == nil {
				return
			}
			back, err := k.unpack(t, p, packed)
			require.NoError(t, err)
			require.Equal(t, string(segment), string(back))
		}
		k.sameMemories(t)
	})
}

// FuzzUnpackQuick: so it is with bytes that nobody packed; what one way refuses the other does.
func FuzzUnpackQuick(f *testing.F) {
	addContents(f)
	f.Fuzz(func(t *testing.T, octets, first, second []byte) {
		s, err := shape.Parse(octets)
		if err != nil || len(first) > 8192 || len(second) > 8192 {
			return
		}
		p := program.Compile(s)
		// As they come; and packed, with a byte of one in the place of another's.
		k, packer := newPair(), newPair()
		packed := packer.pack(t, p, first)
		if n := len(packed); n > 2 && len(second) > 0 {
			packed[1+int(second[0])%(n-1)] ^= second[len(second)-1] | 1
		}
		for _, octets := range [][]byte{packed, append([]byte{1}, first...), second, packed} {
			if len(octets) == 0 {
				continue
			}
			if _, err := k.unpack(t, p, octets); err != nil {
				return
			}
		}
	})
}
