//go:build soak

package wsrm_test

import "testing"

// As TestSimulation, with the seeds behind those.
func TestSoakSimulation(t *testing.T) {
	seeds(t, simulations, 5000, simulate)
}

// As TestCarriedSimulation, with the seeds behind those.
func TestSoakCarriedSimulation(t *testing.T) {
	seeds(t, carriedSimulations, 5000, simulateCarried)
}

// As TestProcessesAreKilled, a hundred times.
func TestSoakProcessesAreKilled(t *testing.T) { killProcesses(t, 2_000_000, 100, 100) }
