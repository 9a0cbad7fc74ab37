package httpmsg

import (
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
)

// Listed are the fields of a header, to be compared with others: a list of them is compared faster
// than another map.
type Listed []listedField

type listedField struct {
	name   string
	values []string
}

// List lists the fields of a header.
func List(header http.Header) (list Listed) {
	for name, values := range header {
		list = append(list, listedField{name, slices.Clone(values)})
	}
	return list
}

// Is reports whether a header has these fields, and no others.
func (l Listed) Is(header http.Header) bool {
	if len(l) != len(header) {
		return false
	}
	for i := range l {
		if values, has := header[l[i].name]; !has || !slices.Equal(values, l[i].values) {
			return false
		}
	}
	return true
}

// ReplyHeads makes heads of replies, and remembers the last one: the next one on its lane is mostly
// the same. It is known on its lane alone: how long it takes must not tell one client of another.
// nil remembers none. It is safe for concurrent use.
type ReplyHeads struct{ last atomic.Pointer[madeReply] }

type madeReply struct {
	lane   uint64
	status int
	fields Listed
	head   []byte
}

// Head is [ReplyHead] for a reply on a lane. The head is shared, and must not be changed.
func (r *ReplyHeads) Head(lane uint64, status int, header http.Header) []byte {
	if r == nil {
		return ReplyHead(status, header)
	}
	last := r.last.Load()
	if last == nil || last.lane != lane || last.status != status || !last.fields.Is(header) {
		head := ReplyHead(status, header)
		if len(head) > maxRecent {
			return head
		}
		last = &madeReply{lane, status, List(header), head}
		r.last.Store(last)
	}
	return last.head
}

// RequestHeads makes heads of requests, and remembers the last one: the next request of a program
// is mostly for the same, with the same fields. It is safe for concurrent use.
type RequestHeads struct{ last atomic.Pointer[madeRequest] }

type madeRequest struct {
	method string
	url    url.URL
	fields Listed
	head   []byte
}

// Head is [RequestHead]. The head is shared, and must not be changed.
func (r *RequestHeads) Head(req *http.Request) ([]byte, error) {
	last := r.last.Load()
	if last == nil || last.method != req.Method || last.url != *req.URL || !last.fields.Is(req.Header) {
		head, err := RequestHead(req)
		if err != nil || len(head) > maxRecent {
			return head, err
		}
		last = &madeRequest{req.Method, *req.URL, List(req.Header), head}
		r.last.Store(last)
	}
	return last.head, nil
}
