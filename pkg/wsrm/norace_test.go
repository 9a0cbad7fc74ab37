//go:build !race

package wsrm_test

// How many seeds the simulations run.
const simulations, carriedSimulations = 1000, 500
