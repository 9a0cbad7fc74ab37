package soaprm

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

var durations = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^P(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?` +
		`(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?$`)
})

// parseDuration reads an xs:duration that is not negative; ok is false for what is none. A year has
// 365 days, a month 30. What is too long for a [time.Duration] is the longest one.
func parseDuration(s string) (d time.Duration, ok bool) {
	s = strings.TrimSpace(s)
	m := durations().FindStringSubmatch(s)
	if m == nil || strings.HasSuffix(s, "T") || s == "P" {
		return 0, false
	}
	const day = 24 * 60 * 60
	total := 0.0
	for i, seconds := range []float64{365 * day, 30 * day, day, 3600, 60, 1} {
		if m[i+1] != "" {
			n, err := strconv.ParseFloat(m[i+1], 64)
			if err != nil {
				return 0, false
			}
			total += n * seconds
		}
	}
	nanos := total * float64(time.Second)
	if nanos >= math.MaxInt64 {
		return math.MaxInt64, true
	}
	return time.Duration(nanos), true
}

// formatDuration writes one; 0 is PT0S, which stands for no end (1.1, section 3.4).
func formatDuration(d time.Duration) string {
	text := strconv.FormatInt(int64(d/time.Second), 10)
	if part := d % time.Second; part > 0 {
		text += strings.TrimRight(fmt.Sprintf(".%09d", part), "0")
	}
	return "PT" + text + "S"
}
