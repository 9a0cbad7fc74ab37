package chosen

import (
	"fmt"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// Zone is how times are shown and read.
type Zone uint8

const (
	// UTC and Local are times of day.
	UTC Zone = iota
	Local
	// Relative times are those since the first message of the capture.
	Relative
)

var zones = map[string]Zone{"utc": UTC, "local": Local, "relative": Relative}

// clock is the form of a time of day.
const clock = "15:04:05.999999999"

// moment is a time that a flag names.
type moment struct {
	at    time.Time     // in full
	after time.Duration // since the first message
	day   time.Time     // the time of day, on no day
}

// parseMoment reads the value of a flag; nil: none is given.
func parseMoment(flag, text string) (*moment, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return &moment{at: at}, nil
	}
	if after, err := time.ParseDuration(text); err == nil && after >= 0 {
		return &moment{after: after}, nil
	}
	if day, err := time.Parse(clock, text); err == nil {
		return &moment{day: day}, nil
	}
	return nil, exit.Usagef("", "%s %q is no time: 2026-01-02T15:04:05Z, 15:04:05, as rows have it, or "+
		"1m30s after the first message", flag, text)
}

// in is the time of a moment in a capture that begins at a time. A time of day is that of the first
// day, in the zone of the rows.
func (m *moment) in(begin time.Time, z Zone) time.Time {
	switch {
	case !m.at.IsZero():
		return m.at
	case m.day.IsZero():
		return begin.Add(m.after)
	}
	day := begin.UTC()
	if z == Local {
		day = begin.Local()
	}
	return time.Date(day.Year(), day.Month(), day.Day(), m.day.Hour(), m.day.Minute(), m.day.Second(),
		m.day.Nanosecond(), day.Location())
}

// period is the time from --since on, up to --until.
type period struct {
	since, until *moment // nil: no bound
	begin        time.Time
}

// takes reports whether a message that came at a time is within. The first one is the beginning of
// the capture.
func (s *period) takes(at time.Time, z Zone) bool {
	if s.begin.IsZero() {
		s.begin = at
	}
	if s.since == nil && s.until == nil {
		return true
	}
	return !at.IsZero() && (s.since == nil || !at.Before(s.since.in(s.begin, z))) &&
		(s.until == nil || !at.After(s.until.in(s.begin, z)))
}

// Time is a time as rows have it; a dash for none.
func (v *Choice) Time(at time.Time) string {
	const digits = "15:04:05.000000"
	switch {
	case at.IsZero():
		return "-"
	case v.zone == Local:
		return at.Local().Format(digits)
	case v.zone == Relative:
		return fmt.Sprintf("%.6f", at.Sub(v.span.begin).Seconds())
	}
	return at.UTC().Format(digits)
}
