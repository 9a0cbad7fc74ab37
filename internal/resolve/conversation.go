package resolve

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// conversation is what a resolver of package net takes for a TCP connection to a DNS server. There
// is no server: lookup finds the addresses. So search lists, the order of addresses, caches and
// everything else that is built on net stay unchanged.
type conversation struct {
	ctx    context.Context // of one query with its answer; carries the deadline
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	query, answer bytes.Buffer // messages, each after its length (RFC 1035, 4.2.2)
}

func (c *conversation) Write(b []byte) (int, error) { return c.query.Write(b) }

func (c *conversation) Read(b []byte) (int, error) {
	if c.query.Len() > 0 {
		if err := c.reply(); err != nil {
			return 0, err
		}
	}
	return c.answer.Read(b)
}

// reply answers the query.
func (c *conversation) reply() error {
	var p dnsmessage.Parser
	c.query.Next(2)
	header, err := p.Start(c.query.Next(c.query.Len()))
	if err != nil {
		return err
	}
	question, err := p.Question()
	if err != nil {
		return err
	}
	header = dnsmessage.Header{ID: header.ID, Response: true, RecursionDesired: true, RecursionAvailable: true}
	var addrs []netip.Addr
	host := strings.TrimSuffix(question.Name.String(), ".")
	switch question.Type {
	case dnsmessage.TypeA:
		addrs, err = c.lookup(c.ctx, "ip4", host)
	case dnsmessage.TypeAAAA:
		addrs, err = c.lookup(c.ctx, "ip6", host)
	default:
		header.RCode = dnsmessage.RCodeNotImplemented
	}
	if err != nil {
		return err
	}
	message, err := pack(header, question, addrs)
	if err != nil {
		return err
	}
	c.answer.Write(binary.BigEndian.AppendUint16(nil, uint16(len(message))))
	c.answer.Write(message)
	return nil
}

// pack creates the answer of a DNS server. The time to live is not used.
func pack(header dnsmessage.Header, question dnsmessage.Question, addrs []netip.Addr) ([]byte, error) {
	m := dnsmessage.Message{Header: header, Questions: []dnsmessage.Question{question}}
	about := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class}
	for _, addr := range addrs {
		var body dnsmessage.ResourceBody
		switch addr = addr.Unmap(); {
		case question.Type == dnsmessage.TypeA && addr.Is4():
			body = &dnsmessage.AResource{A: addr.As4()}
		case question.Type == dnsmessage.TypeAAAA && addr.Is6():
			body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
		default:
			continue // of the family that was not requested
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: about, Body: body})
	}
	return m.Pack()
}

func (c *conversation) Close() error                     { return nil }
func (c *conversation) LocalAddr() net.Addr              { return nowhere{} }
func (c *conversation) RemoteAddr() net.Addr             { return nowhere{} }
func (c *conversation) SetDeadline(time.Time) error      { return nil } // the deadline is in ctx
func (c *conversation) SetReadDeadline(time.Time) error  { return nil }
func (c *conversation) SetWriteDeadline(time.Time) error { return nil }

// nowhere is the address of both ends.
type nowhere struct{}

func (nowhere) Network() string { return "none" }
func (nowhere) String() string  { return "none" }
