package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

const dnsPort = 53

// dnsServer is the value of --dns; its AddrPort is invalid without one.
type dnsServer struct{ netip.AddrPort }

func (d *dnsServer) Type() string { return "IP[:PORT]" }

func (d *dnsServer) String() string {
	if !d.IsValid() {
		return ""
	}
	return d.AddrPort.String()
}

func (d *dnsServer) Set(text string) error {
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

// message is the text of an error.
func (g *global) message(err error) string { return g.system.Message(err, g.dns.AddrPort) }

// useResolver makes every lookup of the process use the server of --dns or, on Android, the
// system's source of names. Everything that dials uses this one variable of package net, so that
// libraries need not know of it.
func (g *global) useResolver() {
	if r := g.system.Resolver(g.dns.AddrPort); r != nil {
		net.DefaultResolver = r
	}
}
