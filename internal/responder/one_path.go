package responder

import (
	"net/http"
	"net/url"
	"strings"
)

// upgradedRequest is what handlers around this one made of the request that opened a stream. The
// requests of the stream do not pass them, so it is applied to those.
type upgradedRequest struct {
	method, path  string // as they came, the path escaped
	became, asRaw string // the path as the handlers around this one left it, and its RawPath
	onePath       bool   // serves only requests with this method and path
}

// upgradedBy returns what is to be applied to the requests of a stream; nil: nothing.
func upgradedBy(req *http.Request, onePath bool) *upgradedRequest {
	came := cameTo(req)
	if !onePath && came.EscapedPath() == req.URL.EscapedPath() {
		return nil
	}
	return &upgradedRequest{
		method:  req.Method,
		path:    came.EscapedPath(),
		became:  req.URL.Path,
		asRaw:   req.URL.RawPath,
		onePath: onePath,
	}
}

// cameTo returns the URL of a request before other handlers changed it.
func cameTo(req *http.Request) *url.URL {
	if u, err := url.ParseRequestURI(req.RequestURI); err == nil {
		return u
	}
	return req.URL
}

// apply changes the path of a request of the stream, which is the caller's, as it was changed in
// the request that opened it. It returns false for a request that the handlers around this one may
// treat otherwise, or whose path they changed in a way that is not known.
func (u *upgradedRequest) apply(req *http.Request) bool {
	switch path := req.URL.EscapedPath(); {
	case path == u.path && (req.Method == u.method || !u.onePath):
		req.URL.Path, req.URL.RawPath = u.became, u.asRaw
		return true
	case u.onePath:
		return false
	default:
		prefix, cut := strings.CutSuffix(u.path, (&url.URL{Path: u.became, RawPath: u.asRaw}).EscapedPath())
		rest, has := strings.CutPrefix(path, prefix)
		if !cut || !has || !strings.HasPrefix(rest, "/") {
			return false
		}
		unescaped, err := url.PathUnescape(rest)
		if err != nil {
			return false
		}
		req.URL.Path, req.URL.RawPath = unescaped, rest
		return true
	}
}
