//go:build race

package arq_test

// simulations is how many seeds run: under the race detector one takes about ten times as long.
const simulations = 60
