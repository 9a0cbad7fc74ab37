package columns

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// TestMemoryOfShapesByTurns: in whatever order shapes come, what is remembered of each is found,
// and which of those alike came last, as where each is looked for in the table of all.
func TestMemoryOfShapesByTurns(t *testing.T) {
	var kinds []*code.Code
	for _, message := range []string{"<a><b>1</b><c>2</c></a>", "<a><b>1</b><d>2</d></a>", "<a><b>1</b><e>2</e></a>",
		"<x><y>text</y></x>", "<x><y>text</y><z>text</z></x>", "<none/>"} {
		s, err := learn.FromMessage([]byte(message))
		require.NoError(t, err)
		kinds = append(kinds, (*code.Code)(program.Compile(s)))
	}
	state := func(m *Memory) (all []string) {
		for _, k := range kinds {
			all = append(all, fmt.Sprint(m.Knows((*program.Program)(k)), m.latest != nil && m.latest.program == k,
				m.alike[beginning(k)] != nil && m.alike[beginning(k)].program == k))
		}
		return all
	}
	all := 0
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var quick, slow Memory
		byTurns := 0
		for range 60 {
			k := kinds[rnd.IntN(2+rnd.IntN(len(kinds)-1))]
			if quick.before != nil && quick.before.program == k {
				byTurns++
			}
			slow.before = nil
			of := quick.of(k)
			require.Equal(t, k, of.program)
			require.Same(t, of, quick.of(k))
			slow.of(k)
			require.Equal(t, state(&slow), state(&quick))
			require.Equal(t, slow.weight, quick.weight)
		}
		all += byTurns
		quick.Reset()
		require.Equal(t, Memory{}, quick)
	}
	assert.Greater(t, all, 100)
}
