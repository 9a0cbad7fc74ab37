package capture_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/frame"
)

// opened is a direction that begins so many messages and goes on with none.
func opened(h frame.Hello, messages int) []byte {
	b := h.AppendTo(nil)
	for range messages {
		b = frame.Data{First: true, Payload: []byte{0}}.AppendTo(b)
	}
	return b
}

// synced is a direction that opened so many messages and sends a sync and a whole message.
func synced(h frame.Hello, messages int) []byte {
	b := opened(h, messages)
	b = frame.Sync{Word: h.Word, Offset: uint64(len(b)), Session: h.Session,
		Representation: h.Representation}.AppendTo(b)
	return frame.Data{First: true, Last: true, NamesExchange: true, Exchange: uint64(messages) + 1,
		Payload: []byte("\x00<a/>")}.AppendTo(b)
}

func helloOf(session byte) frame.Hello {
	return frame.Hello{Session: [16]byte{session}, Token: make([]byte, frame.TokenLen), Word: [8]byte{session},
		Representation: frame.Binary, Limits: frame.EarlyLimits}
}

// Messages that were begun and never completed are held up to a bound. At it they are given as what
// they are, the stream says once what was left out, and goes on at the next sync, ten times as many
// likewise.
func TestOpenMessagesAreBounded(t *testing.T) {
	const most = 1 << 14
	for _, messages := range []int{most + 3000, 10 * most} {
		r, err := decodeStreams(t, []run{{"x", synced(helloOf(1), messages)}}, capture.DecodeConfig{})
		require.NoError(t, err)
		assert.Equal(t, capture.Counts{Messages: most + 2, Incomplete: most + 1, Unverified: 1}, r.Counts())
		for i, m := range r.Messages[:most+1] {
			require.EqualValues(t, i+1, m.Exchange)
			require.Equal(t, "too many messages are open", m.Why)
		}
		assert.Equal(t, "<a/>", string(r.Messages[most+1].Body))
		require.Len(t, r.Streams, 1)
		require.Len(t, r.Streams[0].Problems, 1)
		assert.Equal(t, "first direction, offset 49236: too many messages are open, 16385 of them here: "+
			"they, and what comes before the next sync, are left out", r.Streams[0].Problems[0])
		assert.True(t, r.Partial())
	}
}

// The bound is on all streams together, and the one with the most open messages pays: others keep
// theirs.
func TestOpenMessagesOfAllStreams(t *testing.T) {
	const most = 1 << 14
	p := newPackets(t)
	few, many := p.connect(1), p.connect(2)
	const kept = 10
	few.segment(0, flagACK, opened(helloOf(1), kept))
	for rest := synced(helloOf(2), 3*most); len(rest) > 0; {
		n := min(len(rest), 1400)
		many.segment(0, flagACK, rest[:n])
		rest = rest[n:]
	}
	for i := range uint64(kept) {
		few.segment(0, flagACK, frame.Data{Last: true, NamesExchange: true, Exchange: i + 1,
			Payload: []byte("<b/>")}.AppendTo(nil))
	}
	few.end()
	many.end()
	for name, file := range map[string]capture.Input{
		"file": {Octets: bytes.NewReader(p.bytes())},
		"pipe": {Octets: once{bytes.NewReader(p.bytes())}},
	} {
		t.Run(name, func(t *testing.T) {
			all, s := events(t, capture.DecodeConfig{}, file.Octets)
			whole := map[int]int{}
			for _, ev := range all {
				if ev.Message != nil && ev.Message.Whole() {
					whole[ev.Message.Stream]++
				}
			}
			assert.Equal(t, map[int]int{1: kept, 2: 1}, whole)
			require.Len(t, s.Streams, 2)
			assert.Empty(t, s.Streams[0].Problems)
			require.Len(t, s.Streams[1].Problems, 1)
			assert.Contains(t, s.Streams[1].Problems[0], "too many messages are open")
		})
	}
}
