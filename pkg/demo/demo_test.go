package demo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/demo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTour is the main job, with nothing but this repository: SOAP in, binary stream, SOAP out, byte for byte.
func TestTour(t *testing.T) {
	messages, err := demo.Builtin()
	require.NoError(t, err)
	heard := 0
	r, err := demo.Run(t.Context(), messages, func(demo.Row) { heard++ })
	require.NoError(t, err)
	assert.True(t, r.Same())
	assert.Equal(t, len(messages), heard)
	require.Len(t, r.Rows, len(messages))
	for _, row := range r.Rows {
		assert.Positive(t, row.Shapes, row.Name)
		assert.Less(t, row.Next, row.SOAP/2, row.Name)
		assert.Greater(t, row.Ratio(), 2.0, row.Name)
	}
}

func TestTourOfAnythingElse(t *testing.T) {
	r, err := demo.Run(t.Context(), []demo.Message{{Name: "empty"}, {Name: "text", Body: []byte("no XML")}, {Name: "broken", Body: []byte("<a><b></a>")}}, nil)
	require.NoError(t, err)
	assert.True(t, r.Same())
}
