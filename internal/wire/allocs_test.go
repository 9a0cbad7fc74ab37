//go:build !race

package wire_test

// Under the race detector pools drop some of what they are given.

import (
	"bytes"
	"encoding/base64"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// Nothing is allocated for a message in steady state, at either end.
func TestSteadyStateAllocates(t *testing.T) {
	ours := newShelf()
	k := kinds(t, ours)[0]
	l := newLine(t, wire.EncoderConfig{}, 7)
	content := contentOf(t, k.by, k.bodies[0], 16000)[0].content
	r := wire.NewDecoder(wire.DecoderConfig{Shapes: ours, MaxHeld: -1, Scratch: true})
	_, err := r.Next(l.tape)
	require.NoError(t, err)
	n := uint64(0)
	var m wire.Outgoing
	none, body := wire.Part{}, wire.Part{There: true, Program: k.by, Content: content, Last: true}
	one := func() {
		n++
		m = wire.Outgoing{Key: frame.Key{Exchange: n}, OneWay: true}
		l.enc.Announce(0, &body, false, l.now)
		if err := l.enc.Data(&m, &none, &body, true, l.now); err != nil {
			t.Fatal(err)
		}
		for b := l.enc.Bytes(); len(b) > 0; {
			f, err := r.Next(b)
			if err != nil || f.Octets == 0 {
				t.Fatal(f, err)
			}
			b = b[f.Octets:]
		}
		l.enc.Reset()
	}
	for range 200 {
		one()
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(500, one), 1.0, "the message")
}

// TestLongTextsAllocateLittle: what a long text in base64 comes to, segment by segment, is in
// buffers that are used again.
func TestLongTextsAllocateLittle(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // each processor has spare buffers of its own
	l := newLine(t, wire.EncoderConfig{}, 7)
	text := []byte(base64.StdEncoding.EncodeToString(noise(12_000)))
	r := wire.NewDecoder(wire.DecoderConfig{Shapes: newShelf(), Reuse: true})
	_, err := r.Next(l.tape)
	require.NoError(t, err)
	m := wire.Outgoing{Key: frame.Key{Exchange: 1}, OneWay: true}
	none, body := wire.Part{}, wire.Part{There: true, First: true, Content: text}
	one := func() {
		require.NoError(t, l.enc.Data(&m, &none, &body, false, l.now))
		body.First = false
		for b := l.enc.Bytes(); len(b) > 0; {
			f, err := r.Next(b)
			require.NoError(t, err)
			for _, ev := range f.Events {
				if ev.Kind == wire.Fragment {
					require.True(t, bytes.Equal(text, ev.Body.Content))
					wire.Release(ev.Buffer)
				}
			}
			b = b[f.Octets:]
		}
		l.enc.Reset()
	}
	for range 20 {
		one()
	}
	const segments = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range segments {
		one()
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, int(after.TotalAlloc-before.TotalAlloc)/segments, len(text)/4)
}
