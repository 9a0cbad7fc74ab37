package session

import (
	"net/http"

	"github.com/hhfr/hhfr/pkg/soap"
)

// mayBePortal reports whether an answer looks like one that networks give in the place of a server,
// until somebody logs in there: a redirection, status 511, or a page. Such an answer proves nothing
// about the server, so it is not remembered.
func mayBePortal(resp *http.Response) bool {
	switch status := resp.StatusCode; {
	case status == http.StatusNetworkAuthenticationRequired, status >= 300 && status < 400:
		return true
	case status >= 200 && status < 300:
		kind := soap.ParseContentType(resp.Header.Get("Content-Type")).Type
		return kind == "text/html" || kind == "application/xhtml+xml"
	}
	return false
}
