package capture_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/capture"
	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// eachForItself is overUDP with an unordered stream, and several messages under way at once.
func eachForItself(t *testing.T, profile string, sync int64, messages [][]byte) ([]captured, ctxstore.Store) {
	t.Helper()
	return overUDPAs(t, profile, streamer.Config{SyncBytes: sync, Unordered: true}, 8, messages)
}

// runsOf are the raw runs of a capture, as reconstruct has them.
func runsOf(t *testing.T, file []byte, store ctxstore.Store) (runs []capture.RawRun) {
	t.Helper()
	_, err := capture.Decode(t.Context(), bytes.NewReader(file), capture.DecodeConfig{Store: store, EachRun: func(stream, direction int, r *flow.Run) error {
		runs = append(runs, capture.RawRun{Name: capture.RunName(stream, direction, r.Offset), Octets: bytes.Clone(r.Data)})
		return nil
	}})
	require.NoError(t, err)
	return runs
}

// Of an unordered stream, too, the capture tells all.
func TestLaw3OverUDPUnordered(t *testing.T) {
	messages := mixed(t)
	for seed, f := range []form{{}, {v6: true, ng: true}, {fragment: 400}} {
		grams, server := eachForItself(t, badLink+fmt.Sprint(seed+1), 4096, messages)
		file := pcapOf(t, grams, f)
		r := decode(t, file, nil)
		assert.False(t, r.Partial(), "%+v %+v", r.Stats, r.Counts())
		require.Len(t, r.Streams, 1)
		assert.Equal(t, 2*len(messages), r.Counts().Verified)
		assert.Equal(t, 2*len(messages), right(t, r, messages))
		assert.Empty(t, r.Others)
		dir := t.TempDir()
		require.NoError(t, r.Save(dir))
		requireSaved(t, dir, messages)
		raw, err := capture.DecodeStreams(t.Context(), runsOf(t, file, nil), capture.DecodeConfig{Store: server})
		require.NoError(t, err)
		assert.Equal(t, 2*len(messages), raw.Counts().Verified)
	}
}

// A capture of an unordered stream on a bad link, made once.
func TestUnorderedInTheTree(t *testing.T) {
	inTheTree(t, "unordered.pcap", func() []captured {
		grams, _ := eachForItself(t, badLink+"4", 2048, tree(t))
		return grams
	})
}

// From the middle on, every message that is there is read, also those before the first sync frame.
func TestUnorderedFromTheMiddle(t *testing.T) {
	messages := slices.Repeat(mixed(t), 2)
	grams, store := eachForItself(t, badLink+"5", 2048, messages)
	all := decode(t, pcapOf(t, grams, form{}), store)
	for _, share := range []int{10, 40, 70} {
		from, least := len(grams)*share/100, 0
		for _, m := range all.Messages {
			if m.Packet > from {
				least++
			}
		}
		require.Greater(t, least, 10)
		file := pcapOf(t, grams[from:], form{})
		r := decode(t, file, store)
		assert.True(t, r.Partial())
		require.Len(t, r.Streams, 1)
		whole := right(t, r, messages)
		assert.GreaterOrEqual(t, whole, least, "from %d %% on", share)
		assert.Zero(t, r.Counts().Undecodable)
		raw, err := capture.DecodeStreams(t.Context(), runsOf(t, file, store), capture.DecodeConfig{Store: store})
		require.NoError(t, err)
		assert.Equal(t, whole, right(t, raw, messages))
	}
}

// A datagram that is not in the capture costs the messages that were in it, and no other.
func TestUnorderedDatagramsMissing(t *testing.T) {
	messages := slices.Repeat(mixed(t), 2)
	grams, store := eachForItself(t, badLink+"6", 2048, messages)
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
		assert.GreaterOrEqual(t, whole, 2*len(messages)-8*n, "%d missing", n)
		assert.Equal(t, whole == 2*len(messages) && r.Stats.Gaps == 0, !r.Partial(), "%d of %d", whole, 2*len(messages))
	}
}
