//go:build !race

package wsrm_test

// simulations is how many seeds run.
const simulations = 500
