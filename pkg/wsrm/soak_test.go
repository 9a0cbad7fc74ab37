//go:build soak

package wsrm_test

import "testing"

// As TestSimulation, with the seeds after those.
func TestSoakSimulation(t *testing.T) { seeds(t, simulations, 5000) }

// As TestProcessesAreKilled, a hundred times.
func TestSoakProcessesAreKilled(t *testing.T) { killProcesses(t, 2_000_000, 100, 100) }

// TestSoakSimulationInSOAP runs many more seeds of the SOAP form.
func TestSoakSimulationInSOAP(t *testing.T) { simulateInSOAP(t, 1_000, 2_000) }
