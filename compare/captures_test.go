package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCaptures(t *testing.T) {
	c, err := measureCaptures(t.Context(), 12e6, 1e6)
	require.NoError(t, err)
	text := textOf(t, func(r *results) { r.Captures = c })
	require.Len(t, c.First, 2)
	for _, row := range c.First {
		assert.Positive(t, row.Time)
		assert.Contains(t, text, "| "+row.Capture+" ")
	}
	require.Len(t, c.Estimates, 2)
	for _, row := range c.Estimates {
		assert.Positive(t, row.Processor)
		assert.Positive(t, row.Resident)
	}
	judged(t, captureGoals(), func(r *results) { r.Captures = c })
}
