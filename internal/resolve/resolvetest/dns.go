package resolvetest

import (
	"net"
	"net/netip"

	"golang.org/x/net/dns/dnsmessage"
)

// DNS listens on loopback as a DNS server over UDP, which knows IPv4 addresses of hosts, and that
// there are no others.
func DNS(hosts map[string]string) (server netip.AddrPort, stop func(), err error) {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return netip.AddrPort{}, nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			if reply, err := reply(m, hosts); err == nil {
				_, _ = conn.WriteToUDPAddrPort(reply, from)
			}
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), func() {
		_ = conn.Close()
		<-done
	}, nil
}

func reply(m dnsmessage.Message, hosts map[string]string) ([]byte, error) {
	question := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	name := question.Name.String()
	addr, known := hosts[name[:len(name)-1]]
	switch {
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case question.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addr).As4()},
		}}
	}
	return m.Pack()
}
