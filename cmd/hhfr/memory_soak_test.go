//go:build soak && linux && !race

package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSoakMemoryIsBounded: 1 GB.
func TestSoakMemoryIsBounded(t *testing.T) { bounded(t, 256) }

// TestSoakNobodyReads: 100 clients, or servers, that read nothing take 128 MB of either half.
func TestSoakNobodyReads(t *testing.T) {
	bodies := slices.Collect(maps.Values(longBodies()))
	for name, upward := range map[string]bool{"replies": false, "requests": true} {
		t.Run(name, func(t *testing.T) {
			chunked := func(client int) bool { return client/len(bodies)%2 == 1 }
			near, far := (&stalled{t: t, bodies: bodies, chunked: chunked, clients: 100, upward: upward}).run()
			assert.Less(t, max(near, far), int64(128<<10))
		})
	}
}
