package wire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/recall"
	"github.com/hhfr/hhfr/internal/wire"
)

// unlike is text of so many bytes at least, other for each number.
func unlike(number, size int) string {
	rnd := rand.New(rand.NewPCG(uint64(number), 31))
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "<n%d>%x</n%d> ", number, rnd.Uint64(), rnd.IntN(100))
	}
	return b.String()
}

// phrases is text that takes little, and comes into a window all the same: no copy of it is long.
func phrases(number, size int) string {
	said := strings.Fields(unlike(0, 64*90))
	rnd := rand.New(rand.NewPCG(uint64(number), 33))
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(said[rnd.IntN(len(said))] + said[rnd.IntN(len(said))])
	}
	return b.String()
}

// TestWindowsReachAsFarAsThePeerReads: what was said 150 KB before is copied if the peer reads far
// windows, and is not if it does not say so.
func TestWindowsReachAsFarAsThePeerReads(t *testing.T) {
	for name, far := range map[string]bool{"far": true, "a peer that does not say so": false} {
		t.Run(name, func(t *testing.T) {
			limits := hello.Limits
			limits.Far = far
			p := newPair(t, wire.EncoderConfig{Limits: limits}, allStages)
			again := func() int {
				first := len(p.send(1, nil, unlike(1, 700))[0])
				require.Greater(t, first, 300)
				for i := range 10 {
					p.send(1, nil, unlike(2+i, 15<<10))
				}
				return len(p.send(1, nil, unlike(1, 700))[0])
			}
			assert.Equal(t, far, again() < 20)
			p.sync()
			assert.Equal(t, far, again() < 20, "behind a sync")
			limits.Far = true
			p.sync()
			p.enc.Limit(limits) // its hello comes late
			assert.Less(t, again(), 20)
		})
	}
}

// TestShortWindowsAreAsEver: where little was said, far windows take no byte.
func TestShortWindowsAreAsEver(t *testing.T) {
	limits := hello.Limits
	limits.Far = false
	old, far := newPair(t, wire.EncoderConfig{Limits: limits}, allStages), newPair(t, wire.EncoderConfig{}, allStages)
	for i := range 20 {
		text := unlike(i%10, 2500)
		assert.Equal(t, old.send(1, nil, text), far.send(1, nil, text))
	}
}

// TestFarWindowsAreFew: an encoder makes as many far as a decoder takes between two syncs, and a
// part of a message that no lane remembers has none that is.
func TestFarWindowsAreFew(t *testing.T) {
	const mostFar = 64
	w := recall.History{GotFar: new(int)}
	pack, marks := new(recall.Compressor), "\xfa\xf6\xf6"
	var payloads [][]byte
	text := make([]string, len(marks))
	for i := range marks {
		text[i] = phrases(1+i, 11<<10)
		packed, smaller := pack.Pack(&w, []byte(text[i]), 0)
		require.True(t, smaller)
		payloads = append(payloads, append([]byte{0, marks[i]}, packed...))
	}
	require.True(t, w.Far())
	send := func(to *reader, lane uint64) error {
		var b []byte
		for i, payload := range payloads {
			b = frame.Data{First: true, Last: true, Lane: lane, Exchange: 1 + uint64(i), Payload: payload}.AppendTo(b)
		}
		_, err := to.read(b)
		require.NoError(t, err)
		return to.messages[len(to.messages)-1].err
	}
	h := hello
	h.Stages = allStages
	to := newReader(wire.DecoderConfig{Shapes: newShelf()})
	_, err := to.read(h.AppendTo(nil))
	require.NoError(t, err)
	for lane := range uint64(mostFar) {
		require.NoError(t, send(to, 1+lane))
	}
	assert.ErrorContains(t, send(to, 1+mostFar), "far")

	p := newPair(t, wire.EncoderConfig{}, allStages)
	far := 0
	for lane := range uint64(mostFar + 2) {
		for i := range payloads {
			if s := p.send(1+lane, nil, text[i])[0]; s[1] == 0 {
				far++
			}
		}
		p.forget()
	}
	assert.Equal(t, mostFar, far)

	to = newReader(wire.DecoderConfig{Shapes: newShelf()})
	b := h.AppendTo(nil)
	for i, payload := range payloads {
		if i > 0 {
			payload = payload[1:] // the number of its shape stands in the first
		}
		b = frame.Data{First: i == 0, Lane: 1, Exchange: 1, Payload: payload}.AppendTo(b)
	}
	_, err = to.read(b)
	require.NoError(t, err)
	assert.ErrorContains(t, to.messages[0].err, "far")
}
