package soaprm

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
)

// route finds where messages for an address go: empty for who waits on the connection of the
// request, or wants none; else the address. ok is false for an address that nothing may be sent to.
func (e *SequenceDestination) route(a *admittedRequest, address string) (place string, ok bool) {
	switch {
	case addressing.IsAnonymous(address), isNone(&addressing.Reference{Address: address}):
		return "", true
	case isPolled(address):
		return address, len(address) <= maxAddress
	}
	return address, len(address) <= maxAddress && e.isAllowed(a.r, address)
}

// maxAddress is the longest address of an endpoint, in bytes.
const maxAddress = 2048

// isAllowed reports whether a client may have messages sent to an address. Who could name any
// address could have this end send to hosts that it cannot reach itself. So it is one of the host
// that the request comes from, or of one that the configuration names. Names are not looked up:
// what they stand for may change after that.
func (e *SequenceDestination) isAllowed(r *http.Request, address string) bool {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Hostname() == "" || to.User != nil {
		return false
	}
	listed := func(host string) bool {
		return strings.EqualFold(host, to.Hostname()) || strings.EqualFold(host, to.Host)
	}
	if slices.ContainsFunc(e.cfg.Callbacks, listed) {
		return true
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || isForwarded(r) {
		return false
	}
	caller, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if to.Hostname() == "localhost" { // which is the host itself (RFC 6761, section 6.3)
		return caller.Unmap().IsLoopback()
	}
	named, err := netip.ParseAddr(to.Hostname())
	return err == nil && named.Unmap() == caller.Unmap()
}

// isForwarded reports whether a request says that it came by an intermediary: the connection is
// from that one's host then.
func isForwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

// routes finds where the reply to a message and a fault go, and refuses addresses that nothing may
// be sent to.
func (e *SequenceDestination) routes(a *admittedRequest) error {
	for _, r := range []struct {
		to    *addressing.Reference
		place *string
	}{{a.at.ReplyTo, &a.replies}, {a.at.Endpoint(true), &a.faults}} {
		if r.to == nil {
			continue
		}
		place, ok := e.route(a, r.to.Address)
		if !ok {
			a.replies, a.faults = "", ""
			return refusedAddress(a.at.Space)
		}
		*r.place = place
	}
	return nil
}

const whyRefused = "nothing is sent to that address from here: it is neither of the host that the request " +
	"comes from nor one that is allowed"

func refusedAddress(space string) error {
	f := soap.Fault{Code: soap.Client, Subcode: "OnlyAnonymousAddressSupported", SubcodeSpace: space,
		Reason: whyRefused}
	if space == addressing.V200408 {
		f.Subcode = "InvalidMessageInformationHeader"
	}
	return &headers.RefusedMessage{Fault: f}
}

// isNone reports whether a reference is the one of who wants no reply (1.0 Core, section 2.1).
func isNone(r *addressing.Reference) bool {
	return r != nil && r.Address == addressing.V200508+"/none"
}
