package wscontext

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

var errLoopback = errors.New("this context service is for programs on its own machine")

// AdmitLoopback is for [Config].Admit: clients on the same machine may use the service. A page that
// a browser there loaded from elsewhere may not, nor what a reverse proxy there forwards, as far as
// it says so.
func AdmitLoopback(r *http.Request) error {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return errLoopback
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	addr, err := netip.ParseAddr(host)
	named := strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
	if !named {
		return errLoopback
	}
	for _, field := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via", "Origin"} {
		if r.Header.Get(field) != "" {
			return errLoopback
		}
	}
	return nil
}
