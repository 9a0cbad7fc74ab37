//go:build soak

package arq_test

import "testing"

// As TestSimulation, with the seeds after those.
func TestSoakSimulation(t *testing.T) { seeds(t, simulations, 5000) }
