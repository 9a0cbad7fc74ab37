package session

import (
	"net/http"
	"strconv"
	"time"

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

// undecided reports whether an answer says that its sender cannot decide now, and how long it asks
// to wait (RFC 9110, section 10.2.3); 0: it does not say.
func (d *Dialer) undecided(resp *http.Response) (is bool, after time.Duration) {
	if resp == nil || resp.StatusCode != http.StatusServiceUnavailable {
		return false, 0
	}
	value := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return true, max(time.Duration(seconds)*time.Second, 1)
	}
	if at, err := http.ParseTime(value); err == nil {
		return true, max(at.Sub(d.cfg.Clock.Now()), 1)
	}
	return true, 0
}
