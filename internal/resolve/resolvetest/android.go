// Package resolvetest imitates the servers that package resolve asks: Android's resolver and DNS
// servers. It was written from the same sources as package resolve, independently; neither was
// compared with a phone.
package resolvetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
)

// commandSize is the buffer that Android's FrameworkListener reads a command into, at one read.
const commandSize = 1024

// Codes of failures, of getaddrinfo in Android's C library.
const (
	Again  = 2
	NoData = 7
)

// Android listens at a socket as Android's resolver does, and passes each command on, without its
// NUL. The connection is closed when answer returns.
func Android(socket string, answer func(command string, conn net.Conn)) (stop func(), err error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer func() { _ = conn.Close() }()
				buffer := make([]byte, commandSize)
				n, err := conn.Read(buffer)
				command, whole := bytes.CutSuffix(buffer[:n], []byte{0})
				if err == nil && whole { // any other is closed silently
					answer(string(command), conn)
				}
			})
		}
	})
	return func() {
		_ = l.Close()
		open.Wait()
	}, nil
}

// Hosts answers the command getaddrinfo from a list, as Android's resolver would: a name that is
// not in it is a failure, as is one without an address of the requested family.
func Hosts(hosts map[string][]string) func(command string, conn net.Conn) {
	return func(command string, conn net.Conn) {
		words := strings.Split(command, " ")
		if words[0] != "getaddrinfo" {
			_, _ = io.WriteString(conn, "500 Command not recognized\x00")
			return
		}
		if len(words) != 8 {
			_, _ = fmt.Fprintf(conn, "501 GetAddrInfoCmd::runCommand: invalid number of arguments: %d\x00", len(words))
			return
		}
		var found []string
		for _, addr := range hosts[words[1]] {
			if words[4] == family(netip.MustParseAddr(addr)) {
				found = append(found, addr)
			}
		}
		if len(found) == 0 {
			_, _ = conn.Write(Failed(NoData))
			return
		}
		_, _ = conn.Write(Found(found...))
	}
}

func family(addr netip.Addr) string {
	if addr.Is4() {
		return "2"
	}
	return "10"
}

// Found is an answer to getaddrinfo with addresses.
func Found(addrs ...string) []byte {
	b := []byte("222\x00")
	for _, text := range addrs {
		addr := netip.MustParseAddr(text)
		number := uint32(2)
		sockaddr := binary.NativeEndian.AppendUint16(nil, 2) // sin_family
		sockaddr = append(sockaddr, 0, 0)                    // sin_port
		if addr.Is6() {
			number = 10
			sockaddr = binary.NativeEndian.AppendUint16(nil, 10)
			sockaddr = append(sockaddr, 0, 0, 0, 0, 0, 0) // sin6_port, sin6_flowinfo
		}
		sockaddr = append(sockaddr, addr.AsSlice()...)
		if addr.Is4() {
			sockaddr = append(sockaddr, make([]byte, 8)...) // sin_zero
		} else {
			sockaddr = append(sockaddr, make([]byte, 4)...) // sin6_scope_id
		}
		b = Entry(b, number, sockaddr, "")
	}
	return binary.BigEndian.AppendUint32(b, 0)
}

// Entry appends a struct addrinfo with its mark.
func Entry(b []byte, family uint32, sockaddr []byte, canonical string) []byte {
	// mark, flags, …, socket type, protocol
	for _, field := range []uint32{1, 0, family, 1, 6, uint32(len(sockaddr))} {
		b = binary.BigEndian.AppendUint32(b, field)
	}
	b = append(b, sockaddr...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(canonical)))
	return append(b, canonical...)
}

// Failed is the answer that a lookup failed.
func Failed(code int32) []byte {
	b := binary.BigEndian.AppendUint32([]byte("401\x00"), 4)
	return binary.NativeEndian.AppendUint32(b, uint32(code))
}
