package service

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestGarbageBesideWhatIsUsed: as much as is used while that is little, then 16 MB, then a quarter.
func TestGarbageBesideWhatIsUsed(t *testing.T) {
	for live, percent := range map[uint64]int{
		0: 100, 16 << 20: 100, 20 << 20: 80, 32 << 20: 50, 64 << 20: 25, 1 << 30: 25, 1 << 50: 25,
	} {
		assert.Equal(t, percent, garbageBeside(live), live)
	}
}
