package capture_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// everything is a peer that has every shape.
type everything struct{}

func (everything) Has(shape.Fingerprint) (has, sure bool) { return true, true }
func (everything) Learned(*program.Program)               {}

// A recording of a thousand kinds in turn that begins anywhere is read from its next sync on, with
// the shapes that the store has.
func TestManyKindsFromTheMiddle(t *testing.T) {
	const kinds, passes = 1000, 18
	store := memory.New(memory.Config{})
	defer func() { require.NoError(t, store.Close()) }()
	message := func(i int) string { return fmt.Sprintf("<a><kind%d>%d</kind%d></a>", i%kinds, i*i, i%kinds) }
	var programs []*program.Program
	for i := range kinds {
		s, err := learn.FromMessage([]byte(message(i)))
		require.NoError(t, err)
		_, err = ctxstore.Shapes{Store: store}.Put(t.Context(), s.Octets())
		require.NoError(t, err)
		programs = append(programs, program.Compile(s))
	}
	hello := frame.Hello{Session: [16]byte{1}, Word: [8]byte{2}, Representation: frame.Binary,
		Stages: wire.Columns | wire.Memory | wire.Zstd,
		Limits: frame.Limits{MaxFragment: 16384, MaxMessage: 1 << 30, MaxShapes: kinds, MaxShapeBytes: 4 << 20,
			MaxExchanges: 1, Window: 1 << 20}}
	tape := hello.AppendTo(nil)
	now := time.Unix(1e9, 0)
	enc := wire.NewEncoder(wire.EncoderConfig{Origin: frame.OriginOf(hello), Word: hello.Word, Peer: everything{},
		Limits: hello.Limits}, len(tape), now)
	for i := range kinds * passes {
		by := programs[i%kinds]
		m := wire.Outgoing{Key: frame.Key{Exchange: uint64(i + 1)}, OneWay: true}
		enc.Announce(0, &wire.Part{Program: by}, false, now)
		var s program.Splitter
		s.Reset(by, enc.MaxSegment(), false, func(_ bool, content []byte) error {
			return enc.Data(&m, &wire.Part{}, &wire.Part{There: true, Program: by, Content: content, Last: true}, true,
				now)
		})
		require.NoError(t, s.Split([]byte(message(i))))
	}
	enc.Close(frame.CloseDone, "")
	tape = append(tape, enc.Bytes()...)

	for _, from := range []int{1000, len(tape) / 2} {
		r, err := capture.DecodeStreams(t.Context(), []capture.Input{{Name: fmt.Sprintf("x-%d.bin", from),
			Octets: bytes.NewReader(tape[from:])}}, capture.DecodeConfig{Store: store})
		require.NoError(t, err)
		require.NotEmpty(t, r.Messages)
		first := kinds*passes - len(r.Messages)
		assert.Positive(t, first)
		for i, m := range r.Messages {
			require.Equal(t, message(first+i), string(m.Body))
			require.Equal(t, capture.Verified, m.State)
		}
	}
}
