package memory

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Sessions of one server have contexts that differ in their identity and time alone, and there may
// be very many. So a value is kept as how it differs from an earlier one of its length.

const (
	// likeValues is how many values are kept that further ones may be like.
	likeValues = 8
	// minAlike and maxAlike are the lengths of values that are compared.
	minAlike, maxAlike = 128, 16 << 10
	// alikeShare is what part of a value its differences may take at most. It bounds what values
	// take that are kept for others alone, beside those that count: their share again.
	alikeShare = 4
	// sameRun is how many equal bytes end a difference.
	sameRun = 3
)

// keptValue is a value: another one with differences, where there is another one.
type keptValue struct {
	like *[]byte // never changed
	diff string  // as differences gives it
}

func (v keptValue) len() int { return len(*v.like) }

// bytes is the value; it belongs to the caller.
func (v keptValue) bytes() []byte {
	b := slices.Clone(*v.like)
	at := 0
	for d := v.diff; d != ""; {
		var same, n uint64
		same, d = uvarint(d)
		n, d = uvarint(d)
		at += int(same)
		at += copy(b[at:], d[:n])
		d = d[n:]
	}
	return b
}

func uvarint(s string) (n uint64, rest string) {
	for i := 0; ; i++ {
		n |= uint64(s[i]&0x7F) << (7 * i)
		if s[i] < 0x80 {
			return n, s[i+1:]
		}
	}
}

// differences appends where value is not as like, which has its length: for each place, how many
// bytes are the same before it, how many are not, and those. ok: they are at most a share of it.
func differences(dst []byte, like, value []byte) (diff []byte, ok bool) {
	most := len(dst) + len(value)/alikeShare
	done := 0
	for at := 0; at < len(value); at++ {
		if value[at] == like[at] {
			continue
		}
		end := at + 1 // behind the last byte that differs
		for i := end; i < len(value) && i-end < sameRun; i++ {
			if value[i] != like[i] {
				end = i + 1
			}
		}
		dst = binary.AppendUvarint(dst, uint64(at-done))
		dst = binary.AppendUvarint(dst, uint64(end-at))
		dst = append(dst, value[at:end]...)
		if len(dst) > most {
			return dst, false
		}
		done, at = end, end-1
	}
	return dst, true
}

// likes are values that others may be like, those that were of use last first.
type likes [likeValues]*[]byte

// keep makes an entry's URI and value of copies of both.
func (l *likes) keep(uri string, value []byte) (own string, kept keptValue) {
	if len(value) < minAlike || len(value) > maxAlike {
		whole := slices.Clone(value)
		return strings.Clone(uri), keptValue{like: &whole}
	}
	var room [512]byte
	for i, like := range l {
		if like == nil || len(*like) != len(value) {
			continue
		}
		if both, ok := differences(append(room[:0], uri...), *like, value); ok {
			l.first(i, like)
			all := string(both) // one object in place of two
			return all[:len(uri)], keptValue{like, all[len(uri):]}
		}
	}
	whole := slices.Clone(value)
	l.first(len(l)-1, &whole)
	return strings.Clone(uri), keptValue{like: &whole}
}

// first puts a value first, in place of the one at i, which goes.
func (l *likes) first(i int, value *[]byte) {
	copy(l[1:i+1], l[:i])
	l[0] = value
}
