package shape

// maxCounted bounds the digits of a number within a text that is counted on.
const maxCounted = 18

// maxStep bounds the step from one such number to the next.
const maxStep = 1e18

// counted finds the last run of digits in a text, its last [maxCounted] digits at most: where it begins and ends, and the number they are.
func counted(b []byte) (from, to int, number int64) {
	for to = len(b); to > 0 && !digit(b[to-1]); to-- {
	}
	for from = to; from > 0 && to-from < maxCounted && digit(b[from-1]); from-- {
	}
	for _, c := range b[from:to] {
		number = 10*number + int64(c-'0')
	}
	return from, to, number
}

// countStep tells whether b is before with another number in the place of its last one, and how far that is from it.
func countStep(b, before []byte) (step int64, ok bool) {
	if len(b) != len(before) {
		return 0, false
	}
	end := len(b) // behind the last octet that differs
	for end > 0 && b[end-1] == before[end-1] {
		end--
	}
	if end > 0 && (!digit(b[end-1]) || !digit(before[end-1])) {
		return 0, false
	}
	from, to, was := counted(before)
	if from == to || string(b[:from]) != string(before[:from]) || string(b[to:]) != string(before[to:]) {
		return 0, false
	}
	is := int64(0)
	for _, c := range b[from:to] {
		if !digit(c) {
			return 0, false
		}
		is = 10*is + int64(c-'0')
	}
	return is - was, true
}

func digit(c byte) bool { return c-'0' <= 9 }

// countOn gives the text whose last number is a step from that of before.
func (u *Unpacker) countOn(before []byte, step int64) []byte {
	from, to, number := counted(before)
	if from == to || !u.reserve(uint64(len(before))) {
		u.r.fail("text without a number to count on")
		return nil
	}
	at := len(u.arena)
	u.arena = append(u.arena, before...)
	b := u.arena[at:]
	if number += step; number < 0 || step > maxStep {
		u.r.fail("number of a text that is out of range")
		return nil
	}
	for i := to - 1; i >= from; i-- {
		b[i] = '0' + byte(number%10)
		number /= 10
	}
	if number > 0 {
		u.r.fail("number of a text that is out of range")
		return nil
	}
	return b
}
