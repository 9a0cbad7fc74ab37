//go:build !race

package arq_test

// simulations is how many seeds run.
const simulations = 250
