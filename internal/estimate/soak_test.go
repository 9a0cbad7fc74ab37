//go:build soak

package estimate

import "testing"

// The same with more calls, and over all links.
func TestSoakEstimateAgreesWithThePair(t *testing.T) {
	for name, s := range services(8) {
		t.Run(name, func(t *testing.T) {
			agree(t, s.capture(t), "14k4", "gprs", "edge", "3g", "lte", "geo", "wifi")
		})
	}
}
