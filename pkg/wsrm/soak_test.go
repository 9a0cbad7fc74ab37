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

// As TestCarriedSimulation, with the seeds behind those.
func TestSoakCarriedSimulation(t *testing.T) {
	for seed := range uint64(5000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { run(t, carriedPlan(seed)) })
		if t.Failed() {
			return
		}
	}
}

// As TestProcessesAreKilled, a hundred times.
func TestSoakProcessesAreKilled(t *testing.T) { killProcesses(t, 2_000_000, 100, 100) }
