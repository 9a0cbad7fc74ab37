package papers_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/papers"
)

// All tables are there, by their sums, and runs took two minutes.
func TestPapers(t *testing.T) {
	sums := map[string]float64{}
	for _, s := range papers.Sessions() {
		sums[fmt.Sprint(s.Service, s.HHFR)] += s.Millis
	}
	assert.Equal(t, map[string]float64{
		"concattrue": 148000, "concatfalse": 269580, "sumtrue": 126100, "sumfalse": 1259550,
	}, sums)
	require.Len(t, papers.PhoneLoads(), 27)
	for _, p := range papers.PhoneLoads() {
		assert.InEpsilon(t, float64(p.Successful)/120, p.PerSecond, 0.2, "%+v", p)
		assert.LessOrEqual(t, p.Successful, p.Responses, "%+v", p)
	}
}
