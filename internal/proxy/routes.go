package proxy

import (
	"bytes"
	"cmp"
	"net"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
)

// routes are those of one listener.
type routes struct {
	hosts map[string][]pathRoute // by host; "": any. The longest path comes first
	// rest takes what is no HTTP, and what no other route takes; nil: nothing does.
	rest *upstream
	// all takes everything: there is no other route, and no need to look at requests.
	all *upstream
}

// pathRoute is where requests for a path, and for those below it, go.
type pathRoute struct {
	path string
	to   *upstream
}

// add adds a route; false: there is one for the same requests.
func (r *routes) add(host, path string, to *upstream) bool {
	host, path = strings.ToLower(host), strings.TrimSuffix(path, "/")
	list := r.hosts[host]
	if slices.ContainsFunc(list, func(one pathRoute) bool { return one.path == path }) {
		return false
	}
	list = append(list, pathRoute{path, to})
	slices.SortStableFunc(list, func(a, b pathRoute) int { return cmp.Compare(len(b.path), len(a.path)) })
	if r.hosts == nil {
		r.hosts = map[string][]pathRoute{}
	}
	r.hosts[host] = list
	if host == "" && path == "" {
		r.rest = to
	}
	if r.all = nil; len(r.hosts) == 1 && len(list) == 1 {
		r.all = r.rest
	}
	return true
}

// only returns the upstream that everything goes to; nil: each request goes where its head says.
func (r *routes) only() *upstream {
	if r == nil {
		return nil
	}
	return r.all
}

// areByHead reports whether each request goes where its head says; without routes none goes
// anywhere.
func (r *routes) areByHead() bool { return r.only() == nil }

// others returns the upstream of what is no HTTP; nil: there is none.
func (r *routes) others() *upstream {
	if r == nil {
		return nil
	}
	return r.rest
}

// take returns the upstream of a request; nil: no route takes it.
func (r *routes) take(h *http1.Head) *upstream {
	if r == nil {
		return nil
	}
	if r.all != nil {
		return r.all // which needs no look at the request
	}
	return r.find(destination(h))
}

// find returns the upstream of a request for a host, in lower case and with its port, and a path.
func (r *routes) find(host, path string) *upstream {
	if r == nil {
		return nil
	}
	bare := host
	if name, _, err := net.SplitHostPort(host); err == nil {
		bare = name
	}
	for _, host := range slices.Compact([]string{host, bare, ""}) {
		for _, one := range r.hosts[host] {
			below, ok := strings.CutPrefix(path, one.path)
			if ok && (below == "" || one.path == "" || below[0] == '/') {
				return one.to
			}
		}
	}
	return nil
}

// destination is the host, in lower case, and the path that a request is for. A request with
// several hosts is for none.
func destination(h *http1.Head) (host, path string) {
	target := h.Target()
	if fields := h.All("Host"); len(fields) == 1 {
		host = string(fields[0])
	}
	if string(h.Method()) == "CONNECT" {
		return strings.ToLower(string(target)), ""
	}
	if at := bytes.Index(target, []byte("://")); at > 0 && target[0] != '/' { // as a proxy is asked
		host = string(target[at+3:])
		target = nil
		if slash := strings.IndexAny(host, "/?"); slash >= 0 {
			host, target = host[:slash], []byte(host[slash:])
		}
	}
	if end := bytes.IndexAny(target, "?#"); end >= 0 {
		target = target[:end]
	}
	return strings.ToLower(host), string(target)
}
