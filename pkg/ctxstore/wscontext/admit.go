package wscontext

import (
	"errors"
	"net/http"
	"net/netip"

	"github.com/hhfr/hhfr/internal/browser"
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
	if !browser.IsNamed(r, netip.Addr.IsLoopback) || browser.IsForeign(r) {
		return errLoopback
	}
	for _, field := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if r.Header.Get(field) != "" {
			return errLoopback
		}
	}
	return nil
}
