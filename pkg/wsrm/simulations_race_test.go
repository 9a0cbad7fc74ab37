//go:build race

package wsrm_test

// simulations is how many seeds run: under the race detector one takes about ten times as long.
const simulations = 250
