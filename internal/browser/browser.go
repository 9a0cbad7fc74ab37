// Package browser tells requests that a page in a browser may have sent from those of programs. A
// page from elsewhere reaches every address that its browser does, also by a name that its owner
// has made to lead there (DNS rebinding).
package browser

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// IsForeign reports whether a request says that it is that of a page from elsewhere.
func IsForeign(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") == "cross-site"
}

// IsNamed reports whether the field Host of a request has an address that fits, localhost, or one
// of these names, with any port: no name that somebody has made up.
func IsNamed(r *http.Request, fits func(netip.Addr) bool, names ...string) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return fits(addr.Unmap())
	}
	isHost := func(name string) bool { return strings.EqualFold(name, host) }
	return isHost("localhost") || slices.ContainsFunc(names, isHost)
}
