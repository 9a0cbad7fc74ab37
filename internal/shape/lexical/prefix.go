package lexical

// firstPrefix is the prediction for the first prefix slot of a message: what most toolkits begin
// with.
const firstPrefix = "ns1"

// Generated tells prefixes that toolkits number: [A-Za-z]{1,4}[0-9]+(p[0-9]+)?
func Generated(p []byte) bool {
	i := 0
	for i < len(p) && i < 4 && IsLetter(p[i]) {
		i++
	}
	j := digits(p, i)
	if i == 0 || j == i || len(p) > MaxPrefix {
		return false
	}
	if j < len(p) && p[j] == 'p' {
		k := digits(p, j+1)
		return k > j+1 && k == len(p)
	}
	return j == len(p)
}

func IsLetter(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }

func digits(p []byte, i int) int {
	for i < len(p) && p[i] >= '0' && p[i] <= '9' {
		i++
	}
	return i
}

// AppendPredicted appends the prefix that follows last when a toolkit counts: its last run of
// digits plus one. last is generated, or empty at first.
func AppendPredicted(dst, last []byte) []byte {
	if len(last) == 0 {
		return append(dst, firstPrefix...)
	}
	from := len(last)
	for from > 0 && last[from-1] >= '0' && last[from-1] <= '9' {
		from--
	}
	dst = append(dst, last[:from]...)
	for from < len(last)-1 && last[from] == '0' {
		from++
	}
	start := len(dst)
	dst = append(dst, last[from:]...)
	for i := len(dst) - 1; i >= start; i-- {
		if dst[i] < '9' {
			dst[i]++
			return dst
		}
		dst[i] = '0'
	}
	dst = append(dst, '0')
	dst[start] = '1'
	return dst
}
