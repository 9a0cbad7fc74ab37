package binary_test

import (
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/workload"
)

// BenchmarkDirection is what small one-way messages cost without a stream: each is split, encoded,
// decoded and joined.
func BenchmarkDirection(b *testing.B) {
	for _, w := range []struct {
		name     string
		messages iter.Seq[[]byte]
	}{
		{"w1-4strings", workload.Strings(1, 4)},
		{"w2-10floats", workload.Floats(1, 10)},
		{"w5-headers", workload.Headers(1)},
	} {
		b.Run(w.name, func(b *testing.B) {
			var messages [][]byte
			for m := range w.messages {
				if messages = append(messages, slices.Clone(m)); len(messages) == 1000 {
					break
				}
			}
			d := newDirection(b, binary.Options{})
			for _, m := range messages[:2] { // they bring the shape
				d.send(b, nil, m, d.enc.MaxSegment())
			}
			var j program.Joiner
			var joined []byte
			var m wire.Outgoing
			none := &wire.Part{}
			exchange := d.exchanges[0]
			emit := func(_ bool, p wire.Part) error {
				d.enc.Announce(0, &p, false, d.now)
				return d.enc.Data(&m, none, &p, p.Last, d.now)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				exchange++
				m = wire.Outgoing{Key: frame.Key{Exchange: exchange}, OneWay: true}
				split := d.from.coder.Split(0, d.enc.MaxSegment(), emit)
				if err := split.All(messages[i%len(messages)]); err != nil {
					b.Fatal(err)
				}
				split.Free()
				for rest := d.enc.Bytes(); len(rest) > 0; {
					f, err := d.dec.Next(rest)
					if err != nil || f.Octets == 0 {
						b.Fatal(f, err)
					}
					for k := range f.Events {
						e := &f.Events[k]
						if p := &e.Body; e.Kind == wire.Fragment && p.Program != nil {
							j.Reset(p.Program)
							if joined, err = j.Join(joined[:0], p.Content, p.Text, p.Last); err != nil {
								b.Fatal(err)
							}
						}
					}
					rest = rest[f.Octets:]
				}
				d.enc.Reset()
			}
			require.NotEmpty(b, joined)
		})
	}
}
