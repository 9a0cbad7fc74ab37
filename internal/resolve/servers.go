package resolve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
)

// maxServers is the number of name servers of a resolv.conf that count, as everywhere
// (resolv.conf(5)).
const maxServers = 3

// servers reads the name servers of Termux's resolv.conf, each time anew: a phone changes networks.
func (s System) servers() ([]string, error) {
	if s.Prefix == "" {
		return nil, errors.New("no $PREFIX/etc/resolv.conf: PREFIX is not set, which Termux sets")
	}
	f, err := os.Open(s.termuxResolvConf())
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var list []string
	lines := bufio.NewScanner(f)
	for lines.Scan() && len(list) < maxServers {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(words[1]); err == nil {
			list = append(list, netip.AddrPortFrom(addr, 53).String())
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.termuxResolvConf(), err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no line nameserver ADDRESS", s.termuxResolvConf())
	}
	return list, nil
}

// askServer asks one DNS server. left is how many may still be asked, including this one: they
// share the remaining time of ctx.
func (s System) askServer(ctx context.Context, left int, server, network, host string) ([]netip.Addr, error) {
	if end, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer stop()
	}
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return s.dial(ctx, network, server)
	}}
	addrs, err := r.LookupNetIP(ctx, network, host+".") // rooted: the search list is the caller's
	var failed *net.DNSError
	switch {
	case !errors.As(err, &failed):
		return addrs, err
	case failed.IsNotFound:
		return nil, nil
	}
	return nil, errors.New(failed.Err) // the rest of its text names a server that was not asked
}
