package resolve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// The protocol between Android's C library and its resolver, command getaddrinfo, as of Android 6.
// It is internal to Android, but the resolver is updated apart from the C library since Android 10,
// so they must stay compatible. Sources, in the Android Open Source Project:
//
//   - platform/bionic, libc/dns/net/getaddrinfo.c: android_getaddrinfo_proxy writes the command and
//     reads the answer; libc/include/netdb.h has the EAI_ codes.
//   - platform/packages/modules/DnsResolver, DnsProxyListener.cpp (before Android 10
//     platform/system/netd, server): GetAddrInfoCmd reads the command, GetAddrInfoHandler::run and
//     sendaddrinfo write the answer.
//   - platform/system/core, libsysutils, SocketClient.cpp: sendCode, sendBinaryMsg and sendMsg are
//     the three forms of an answer; FrameworkListener.cpp parses commands, and expects each, with
//     the NUL at its end, in one read.
//   - platform/system/netd, client/NetdClient.cpp: dns_open_proxy has the path of the socket.
const (
	codeResult = "222" // DnsProxyQueryResult
	codeFailed = "401" // DnsProxyOperationFailed

	// Of Linux, on every processor that Android runs on.
	afInet     = 2
	afInet6    = 10
	sockStream = 1

	eaiNoData = 7 // also for names that do not exist
	eaiNoName = 8
)

// Bounds of an answer. A sockaddr_storage has 128 bytes, a host name with its NUL at most 1025
// (NI_MAXHOST), and a DNS message of 64 KiB hardly has space for more addresses.
const (
	maxSockaddr  = 128
	maxCanonical = 1025
	maxAddresses = 1024
	maxText      = 200 // of a refusal in words, as far as it is printed
)

// failure is an answer of Android's resolver that a lookup failed.
type failure struct{ code int32 }

var eaiNames = map[int32]string{
	1: "EAI_ADDRFAMILY", 2: "EAI_AGAIN", 3: "EAI_BADFLAGS", 4: "EAI_FAIL", 5: "EAI_FAMILY", 6: "EAI_MEMORY",
	9: "EAI_SERVICE", 10: "EAI_SOCKTYPE", 11: "EAI_SYSTEM", 12: "EAI_BADHINTS", 13: "EAI_PROTOCOL",
	14: "EAI_OVERFLOW", 255: "timeout", // NETD_RESOLV_TIMEOUT
}

func (f *failure) Error() string {
	name := eaiNames[f.code]
	if name == "" {
		name = "unknown error"
	}
	return fmt.Sprintf("the resolver of Android says: %s (%d)", name, f.code)
}

// askAndroid asks Android's resolver for the addresses of a host, of network ip4 or ip6.
func askAndroid(ctx context.Context, socket, network, host string) ([]netip.Addr, error) {
	command, err := getaddrinfo(network, host)
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("resolver of Android: %w", err)
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var addrs []netip.Addr
	if _, err = conn.Write(command); err == nil {
		addrs, err = readAnswer(bufio.NewReader(conn))
	}
	var refused *failure
	switch {
	case err == nil, errors.As(err, &refused):
		return addrs, err
	case ctx.Err() != nil:
		err = fmt.Errorf("no answer: %w", ctx.Err())
	}
	return nil, fmt.Errorf("resolver of Android (%s): %w", socket, err)
}

// getaddrinfo is the command of that name: host, service, flags, family, socket type, protocol and
// network. A service that is NULL is "^"; network 0 is the one that the app uses.
func getaddrinfo(network, host string) ([]byte, error) {
	if host == "" || strings.ContainsFunc(host, special) {
		return nil, fmt.Errorf("%q is no host name", host)
	}
	family := afInet
	if network == "ip6" {
		family = afInet6
	}
	return fmt.Appendf(nil, "getaddrinfo %s ^ 0 %d %d 0 0\x00", host, family, sockStream), nil
}

// special reports whether a character has a meaning in commands; no name contains one.
func special(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`^'"\`, c) }

// readAnswer reads the answer to getaddrinfo: the addresses, each once. If the resolver says that a
// name has none, there are none, without an error; any other reported failure is a [*failure].
func readAnswer(r io.Reader) ([]netip.Addr, error) {
	var head [4]byte // three digits, then NUL or, before words, a blank
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, cut("code", err)
	}
	switch code := string(head[:3]); {
	case code == codeResult && head[3] == 0:
		return readAddresses(r)
	case code == codeFailed && head[3] == 0:
		return nil, readFailure(r)
	}
	words, err := io.ReadAll(io.LimitReader(r, maxText))
	if err != nil {
		return nil, cut("refusal", err)
	}
	words, _, _ = bytes.Cut(append(head[:], words...), []byte{0})
	return nil, fmt.Errorf("it answers %q", words)
}

// readFailure reads the code after a failure: its length, then an int in the memory layout of the
// resolver's processor, which is this one.
func readFailure(r io.Reader) error {
	b, err := readField(r, "error code", 4)
	if err != nil {
		return err
	}
	if len(b) != 4 {
		return fmt.Errorf("an error code of %d bytes, not 4", len(b))
	}
	switch code := int32(binary.NativeEndian.Uint32(b)); code {
	case eaiNoData, eaiNoName:
		return nil
	default:
		return &failure{code}
	}
}

// readAddresses reads a list of struct addrinfo, a big-endian 1 before each and a 0 after the last.
func readAddresses(r io.Reader) (addrs []netip.Addr, err error) {
	for n := range maxAddresses + 1 {
		more, err := readInt(r, "mark of an address")
		if err != nil {
			return nil, err
		}
		if more == 0 {
			return addrs, nil
		}
		if more != 1 { // Android 5 has the size of a whole struct there
			return nil, fmt.Errorf("address %d begins with %d, not 1", n+1, more)
		}
		addr, err := readAddress(r)
		if err != nil {
			return nil, fmt.Errorf("address %d: %w", n+1, err)
		}
		if addr.IsValid() && !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	return nil, fmt.Errorf("more than %d addresses", maxAddresses)
}

// readAddress reads one struct addrinfo: flags, family, socket type and protocol, each big-endian,
// then a sockaddr and the canonical name, each after its length. It is invalid, without an error,
// if its family is unknown.
func readAddress(r io.Reader) (addr netip.Addr, err error) {
	var fields [4]uint32
	for i, name := range []string{"flags", "family", "socket type", "protocol"} {
		if fields[i], err = readInt(r, name); err != nil {
			return addr, err
		}
	}
	sockaddr, err := readField(r, "sockaddr", maxSockaddr)
	if err != nil {
		return addr, err
	}
	name, err := readField(r, "canonical name", maxCanonical)
	if err != nil {
		return addr, err
	}
	if len(name) > 0 && name[len(name)-1] != 0 {
		return addr, errors.New("the canonical name has no NUL at its end")
	}
	switch family := fields[1]; {
	case family == afInet && len(sockaddr) >= 16: // family and port of 2 bytes, address, zeros
		return netip.AddrFrom4([4]byte(sockaddr[4:8])), nil
	case family == afInet6 && len(sockaddr) >= 28: // family, port, flow of 4 bytes, address, scope
		return netip.AddrFrom16([16]byte(sockaddr[8:24])), nil
	case family == afInet, family == afInet6:
		return addr, fmt.Errorf("a sockaddr of %d bytes is too short for family %d", len(sockaddr), family)
	}
	return addr, nil
}

func readInt(r io.Reader, what string) (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, cut(what, err)
	}
	return binary.BigEndian.Uint32(b[:]), nil
}

// readField reads a big-endian length and that many bytes.
func readField(r io.Reader, what string, most uint32) ([]byte, error) {
	n, err := readInt(r, "length of "+what)
	if err != nil {
		return nil, err
	}
	if n > most {
		return nil, fmt.Errorf("%s of %d bytes, more than %d", what, n, most)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, cut(what, err)
	}
	return b, nil
}

// cut is the error of an answer that ends too early.
func cut(where string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("its answer ends in the %s", where)
	}
	return err
}
