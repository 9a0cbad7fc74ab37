package printing

import (
	"fmt"
	"time"
)

// Millis are milliseconds with their fraction.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// RatioText is a ratio of bytes, in percent.
func RatioText(link, http int64) string {
	if http == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(link)/float64(http))
}

// BytesText is a number of bytes with a unit that leaves three or four digits.
func BytesText(n int64) string {
	f, unit := float64(n), "bytes"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if f < 10_000 {
			break
		}
		f, unit = f/1000, next
	}
	if unit == "bytes" {
		return Count(n, "byte")
	}
	return fmt.Sprintf("%.0f %s", f, unit)
}
