//go:build soak

package udp_test

import (
	"fmt"
	"testing"
)

// As TestAnything, with the seeds behind those.
func TestSoakAnything(t *testing.T) {
	for seed := range uint64(5000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { anything(t, seed) })
		if t.Failed() {
			return
		}
	}
}
