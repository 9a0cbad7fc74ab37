package xsd

import (
	"cmp"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// order compares two values of an atomic type; false: it is not known which is less, as of times
// with and without a zone.
func (s *Simple) order(a, b string) (c int, known bool) {
	if s.Variety != Atomic || len(a) > maxDigits || len(b) > maxDigits {
		return 0, false
	}
	switch of := primitive(s.Builtin); of {
	case "decimal":
		x, okA := new(big.Rat).SetString(strings.TrimPrefix(a, "+"))
		y, okB := new(big.Rat).SetString(strings.TrimPrefix(b, "+"))
		if !okA || !okB {
			return 0, false
		}
		return x.Cmp(y), true
	case "float", "double":
		x, errA := strconv.ParseFloat(a, 64)
		y, errB := strconv.ParseFloat(b, 64)
		return cmp.Compare(x, y), errA == nil && errB == nil && !math.IsNaN(x) && !math.IsNaN(y)
	case "duration":
		return orderDurations(a, b)
	default:
		return orderTimes(of, a, b)
	}
}

// momentForms say how dates and times become moments: what stands before and behind them, and how
// many of their first characters do not count.
var momentForms = map[string]struct {
	before, behind string
	skip           int
}{
	"dateTime": {"", "", 0}, "date": {"", "T00:00:00", 0}, "time": {"2000-01-01T", "", 0},
	"gYearMonth": {"", "-01T00:00:00", 0}, "gYear": {"", "-01-01T00:00:00", 0}, "gMonthDay": {"2000", "T00:00:00", 1},
	"gMonth": {"2000", "-01T00:00:00", 1}, "gDay": {"2000-01", "T00:00:00", 2},
}

// moment splits a date or time into what it is and its zone, which a date in months has not.
var moment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(.*?)(Z|[+-][0-9]{2}:[0-9]{2})?$`)
})

// orderTimes compares dates and times with years of four digits, both with a zone or both without.
func orderTimes(of, a, b string) (c int, known bool) {
	form, ok := momentForms[of]
	if !ok || len(a) < form.skip || len(b) < form.skip {
		return 0, false
	}
	parse := func(v string) (t time.Time, zoned, ok bool) {
		parts := moment().FindStringSubmatch(v[form.skip:])
		if parts == nil {
			return t, false, false
		}
		layout := "2006-01-02T15:04:05"
		if parts[2] != "" {
			layout = time.RFC3339
		}
		t, err := time.Parse(layout, form.before+parts[1]+form.behind+parts[2])
		return t, parts[2] != "", err == nil
	}
	x, zonedA, okA := parse(a)
	y, zonedB, okB := parse(b)
	return x.Compare(y), okA && okB && zonedA == zonedB
}

// durationParts are years, months, days, hours, minutes and seconds.
var durationParts = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^(-?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)
})

// orderDurations compares durations: those for which it matters how long a month is are in no
// order.
func orderDurations(a, b string) (c int, known bool) {
	months, seconds, okA := inMonths(a)
	otherMonths, otherSeconds, okB := inMonths(b)
	if !okA || !okB {
		return 0, false
	}
	const shortest, longest = 28 * 86400, 31 * 86400
	least := cmp.Compare((months-otherMonths)*shortest, otherSeconds-seconds)
	most := cmp.Compare((months-otherMonths)*longest, otherSeconds-seconds)
	return least, least == most
}

func inMonths(text string) (months, seconds float64, ok bool) {
	parts := durationParts().FindStringSubmatch(text)
	if parts == nil {
		return 0, 0, false
	}
	var n [6]float64
	for i := range n {
		n[i], _ = strconv.ParseFloat(parts[i+2], 64) // none is 0
	}
	months, seconds = n[0]*12+n[1], n[2]*86400+n[3]*3600+n[4]*60+n[5]
	if parts[1] != "" {
		months, seconds = -months, -seconds
	}
	return months, seconds, true
}

// maxDigits bounds the numbers that are compared exactly.
const maxDigits = 400
