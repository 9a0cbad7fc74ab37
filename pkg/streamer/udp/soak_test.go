//go:build soak

package udp_test

import (
	"fmt"
	"testing"
)

// As TestAnything, with the seeds behind those.
func TestSoakAnything(t *testing.T) {
	for seed := uint64(60); seed < 5060; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { anything(t, seed) })
		if t.Failed() {
			return
		}
	}
}
