package command

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

const dnsPort = 53

// DNSServer is the value of --dns; its AddrPort is invalid without one.
type DNSServer struct{ netip.AddrPort }

// Type is the type of the flag in help texts.
func (d *DNSServer) Type() string { return "IP[:PORT]" }

func (d *DNSServer) String() string {
	if !d.IsValid() {
		return ""
	}
	return d.AddrPort.String()
}

// Set parses an address, with or without a port.
func (d *DNSServer) Set(text string) error {
	d.AddrPort = netip.AddrPort{}
	if text == "" { // back to the system's servers, overriding a variable or a file
		return nil
	}
	if server, err := netip.ParseAddrPort(text); err == nil && server.Port() > 0 {
		d.AddrPort = server
		return nil
	}
	bare := text
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		bare = text[1 : len(text)-1]
	}
	addr, err := netip.ParseAddr(bare)
	if err != nil {
		return fmt.Errorf("a DNS server is IP, IP:PORT or [IPV6]:PORT, not %q", text)
	}
	d.AddrPort = netip.AddrPortFrom(addr, dnsPort)
	return nil
}

// Message is the text of an error.
func (g *Global) Message(err error) string { return g.System.Message(err, g.DNS.AddrPort) }

// UseResolver makes every lookup of the process use the server of --dns or, on Android, the
// system's source of names. Everything that dials uses this one variable of package net, so that
// libraries need not know of it.
func (g *Global) UseResolver() {
	if r := g.System.Resolver(g.DNS.AddrPort); r != nil {
		net.DefaultResolver = r
	}
}
