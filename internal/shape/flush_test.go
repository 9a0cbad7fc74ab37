package shape_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	work "github.com/hhfr/hhfr/pkg/workload"
)

// flushing is a message on its way, written in chunks and flushed between.
type flushing struct {
	t     testing.TB
	split program.Splitter
	join  program.Joiner
	last  *segment // handed out, and not joined yet: only the end tells which one is the last
	got   []byte
	err   error
}

func newFlushing(t testing.TB, p *program.Program, most int) *flushing {
	f := &flushing{t: t}
	f.join.Reset(p)
	f.split.Reset(p, most, false, func(text bool, octets []byte) error {
		f.deliver(false)
		f.last = &segment{text: text, octets: bytes.Clone(octets)}
		return nil
	})
	return f
}

func (f *flushing) deliver(last bool) {
	if f.last != nil && f.err == nil {
		f.got, f.err = joinInTurns(f.t, &f.join, f.got, *f.last, last, 50)
	}
	f.last = nil
}

func (f *flushing) flush(t testing.TB, force bool) {
	t.Helper()
	settled, err := f.split.Flush(force)
	require.NoError(t, err)
	f.deliver(false)
	if settled > 0 {
		f.got, f.err = f.join.Settle(f.got, settled)
	}
	require.NoError(t, f.err)
}

// flushed sends a message in chunks; cuts are where it is flushed, by force at every second one.
// Behind a forced flush all that was written is there, otherwise a beginning of it.
func flushed(t testing.TB, p *program.Program, message []byte, most int, cuts []int) {
	t.Helper()
	f := newFlushing(t, p, most)
	at := 0
	for i, cut := range cuts {
		cut = max(at, min(cut, len(message)))
		require.NoError(t, f.split.Write(message[at:cut]))
		at = cut
		force := i%2 == 0
		f.flush(t, force)
		require.True(t, bytes.HasPrefix(message, f.got), "%q, of %q", f.got, message[:at])
		if force {
			require.Equal(t, string(message[:at]), string(f.got))
		} else {
			require.LessOrEqual(t, len(message[:at])-len(f.got), 1000)
		}
	}
	require.NoError(t, f.split.Write(message[at:]))
	require.NoError(t, f.split.Close())
	f.deliver(true)
	require.NoError(t, f.err)
	require.Equal(t, string(message), string(f.got))
}

// Law 7: what was flushed is there, wherever that was.
func TestFlush(t *testing.T) {
	var messages [][]byte
	for _, all := range []func(func([]byte) bool){work.Strings(1, 4), work.Floats(2, 10), work.Records(3, 20),
		work.Headers(4)} {
		for m := range all {
			messages = append(messages, bytes.Clone(m))
			break
		}
	}
	messages = append(messages, soapFiles(t)...)
	for i, m := range messages {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s, err := learn.FromMessage(m)
			require.NoError(t, err)
			p := program.Compile(s)
			for at := range m {
				if len(m) < 1500 || at%7 == 0 {
					flushed(t, p, m, 4096, []int{at})
					flushed(t, p, m, 4096, []int{0, at, at, at + 1, at + 2})
				}
			}
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			for range 50 {
				var cuts []int
				for at := 0; at < len(m); at += 1 + rnd.IntN(len(m)/4) {
					cuts = append(cuts, at)
				}
				flushed(t, p, m, 300+rnd.IntN(3000), cuts)
				flushed(t, p, m, 300+rnd.IntN(3000), append([]int{0}, cuts...))
			}
		})
	}
	for _, c := range cases() {
		if bytes.IndexByte([]byte(c.message), 0) >= 0 {
			continue
		}
		s, err := shape.New(c.root)
		require.NoError(t, err)
		p := program.Compile(s)
		for at := range c.message {
			flushed(t, p, []byte(c.message), 256, []int{0, at, at})
		}
	}
}

// A flush by pause, without force, leaves a message under its shape: it takes hardly more than one
// that was not flushed.
func TestFlushKeepsTheShape(t *testing.T) {
	for m := range work.Records(1, 500) {
		s, err := learn.FromMessage(m)
		require.NoError(t, err)
		p := program.Compile(s)
		count := func(every int) (octets int, text bool) {
			var split program.Splitter
			split.Reset(p, 16000, false, func(isText bool, segment []byte) error {
				octets, text = octets+len(segment), text || isText
				return nil
			})
			for at := 0; at < len(m); at += every {
				require.NoError(t, split.Write(m[at:min(at+every, len(m))]))
				_, err := split.Flush(false)
				require.NoError(t, err)
			}
			require.NoError(t, split.Close())
			return octets, text
		}
		whole, _ := count(len(m))
		cut, text := count(1000)
		assert.False(t, text)
		assert.Less(t, cut, whole*11/10)
		return
	}
}

// FuzzFlush: whatever is flushed wherever, nothing is lost, and a forced flush gives all.
func FuzzFlush(f *testing.F) {
	for i, m := range soapFiles(f) {
		f.Add(m, m, uint16(300+i), []byte{0, 10, 200, 7})
		f.Add([]byte(wide(string(m), binary.LittleEndian)), []byte(wide(string(m), binary.LittleEndian)),
			uint16(1000), []byte{50, 3})
	}
	for _, c := range cases() {
		f.Add([]byte(c.message), []byte(c.message), uint16(256), []byte{4, 4, 4})
	}
	f.Fuzz(func(t *testing.T, a, b []byte, most uint16, steps []byte) {
		s, err := learn.FromMessage(a)
		if err != nil || len(b) > 20000 || len(steps) > 50 || len(s.Octets()) > 20000 {
			return
		}
		p := program.Compile(s)
		if bytes.IndexByte(a, 0) >= 0 {
			return // of UTF-16, half a character waits
		}
		var cuts []int
		at := 0
		for _, n := range steps {
			at += int(n)
			cuts = append(cuts, at)
		}
		flushed(t, p, b, 256+int(most)%16000, cuts)
	})
}
