//go:build soak && linux && !race

package main

import "testing"

// TestSoakMemoryIsBounded: 1 GB.
func TestSoakMemoryIsBounded(t *testing.T) { bounded(t, 256) }
