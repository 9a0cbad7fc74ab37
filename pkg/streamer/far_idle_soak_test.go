//go:build soak

package streamer_test

import "testing"

// TestSoakFarWindowsOfIdleLanes: the same of 100 lanes.
func TestSoakFarWindowsOfIdleLanes(t *testing.T) { farLanes(t, 100) }
