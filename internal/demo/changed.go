package demo

import (
	"hash/fnv"
	"math/rand/v2"
	"regexp"
)

// What differs from one message of a kind to the next, each as long as before: minutes and seconds
// of times, UUIDs, numbers, and the ends of long identifiers in base64.
var (
	times       = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:[0-5]\d:[0-5]\d(\.\d+)?`)
	uuids       = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	numbers     = regexp.MustCompile(`>-?\d+(\.\d+)?<`)
	identifiers = regexp.MustCompile(`[">][A-Za-z]*\d[A-Za-z0-9+/]{23,}=*["<]`)
)

// changed returns a message as the next one of its kind would be: alike, with other values. It is
// the same for each call.
func changed(m TourMessage) TourMessage {
	seed := fnv.New64a()
	seed.Write(m.Body)
	r := rand.New(rand.NewPCG(seed.Sum64(), 1))
	other := func(digits string) func([]byte, int) {
		return func(text []byte, from int) {
			for i := from; i < len(text); i++ {
				if isDigit(text[i]) || 'a' <= text[i] && text[i] <= 'f' && len(digits) > 10 {
					text[i] = digits[r.IntN(len(digits))]
				}
			}
		}
	}
	decimal, hexadecimal := other("0123456789"), other("0123456789abcdef")
	body := times.ReplaceAllFunc(m.Body, func(found []byte) []byte {
		const minutes, seconds, fraction = len("2026-01-02T15:"), len("2026-01-02T15:04:"), len("2026-01-02T15:04:05")
		text := append([]byte(nil), found...)
		text[minutes], text[seconds] = byte('0'+r.IntN(6)), byte('0'+r.IntN(6))
		text[minutes+1], text[seconds+1] = byte('0'+r.IntN(10)), byte('0'+r.IntN(10))
		decimal(text, fraction)
		return text
	})
	body = uuids.ReplaceAllFunc(body, func(found []byte) []byte {
		text := append([]byte(nil), found...)
		hexadecimal(text, 0)
		return text
	})
	body = numbers.ReplaceAllFunc(body, func(found []byte) []byte {
		text := append([]byte(nil), found...)
		first := 1
		for !isDigit(text[first]) {
			first++
		}
		decimal(text, first+1) // the first one stays: what is 1 may be true
		return text
	})
	body = identifiers.ReplaceAllFunc(body, func(found []byte) []byte {
		text := append([]byte(nil), found...)
		decimal(text, len(text)/2)
		return text
	})
	return TourMessage{Name: m.Name, Body: body}
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
