package learn

import (
	"bytes"

	"github.com/hhfr/hhfr/internal/shape"
)

// FromHead makes a shape of an HTTP head: names, colons, white space and line ends are markup,
// values are content (design: Authorization and its like never enter a shape). Bytes that are no
// head give an [shape.Error], code Unlearnable.
func FromHead(head []byte) (*shape.Shape, error) {
	end := bytes.IndexByte(head, '\n')
	if end < 0 {
		return nil, &shape.Error{Code: shape.Unlearnable, What: "a head without a line"}
	}
	root := &shape.Node{Kind: shape.Sequence}
	add := func(text []byte) { root.Kids = append(root.Kids, &shape.Node{Kind: shape.Text, Text: string(text)}) }
	value := func(t shape.Type, until shape.Until) {
		root.Kids = append(root.Kids, &shape.Node{Kind: shape.Value, Type: t, Until: until})
	}
	first, second, _ := bytes.Cut(head[:end], []byte{' '})
	if bytes.HasPrefix(first, []byte("HTTP/")) {
		add(append(first[:len(first):len(first)], ' '))
		value(shape.TypeText, shape.UntilLine)
	} else {
		target, version, ok := bytes.Cut(second, []byte{' '})
		if !ok || bytes.ContainsAny(target, "\t\r") {
			return nil, &shape.Error{Code: shape.Unlearnable, What: "a start line of another kind"}
		}
		add(append(first[:len(first):len(first)], ' '))
		value(shape.TypeText, shape.UntilSpace)
		add(append([]byte{' '}, bytes.TrimSuffix(version, []byte{'\r'})...))
	}
	for at := end; ; {
		from := at
		if at > 0 && head[at-1] == '\r' {
			from--
		}
		add(head[from : at+1])
		rest := head[at+1:]
		if len(rest) == 0 {
			return shape.New(root)
		}
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			return nil, &shape.Error{Code: shape.Unlearnable, At: int64(at + 1), What: "a line without an end"}
		}
		line := bytes.TrimSuffix(rest[:n], []byte{'\r'})
		if colon := bytes.IndexByte(line, ':'); colon > 0 && !bytes.ContainsAny(line[:colon], " \t") {
			colon++
			for colon < len(line) && line[colon] == ' ' {
				colon++
			}
			add(line[:colon])
			value(typeOf(line[colon:]), shape.UntilLine)
		} else if len(line) > 0 {
			value(shape.TypeText, shape.UntilLine)
		}
		at += 1 + n
	}
}
