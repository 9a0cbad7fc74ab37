package columns

// counted finds the last run of digits in a text, its last [maxCounted] digits at most: where it
// begins and ends, and the number they are.
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

// countStep reports whether b is before with another number in the place of its last one, and how
// far that is from it.
func countStep(b, before []byte) (step int64, ok bool) {
	if len(b) != len(before) {
		return 0, false
	}
	end := len(b) // behind the last byte that differs
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
