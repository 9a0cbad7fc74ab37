package spool

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (s *Spool) fileSize(t *testing.T) int64 {
	if s.file == nil {
		return 0
	}
	info, err := s.file.Stat()
	require.NoError(t, err)
	return info.Size()
}

// The file is as long as what is held at once, however much comes and goes while something is held
// all the time, and is cut off when that is less.
func TestTheFileFollowsWhatIsHeld(t *testing.T) {
	const body, atOnce = 2 << 20, 6
	for _, bodies := range []int{30, 300} {
		t.Run(fmt.Sprint(bodies), func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			var s Spool
			rnd := rand.New(rand.NewPCG(3, 4))
			var held []*Spooled
			piece := make([]byte, body/64)
			for i := range bodies {
				b := s.Body()
				held = append(held, b)
				other := held[rnd.IntN(len(held))]
				for range 64 {
					_, err := b.Write(piece)
					require.NoError(t, err)
				}
				_, err := other.Write(piece[:rnd.IntN(len(piece))])
				require.NoError(t, err)
				if len(held) == atOnce {
					out := rnd.IntN(atOnce)
					held[out].Free()
					held = append(held[:out], held[out+1:]...)
				}
				require.LessOrEqual(t, s.fileSize(t), int64(atOnce+1)*(body+body/2), "after %d", i)
			}
			for i, b := range held {
				b.Free()
				if i == len(held)-2 {
					assert.LessOrEqual(t, s.fileSize(t), int64((atOnce+1)*body))
				}
			}
			assert.LessOrEqual(t, s.fileSize(t), int64(enough*block), "nothing is held")
			assert.Empty(t, s.blocks.used)
			require.NoError(t, s.Close())
		})
	}
}

// What a block held before is not what is read from it later.
func TestBlocksAreUsedAgain(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var s Spool
	rnd := rand.New(rand.NewPCG(5, 6))
	type one struct {
		*Spooled
		want []byte
	}
	var held []one
	for range 400 {
		switch n := rnd.IntN(4); {
		case n == 0 && len(held) > 0:
			out := rnd.IntN(len(held))
			held[out].Free()
			held = append(held[:out], held[out+1:]...)
		case n == 1 || len(held) == 0:
			held = append(held, one{s.Body(), nil})
			fallthrough
		default:
			b := &held[rnd.IntN(len(held))]
			piece := bytes.Repeat([]byte{byte(rnd.Uint32())}, rnd.IntN(400<<10))
			_, err := b.Write(piece)
			require.NoError(t, err)
			b.want = append(b.want, piece...)
		}
		if len(held) == 0 {
			continue
		}
		b := held[rnd.IntN(len(held))]
		got, err := io.ReadAll(b.Reader())
		require.NoError(t, err)
		require.True(t, bytes.Equal(b.want, got))
	}
	assert.Positive(t, s.fileSize(t), "the test shows nothing")
	require.NoError(t, s.Close())
}
