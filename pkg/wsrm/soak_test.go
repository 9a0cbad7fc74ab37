//go:build soak

package wsrm_test

import (
	"fmt"
	"testing"
)

// As TestSimulation, with the seeds behind those.
func TestSoakSimulation(t *testing.T) {
	for seed := range uint64(5000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { simulate(t, seed) })
		if t.Failed() {
			return
		}
	}
}
