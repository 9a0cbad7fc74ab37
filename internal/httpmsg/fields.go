package httpmsg

import (
	"net/http"

	"github.com/hhfr/hhfr/internal/http1"
)

// fields are the fields of a head as net/http has them. They are shared by all messages with that
// head; each gets a header of its own.
type fields struct {
	names  []string // canonical
	ends   []int    // where the values of each name end
	values []string // of one name after the other
}

// fieldsOf returns the fields of a head, except those that are to be left out.
func fieldsOf(head *http1.Head, leaveOut func(http1.FieldLine) bool) *fields {
	header := http.Header{}
	for _, f := range head.Fields() {
		if leaveOut == nil || !leaveOut(f) {
			header.Add(string(f.Name), string(f.Unfolded()))
		}
	}
	f := &fields{}
	for name, values := range header {
		f.values = append(f.values, values...)
		f.names, f.ends = append(f.names, name), append(f.ends, len(f.values))
	}
	return f
}

// header returns the fields as a header that belongs to the caller. values is memory of his for
// the values, used if it has room for them.
func (f *fields) header(values []string) http.Header {
	if cap(values) < len(f.values) {
		values = make([]string, 0, len(f.values))
	}
	values = append(values, f.values...)
	header, from := make(http.Header, len(f.names)), 0
	for i, name := range f.names {
		header[name] = values[from:f.ends[i]:f.ends[i]] // appending to one does not reach the next
		from = f.ends[i]
	}
	return header
}
