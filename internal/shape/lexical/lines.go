package lexical

import "bytes"

// Lines is how base64 or hexadecimal text is broken: into lines of width characters, with an end
// between two. Width 0: not at all.
type Lines struct {
	Width int
	crlf  bool
}

func (l Lines) Form() byte {
	f := byte(l.Width / 4)
	if l.crlf {
		f |= 0x80
	}
	return f
}

func LinesOf(form byte) Lines { return Lines{Width: int(form&0x7f) * 4, crlf: form > 0x7f} }

// HexForm is the form of hexadecimal digits in lines of at most 252.
func (l Lines) HexForm(upper bool) byte {
	f := byte(l.Width / 4 << 1)
	if upper {
		f |= 1
	}
	if l.crlf {
		f |= 0x80
	}
	return f
}

func HexLinesOf(form byte) Lines { return Lines{Width: int(form>>1&0x3f) * 4, crlf: form > 0x7f} }

func (l Lines) end() string {
	if l.crlf {
		return "\r\n"
	}
	return "\n"
}

// The longest lines that have a form, in characters.
const (
	LongestLine    = 0x7f * 4 // of base64
	LongestHexLine = 0x3f * 4
)

// GuessLines looks at the beginning of a value for its first line end.
func GuessLines(b []byte, longest int) Lines {
	n := bytes.IndexByte(b[:min(len(b), longest+2)], '\n')
	if n < 1 {
		return Lines{}
	}
	l := Lines{Width: n, crlf: b[n-1] == '\r'}
	if l.crlf {
		l.Width--
	}
	if l.Width == 0 || l.Width%4 != 0 || l.Width > longest {
		return Lines{}
	}
	return l
}

// Take copies up to most characters from b to dst, without the line ends where they must stand, and
// stops at one that stands elsewhere. column is the place in the line of the next character. It
// returns how much of b it took.
func (l Lines) Take(dst, b []byte, column *int, most int) ([]byte, int) {
	at := 0
	for at < len(b) && most > 0 {
		if l.Width > 0 && *column == l.Width {
			end := l.end()
			if len(b)-at <= len(end) || string(b[at:at+len(end)]) != end {
				return dst, at // a line end with nothing behind it is not one of these
			}
			at += len(end)
			*column = 0
		}
		n := min(len(b)-at, most)
		if l.Width > 0 {
			n = min(n, l.Width-*column)
		}
		run := b[at : at+n]
		if i := bytes.IndexByte(run, '\n'); i >= 0 {
			run = run[:i]
		}
		if i := bytes.IndexByte(run, '\r'); i >= 0 {
			run = run[:i]
		}
		dst = append(dst, run...)
		at, most = at+len(run), most-len(run)
		*column += len(run)
		if len(run) < n {
			return dst, at
		}
	}
	return dst, at
}

// Put appends characters with line ends between lines.
func (l Lines) Put(dst, chars []byte, column *int) []byte {
	for len(chars) > 0 {
		if *column == l.Width {
			dst = append(dst, l.end()...)
			*column = 0
		}
		n := min(len(chars), l.Width-*column)
		dst = append(dst, chars[:n]...)
		chars = chars[n:]
		*column += n
	}
	return dst
}
