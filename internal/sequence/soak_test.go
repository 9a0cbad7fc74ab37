//go:build soak

package sequence_test

import (
	"fmt"
	"testing"
)

// As TestAnyLinkAndCrashes, with its seeds and many more.
func TestSoakAnyLinkAndCrashes(t *testing.T) {
	for seed := range uint64(1000) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { anyLinkAndCrashes(t, seed) })
		if t.Failed() {
			return
		}
	}
}

// As TestLongMessagesOverAnyLink, with its seeds and many more.
func TestSoakLongMessagesOverAnyLink(t *testing.T) {
	for seed := range uint64(500) {
		longOverAnyLink(t, seed)
	}
}
