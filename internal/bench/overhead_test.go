package bench_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bench"
)

// The papers' costs beside the messages are measured on the link and on a wired one: with what they
// sent, and so that the order of their sizes is that of the papers.
func TestOverheads(t *testing.T) {
	header, schema := bench.Samples()
	assert.Len(t, header, 847)
	assert.Len(t, schema, 326)
	r, err := bench.Session(t.Context(), bench.SessionConfig{
		Services: []string{"concat"}, Sizes: []int{4}, Counts: []int{1, 2}, Link: "edge",
		Ways: []bench.SessionWay{bench.Explicit, bench.ExplicitQueued, bench.SOAPNew},
	})
	if err != nil {
		require.ErrorIs(t, err, bench.ErrNotTheLink) // a busy machine
	}
	var names []string
	by := map[string]bench.Overhead{}
	for _, o := range r.Overheads {
		names = append(names, o.Name+" "+o.Link)
		if o.Link == r.Link {
			by[o.Name] = o
		}
	}
	assert.Equal(t, []string{"Oa-set edge", "Oa-get edge", "Ob edge", "Oc edge", "Oa-set " + bench.Wired,
		"Oa-get " + bench.Wired, "Ob " + bench.Wired, "Oc " + bench.Wired}, names)
	assert.Greater(t, by["Oa-set"].Request, 847)
	assert.Less(t, by["Oa-set"].Request, 1580, "the papers' request")
	assert.Greater(t, by["Oa-get"].Received, int64(847))
	assert.Greater(t, by["Ob"].Request, 326)
	assert.Less(t, by["Ob"].Sent, int64(2000))
	assert.Positive(t, by["Oc"].Sent, "the shape travels with the first message")
	assert.Positive(t, by["Oc"].Compute)
	assert.Equal(t, by["Oa-set"].Millis, r.Models[0].Oa)
}
