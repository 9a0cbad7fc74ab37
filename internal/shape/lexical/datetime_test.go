package lexical

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDateTimes(t *testing.T) {
	for _, text := range []string{"2006-06-11T04:26:40.318Z", "2000-01-01T00:00:00",
		"1999-12-31T23:59:59.999999999+05:30", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
		"2024-02-29T12:00:00-08:00", "1900-03-01T00:00:00.0Z", "1999-01-01T00:00:00.5",
		"2011-01-01T00:00:00+00:00"} {
		in, ok := ParseDateTime([]byte(text))
		require.True(t, ok, text)
		again, ok := in.Append(nil)
		assert.True(t, ok, text)
		assert.Equal(t, text, string(again))
		form := DateTimeOf(in.Form())
		assert.Equal(t, in.digits, form.digits)
		assert.Equal(t, in.Zone, form.Zone)
	}
	for _, text := range []string{"", "2006-06-11", "2006-06-11 04:26:40", "2023-02-29T00:00:00Z",
		"1900-02-29T00:00:00Z", "2006-13-11T04:26:40Z", "2006-06-11T24:00:00Z", "2006-06-11T04:26:60Z",
		"2006-06-11T04:26:40.Z", "2006-06-11T04:26:40.0000000001Z",
		"2006-06-11T04:26:40-00:00", "2006-06-11T04:26:40z", "2006-06-11T04:26:40+5:30", "0000-01-01T00:00:00Z",
		"2006-06-11T04:26:40+05:30x", "2006-06-1xT04:26:40"} {
		_, ok := ParseDateTime([]byte(text))
		assert.False(t, ok, text)
	}
}

func TestDaysAgreeWithTime(t *testing.T) {
	epoch := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := int64(firstDay); day <= lastDay; day++ {
		y, m, d := dateOf(day)
		if back, ok := dayOf(y, m, d); !ok || back != day {
			require.Equal(t, day, back, "%d-%d-%d", y, m, d)
		}
		if day%13 > 0 {
			continue
		}
		want := epoch.AddDate(0, 0, int(day))
		require.Equal(t, []int{want.Year(), int(want.Month()), want.Day()}, []int{int(y), int(m), int(d)}, "day %d",
			day)
	}
}
