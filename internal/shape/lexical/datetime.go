package lexical

import (
	"encoding/binary"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
)

// DateTime is a date and time as it is written: units of 10^-digits seconds of the written clock
// since 2000-01-01T00:00:00, and the zone behind them.
type DateTime struct {
	Units  int64
	digits uint8
	Zone   zone
	Offset int64 // minutes, for ZoneOffset
}

type zone uint8

const (
	zoneNone   zone = iota
	zoneZ           // Z
	ZoneOffset      // +hh:mm or -hh:mm
	zones
)

const (
	maxDateTimeDigits = 9
	shortestDateTime  = len("2000-01-01T00:00:00")
	longestDateTime   = shortestDateTime + len(".000000000+00:00")
	// DateTimeForms is one more than the largest form byte (wire-format section 10.2).
	DateTimeForms = 1 + (maxDateTimeDigits+1)*int(zones)
	secondsPerDay = 86400
	// firstDay and lastDay are 0001-01-01 and 9999-12-31, in days since 2000-01-01.
	firstDay, lastDay = -730119, 2921939
)

var scales = [maxDateTimeDigits + 1]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// two reads two decimal digits; it gives 100 or more if they are none.
func two(b []byte) int64 {
	t, u := b[0]-'0', b[1]-'0'
	if t > 9 || u > 9 {
		return 1 << 16
	}
	return int64(t)*10 + int64(u)
}

// ParseDateTime reads `YYYY-MM-DDThh:mm:ss`, a point and up to nine digits, and Z, +hh:mm or
// -hh:mm, if they are there; only what append writes again as it is.
func ParseDateTime(b []byte) (in DateTime, ok bool) {
	if len(b) < shortestDateTime || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return in, false
	}
	hour, minute, second := two(b[11:]), two(b[14:]), two(b[17:])
	day, ok := dayOf(two(b)*100+two(b[2:]), two(b[5:]), two(b[8:]))
	if !ok || hour > 23 || minute > 59 || second > 59 {
		return in, false
	}
	in.Units = day*secondsPerDay + hour*3600 + minute*60 + second
	rest := b[shortestDateTime:]
	if len(rest) > 0 && rest[0] == '.' {
		n := digits(rest, 1) - 1
		if n < 1 || n > maxDateTimeDigits {
			return in, false
		}
		for _, c := range rest[1 : 1+n] {
			if in.Units > 9e17 || in.Units < -9e17 {
				return in, false
			}
			in.Units = in.Units*10 + int64(c-'0')
		}
		in.digits = uint8(n)
		rest = rest[1+n:]
	}
	switch {
	case len(rest) == 0:
	case len(rest) == 1 && rest[0] == 'Z':
		in.Zone = zoneZ
	case len(rest) == 6 && (rest[0] == '+' || rest[0] == '-') && rest[3] == ':':
		h, m := two(rest[1:]), two(rest[4:])
		if m > 59 || h > 23 || rest[0] == '-' && h+m == 0 {
			return in, false
		}
		if in.Zone, in.Offset = ZoneOffset, h*60+m; rest[0] == '-' {
			in.Offset = -in.Offset
		}
	default:
		return in, false
	}
	return in, true
}

// Form is the byte that tells digits and zone.
func (in DateTime) Form() byte { return 1 + in.digits + (maxDateTimeDigits+1)*byte(in.Zone) }

// DateTimeOf is the inverse of form.
func DateTimeOf(form byte) DateTime {
	return DateTime{digits: (form - 1) % (maxDateTimeDigits + 1), Zone: zone((form - 1) / (maxDateTimeDigits + 1))}
}

// Append writes the instant's text. ok is false for a time out of range, or such a zone.
func (in DateTime) Append(dst []byte) (text []byte, ok bool) {
	seconds, fraction := in.Units, int64(0)
	if in.digits > 0 {
		if in.digits == 3 { // by far the most, and a constant divides faster
			seconds = floorDiv(in.Units, 1000)
		} else {
			seconds = floorDiv(in.Units, scales[in.digits])
		}
		fraction = in.Units - seconds*scales[in.digits]
	}
	day := floorDiv(seconds, secondsPerDay)
	if day < firstDay || day > lastDay || in.Offset <= -24*60 || in.Offset >= 24*60 {
		return dst, false
	}
	s := seconds - day*secondsPerDay
	year, month, dom := dateOf(day)
	le := binary.LittleEndian
	date := digitWord(uint64(year*10000+month*100+dom)) + '0'*bin.Ones
	clock := digitWord(uint64(s/3600*10000+s/60%60*100+s%60)) + '0'*bin.Ones
	at := len(dst)
	dst = slices.Grow(dst, longestDateTime)
	text = dst[at : at+longestDateTime]
	text[4], text[7], text[10], text[13], text[16], text[shortestDateTime] = '-', '-', 'T', ':', ':', '.'
	le.PutUint32(text[0:], uint32(date))
	le.PutUint16(text[5:], uint16(date>>32))
	le.PutUint16(text[8:], uint16(date>>48))
	le.PutUint16(text[11:], uint16(clock>>16))
	le.PutUint16(text[14:], uint16(clock>>32))
	le.PutUint16(text[17:], uint16(clock>>48))
	n := shortestDateTime
	if d := int(in.digits); d > 0 {
		n++
		high := fraction / 1e8 // the first of nine digits
		if d == maxDateTimeDigits {
			text[n] = byte(high) + '0'
			n, d = n+1, d-1
		}
		le.PutUint64(text[n:], (digitWord(uint64(fraction-high*1e8))+'0'*bin.Ones)>>uint(8*(8-d)))
		n += d
	}
	switch in.Zone {
	case zoneZ:
		text[n] = 'Z'
		n++
	case ZoneOffset:
		sign, o := byte('+'), in.Offset
		if o < 0 {
			sign, o = '-', -o
		}
		zone := digitWord(uint64(o/60*100+o%60)) + '0'*bin.Ones
		text[n], text[n+3] = sign, ':'
		le.PutUint16(text[n+1:], uint16(zone>>32))
		le.PutUint16(text[n+4:], uint16(zone>>48))
		n += 6
	}
	return dst[:at+n], true
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a-q*b < 0 {
		q--
	}
	return q
}

// daysBefore are the days of a common year before each month, counted from March; lengths are those
// of the months, February in leap years.
var (
	daysBefore = [...]int64{0, 31, 61, 92, 122, 153, 184, 214, 245, 275, 306, 337}
	lengths    = [...]int64{31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 31, 29}
)

// dayOf counts days since 2000-01-01 in the Gregorian calendar.
func dayOf(year, month, dom int64) (day int64, ok bool) {
	if year < 1 || year > 9999 || month < 1 || month > 12 || dom < 1 {
		return 0, false
	}
	y, m := year, month-3
	if m < 0 {
		y, m = y-1, m+12
	}
	if dom > lengths[m] || dom == 29 && month == 2 && (year%4 != 0 || year%100 == 0 && year%400 != 0) {
		return 0, false
	}
	const marchFirstOf2000 = 730485 // days from 0000-03-01 to 2000-03-01
	return y*365 + y/4 - y/100 + y/400 + daysBefore[m] + dom - 1 - marchFirstOf2000 + 60, true
}

// dateOf is the inverse of dayOf, for days from firstDay to lastDay. It counts in quarters of days,
// so that centuries and years have whole lengths, and divides years of a century and months by
// multiplication (C. Neri, L. Schneider, Euclidean affine functions and their application to
// calendar algorithms, 2022).
func dateOf(day int64) (year, month, dom int64) {
	const perEra, reciprocal = 146097, 2939745 // days in 400 years; 2^32 over the quarters of a year, rounded up
	n := uint32(day-60+730485)*4 + 3           // quarters since 0000-03-01
	century, quarters := n/perEra, n%perEra|3
	p := uint64(quarters) * reciprocal
	ofYear := uint32(p) / reciprocal / 4
	m := 2141*ofYear + 197913
	year, month, dom = int64(100*century)+int64(p>>32), int64(m>>16), int64(m&0xffff/2141)+1
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, dom
}
