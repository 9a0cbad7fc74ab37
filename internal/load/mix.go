package load

import (
	"fmt"
	"strconv"
	"strings"
)

// RequestKind is a kind of request.
type RequestKind string

// The kinds. Invalid requests are to be answered by a fault; odd ones are valid, and unusual.
const (
	Valid   RequestKind = "valid"
	Invalid RequestKind = "invalid"
	Odd     RequestKind = "odd"
)

// Mix has the weight of each kind; nil: valid requests only.
type Mix map[RequestKind]int

// ParseMix reads valid=90,invalid=5,odd=5.
func ParseMix(text string) (Mix, error) {
	m, all := Mix{}, 0
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		_, twice := m[RequestKind(name)]
		switch k := RequestKind(name); {
		case k != Valid && k != Invalid && k != Odd, twice:
			return nil, fmt.Errorf("%.40q: each of valid, invalid and odd once, as in valid=90,invalid=5,odd=5", part)
		case err != nil || n < 0 || n > pool:
			return nil, fmt.Errorf("%.40q: a weight from 0 to %d", part, pool)
		}
		m[RequestKind(name)] = n
		all += n
	}
	if all == 0 {
		return nil, fmt.Errorf("%.40q: nothing to send", text)
	}
	return m, nil
}

// String is what [ParseMix] reads.
func (m Mix) String() string {
	var list []string
	for _, k := range []RequestKind{Valid, Invalid, Odd} {
		if n, ok := m[k]; ok {
			list = append(list, fmt.Sprintf("%s=%d", k, n))
		}
	}
	return strings.Join(list, ",")
}

// kinds are those of the requests of a run, as many as its pool has; each kind with a weight at
// least once.
func (m Mix) kinds() (list []RequestKind) {
	all := m[Valid] + m[Invalid] + m[Odd]
	for _, k := range []RequestKind{Invalid, Odd} {
		if m[k] == 0 {
			continue
		}
		for range max(1, pool*m[k]/all) {
			list = append(list, k)
		}
	}
	for all == 0 || m[Valid] > 0 {
		if len(list) >= pool {
			return list
		}
		list = append(list, Valid)
	}
	return list
}
