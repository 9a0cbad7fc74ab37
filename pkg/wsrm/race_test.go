//go:build race

package wsrm_test

// Under the race detector a simulation takes about ten times as long: half of the seeds do.
const simulations, carriedSimulations = 500, 250
