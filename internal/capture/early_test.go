package capture_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// overUDPEarly is overUDP for a stream that is there before an answer is.
func overUDPEarly(t *testing.T, profile string, messages [][]byte) []captured {
	limits := streamer.EarlyLimits
	limits.MaxFragment, limits.MaxShapes, limits.MaxExchanges = 16384, 1024, 64 // as those of a hello before
	grams, _ := overUDPAs(t, profile, streamer.Config{SyncBytes: 4096, Early: &limits}, 1, messages)
	require.Positive(t, ofKind(grams, datagram.Early))
	return grams
}

// ofKind counts datagrams of a kind that have a packet.
func ofKind(grams []captured, kind datagram.Kind) (n int) {
	for _, g := range grams {
		if d, ok := datagram.Parse(g.octets); ok && d.Kind == kind && len(d.Packet) > 0 {
			n++
		}
	}
	return n
}

// The first flight of a session that went without an answer decodes in full, whatever the link did
// to it, and is one session with what comes behind.
func TestEarlyDatagrams(t *testing.T) {
	messages := mixed(t)
	for seed := range 4 {
		profile := badLink + fmt.Sprint(20+seed)
		if seed == 0 {
			profile = "geo"
		}
		grams := overUDPEarly(t, profile, messages)
		require.Positive(t, ofKind(grams, datagram.Answer))
		r := decode(t, pcapOf(t, grams, form{}), nil)
		assert.False(t, r.Partial(), "%+v", r.Stats)
		require.Len(t, r.Streams, 1)
		assert.EqualValues(t, client.Port, r.Streams[0].Src.Port())
		assert.Equal(t, 2*len(messages), right(t, r, messages))
		assert.Empty(t, r.Others)
	}
}

// What leads from early datagrams to the id may be missing, or stand in front of them: their
// session is found all the same. One that nobody has answered is one, too.
func TestEarlyDatagramsWithoutTheirAnswer(t *testing.T) {
	messages := mixed(t)
	grams := overUDPEarly(t, "geo", messages)
	without := slices.DeleteFunc(slices.Clone(grams), func(g captured) bool { return !g.sent })
	r := decode(t, pcapOf(t, without, form{}), nil)
	require.Len(t, r.Streams, 1)
	assert.Equal(t, len(messages), right(t, r, messages), "the requests")

	first := slices.IndexFunc(grams, func(g captured) bool { return datagram.Kind(g.octets[0]) == datagram.Answer })
	turned := slices.Concat(grams[first:first+1], grams[:first], grams[first+1:])
	r = decode(t, pcapOf(t, turned, form{}), nil)
	require.Len(t, r.Streams, 1)
	assert.Equal(t, 2*len(messages), right(t, r, messages))
	assert.Empty(t, r.Others)

	r = decode(t, pcapOf(t, grams[:first], form{}), nil)
	require.Len(t, r.Streams, 1)
	assert.Equal(t, 1, right(t, r, messages), "the first request")
}

// A capture of such a session on a bad link, made once.
func TestEarlyDatagramsInTheTree(t *testing.T) {
	inTheTree(t, "early.pcap", func() []captured { return overUDPEarly(t, badLink+"24", tree(t)) })
}
