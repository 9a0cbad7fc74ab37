package capture_test

import (
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

// again is a capture of a session that has several streams at the same time, whose exchanges have
// the same numbers.
func again(t testing.TB, streams int) []byte {
	program := learned(t, body(1))
	p := newPackets(t)
	var talks []*talk
	var conns []*connection
	for i := range streams {
		talks, conns = append(talks, newTalk(t, 7)), append(conns, p.connect(uint16(1000+i)))
	}
	for n := range 4 {
		for i, x := range talks {
			k := frame.Key{Exchange: uint64(n + 1)}
			for dir := range 2 {
				k.Reply = dir == 1
				said := envelope("op", "", fmt.Sprintf("<n>stream %d exchange %d %v</n>", i, n+1, k.Reply))
				x.message(dir, wire.Outgoing{Key: k}, program, []byte(said))
			}
			conns[i].carry(x, 1400)
		}
	}
	for i, x := range talks {
		x.close()
		conns[i].carry(x, 1400)
		conns[i].end()
	}
	return p.bytes()
}

// requireApart requires that what came on one stream is listed as that of one.
func requireApart(t testing.TB, r *capture.Result, streams int) {
	t.Helper()
	require.Len(t, r.Streams, streams)
	assert.False(t, r.Partial())
	numbers := map[int][]string{}
	for _, m := range r.Messages {
		require.Equal(t, capture.Verified, m.State)
		require.Equal(t, [16]byte{7}, m.Session)
		of, _, _ := strings.Cut(string(m.Body), " exchange ")
		numbers[m.Number] = append(numbers[m.Number], fmt.Sprint(of, " of ", m.Stream))
		require.Contains(t, string(m.Body), fmt.Sprintf(" exchange %d %v<", m.Exchange, m.Reply))
	}
	assert.Len(t, numbers, 4*streams)
	seen := map[string]bool{}
	for _, two := range numbers {
		require.Len(t, two, 2, "a request and its reply")
		require.Equal(t, two[0], two[1])
		seen[two[0]] = true
	}
	assert.Len(t, seen, streams, "each stream is one")
}

// The streams of one session, each a connection, are not taken for each other: in a capture, and as
// raw bytes, whatever directions are there and however they are named.
func TestStreamsOfOneSession(t *testing.T) {
	const streams = 11
	file := again(t, streams)
	requireApart(t, decode(t, file, nil), streams)

	runs := runsOf(t, file, nil)
	require.Len(t, runs, 2*streams)
	raw, err := decodeStreams(t, runs, capture.DecodeConfig{})
	require.NoError(t, err)
	requireApart(t, raw, streams)

	one, err := decodeStreams(t, slices.Delete(slices.Clone(runs), 0, 1), capture.DecodeConfig{})
	require.NoError(t, err)
	assert.Len(t, one.Streams, streams, "a direction that is alone takes none of another stream")
	assert.Len(t, one.Messages, 8*streams-4)

	for i := range runs {
		runs[i].name = fmt.Sprintf("%c-%s.bin", 'a'+i/2, [2]string{"client", "server"}[i%2])
	}
	raw, err = decodeStreams(t, runs, capture.DecodeConfig{})
	require.NoError(t, err)
	requireApart(t, raw, streams)
}
