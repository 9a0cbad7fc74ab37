// Package resolve looks up names where package net cannot. Android has no /etc/resolv.conf, and a
// program without cgo does not reach the C library, which has a resolver: net then asks a DNS
// server at 127.0.0.1, where there is none.
//
// A lookup asks, in this order:
//
//  1. Android's resolver, over its Unix socket (dnsproxyd.go), as every app's C library does. Its
//     answer is final, also that there is no such name: it knows the networks, VPN and private DNS
//     of the phone.
//  2. If it cannot be asked: the DNS servers of Termux's resolv.conf.
//
// A DNS server that the user names replaces all of that, on every system.
package resolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// System is what a machine has for looking up names. Tests use one of their own.
type System struct {
	// GOOS is the system that the program was built for.
	GOOS string
	// Cgo reports whether package net reaches the resolver of the C library.
	Cgo bool
	// Properties is a path that every Android has, and nothing else.
	Properties string
	// Socket is the socket of Android's resolver.
	Socket string
	// ResolvConf is what package net reads on Linux.
	ResolvConf string
	// Prefix is the folder of Termux's programs and files; empty outside Termux.
	Prefix string
	// Dial connects to DNS servers; nil means a [net.Dialer].
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Local is the machine that the program runs on. prefix is the variable PREFIX, which Termux sets.
func Local(prefix string) System {
	return System{
		GOOS: runtime.GOOS, Cgo: cgo, Prefix: prefix,
		// The property service stores its values there since Android 5, readable by every process.
		Properties: "/dev/__properties__",
		Socket:     "/dev/socket/dnsproxyd",
		ResolvConf: "/etc/resolv.conf",
	}
}

// Android reports whether the machine runs Android, which programs built for Linux do as well.
func (s System) Android() bool {
	if s.GOOS == "android" {
		return true
	}
	_, err := os.Lstat(s.Properties)
	return s.GOOS == "linux" && err == nil
}

// Resolver is the resolver to look up names with: server alone, if it is valid, otherwise what
// Android has. It is nil if package net finds one itself.
func (s System) Resolver(server netip.AddrPort) *net.Resolver {
	switch {
	case server.IsValid():
		return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return s.dial(ctx, network, server.String())
		}}
	case s.needed():
		return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return &conversation{ctx: ctx, lookup: s.lookup}, nil
		}}
	}
	return nil
}

// needed reports whether package net finds no resolver. A Linux system inside Android (proot, a
// chroot) has a resolv.conf of its own.
func (s System) needed() bool {
	if s.Cgo || !s.Android() {
		return false
	}
	if s.GOOS == "android" {
		return true
	}
	_, err := os.Stat(s.ResolvConf)
	return errors.Is(err, fs.ErrNotExist)
}

// Message is the text of an error. If the resolver for server was in use, a failed lookup in it
// names that server, or none: package net names one of resolv.conf, or 127.0.0.1, which was not
// asked.
func (s System) Message(err error, server netip.AddrPort) string {
	text := err.Error()
	var failed *net.DNSError
	if !errors.As(err, &failed) || failed.Server == "" || s.Resolver(server) == nil {
		return text
	}
	asked := ""
	if server.IsValid() {
		asked = " on " + server.String()
	}
	return strings.ReplaceAll(text, " on "+failed.Server+": ", asked+": ")
}

// lookup finds the addresses of a host, of network ip4 or ip6. A host without any is no error.
func (s System) lookup(ctx context.Context, network, host string) ([]netip.Addr, error) {
	addrs, err := askAndroid(ctx, s.Socket, network, host)
	var refused *failure
	if err == nil || ctx.Err() != nil || errors.As(err, &refused) {
		return addrs, err
	}
	tried := []string{err.Error()}
	servers, err := s.servers()
	if err != nil {
		tried = append(tried, err.Error())
	}
	for i, server := range servers {
		addrs, err := s.askServer(ctx, len(servers)-i, server, network, host)
		if err == nil {
			return addrs, nil
		}
		tried = append(tried, fmt.Sprintf("%s (%s): %v", server, s.termuxResolvConf(), err))
	}
	return nil, fmt.Errorf("no resolver answers: %s", strings.Join(tried, "; "))
}

func (s System) termuxResolvConf() string { return filepath.Join(s.Prefix, "etc", "resolv.conf") }

func (s System) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if s.Dial != nil {
		return s.Dial(ctx, network, addr)
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}
