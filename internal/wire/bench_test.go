package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// BenchmarkMachines encodes and decodes small one-way messages of one kind: the machines alone,
// without split and join.
func BenchmarkMachines(b *testing.B) {
	ours := newShelf()
	k := kinds(b, ours)[0]
	l := newLine(b, wire.EncoderConfig{}, 7)
	content := contentOf(b, k.by, k.bodies[0], 16000)[0].content
	r := wire.NewDecoder(wire.DecoderConfig{Shapes: ours, MaxHeld: -1, Scratch: true})
	_, err := r.Next(l.tape)
	require.NoError(b, err)
	none, body := wire.Part{}, wire.Part{There: true, Program: k.by, Content: content, Last: true}
	b.ReportAllocs()
	var m wire.Outgoing
	for n := uint64(1); b.Loop(); n++ {
		m = wire.Outgoing{Key: frame.Key{Exchange: n}, OneWay: true}
		l.enc.Announce(0, &body, false, l.now)
		if err := l.enc.Data(&m, &none, &body, true, l.now); err != nil {
			b.Fatal(err)
		}
		for rest := l.enc.Bytes(); len(rest) > 0; {
			f, err := r.Next(rest)
			if err != nil || f.Octets == 0 {
				b.Fatal(f, err)
			}
			rest = rest[f.Octets:]
		}
		l.enc.Reset()
	}
}
