// Package filter has expressions that choose messages of a capture: op == "sum" && bytes > 200.
package filter

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Candidate is what expressions can ask of a message.
type Candidate struct {
	Number, Packet, Status          int
	Operation, Session, Kind, State string
	Call                            string // operation of the request that it is, or belongs to
	Fault                           string // code and reason; empty: it is no fault
	Client, Server, Source, Target  netip.AddrPort
	BodyOctets, WireOctets          int64
	Duration                        time.Duration // of replies, from the beginning of the request; 0: not known
	Time                            time.Time
	HHFR                            bool
	Head, Body                      []byte
}

// Expression is an expression that was parsed. It is immutable, and safe for concurrent use.
type Expression struct{ holds func(*Candidate) bool }

// Holds reports whether an expression holds for a message.
func (e *Expression) Holds(f *Candidate) bool { return e == nil || e.holds(f) }

// And is an expression that holds if both do; nil stands for what always holds.
func (e *Expression) And(o *Expression) *Expression {
	switch {
	case e == nil:
		return o
	case o == nil:
		return e
	}
	return &Expression{func(f *Candidate) bool { return e.holds(f) && o.holds(f) }}
}

// Compare is the comparison of a field with a value, as [Parse] reads it.
func Compare(field, op, value string) (*Expression, error) {
	f, ok := fields[field]
	if !ok {
		return nil, fmt.Errorf("no field %q", field)
	}
	if why := f.refuses(op); why != "" {
		return nil, fmt.Errorf("%s: %s", field, why)
	}
	holds, err := f.compare(op, value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return &Expression{holds}, nil
}

// SyntaxError is what is wrong with an expression, and where.
type SyntaxError struct {
	Expression string
	Column     int // in characters, from 1
	What       string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("column %d: %s", e.Column, e.What) }

// Caret is the expression, with a caret below the place.
func (e *SyntaxError) Caret() string {
	return e.Expression + "\n" + strings.Repeat(" ", e.Column-1) + "^"
}

// facet is what a name asks: one of its functions is there.
type facet struct {
	about   string
	text    func(*Candidate) string
	bytes   func(*Candidate) []byte
	number  func(*Candidate) int64
	wait    func(*Candidate) time.Duration
	moment  func(*Candidate) time.Time
	address func(*Candidate) []netip.AddrPort
	truth   func(*Candidate) bool
}

// fields are all of them, by name.
var fields = map[string]facet{
	"number": {
		about:  "of the exchange, as decode lists it",
		number: func(f *Candidate) int64 { return int64(f.Number) },
	},
	"packet": {
		about:  "number of the packet with the first byte",
		number: func(f *Candidate) int64 { return int64(f.Packet) },
	},
	"status": {about: "of the HTTP reply", number: func(f *Candidate) int64 { return int64(f.Status) }},
	"bytes":  {about: "of the envelope", number: func(f *Candidate) int64 { return f.BodyOctets }},
	"wire":   {about: "bytes on the wire", number: func(f *Candidate) int64 { return f.WireOctets }},
	"op": {
		about: "local name of the first element in the Body",
		text:  func(f *Candidate) string { return f.Operation },
	},
	"call": {
		about: "operation of the request, also of its replies",
		text:  func(f *Candidate) string { return f.Call },
	},
	"session": {about: "a UUID; - for plain SOAP", text: func(f *Candidate) string { return f.Session }},
	"kind":    {about: "request, reply, interim or one-way", text: func(f *Candidate) string { return f.Kind }},
	"state":   {about: "verified, unchecked and so on", text: func(f *Candidate) string { return f.State }},
	"fault":   {about: "code and reason of a SOAP fault", text: func(f *Candidate) string { return f.Fault }},
	"head":    {about: "HTTP head", bytes: func(f *Candidate) []byte { return f.Head }},
	"body":    {about: "envelope, its first MiB", bytes: func(f *Candidate) []byte { return f.Body }},
	"duration": {
		about: "of replies, from the request's first byte to their last",
		wait:  func(f *Candidate) time.Duration { return f.Duration },
	},
	"time": {about: "of the first byte", moment: func(f *Candidate) time.Time { return f.Time }},
	"src":  {about: "address of the sender", address: func(f *Candidate) []netip.AddrPort { return of(f.Source) }},
	"dst":  {about: "address of the receiver", address: func(f *Candidate) []netip.AddrPort { return of(f.Target) }},
	"client": {
		about:   "address of the client",
		address: func(f *Candidate) []netip.AddrPort { return of(f.Client) },
	},
	"server": {
		about:   "address of the server",
		address: func(f *Candidate) []netip.AddrPort { return of(f.Server) },
	},
	"host": {
		about:   "one of both addresses",
		address: func(f *Candidate) []netip.AddrPort { return of(f.Source, f.Target) },
	},
	"hhfr": {about: "it was on an hhfr stream", truth: func(f *Candidate) bool { return f.HHFR }},
	"request": {
		about: "it is a request or a one-way message",
		truth: func(f *Candidate) bool { return f.Kind == "request" || f.Kind == "one-way" },
	},
	"reply": {
		about: "it is a reply",
		truth: func(f *Candidate) bool { return f.Kind == "reply" || f.Kind == "interim" },
	},
}

func of(list ...netip.AddrPort) []netip.AddrPort { return list }

// Fields lists the names, and what they stand for.
func Fields() (list [][2]string) {
	for name, f := range fields {
		list = append(list, [2]string{name, f.about})
	}
	slices.SortStableFunc(list, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return list
}

// alone is what a field without operator asks.
func (f facet) alone() func(*Candidate) bool {
	switch {
	case f.truth != nil:
		return f.truth
	case f.number != nil:
		return func(m *Candidate) bool { return f.number(m) != 0 }
	case f.text != nil:
		return func(m *Candidate) bool { return f.text(m) != "" }
	case f.bytes != nil:
		return func(m *Candidate) bool { return len(f.bytes(m)) > 0 }
	case f.wait != nil:
		return func(m *Candidate) bool { return f.wait(m) > 0 }
	case f.moment != nil:
		return func(m *Candidate) bool { return !f.moment(m).IsZero() }
	}
	return func(m *Candidate) bool { return slices.ContainsFunc(f.address(m), netip.AddrPort.IsValid) }
}

// ordered are the results of a comparison that an operator takes, as sums of below, same, above.
var ordered = map[string]int{
	"==": same, "!=": below | above, "<": below, "<=": below | same, ">": above, ">=": above | same,
}

const (
	below = 1 << iota
	same
	above
)

// order is the result of a comparison.
func order(compared int) int {
	switch {
	case compared < 0:
		return below
	case compared > 0:
		return above
	}
	return same
}

// refuses says why a field is not compared by an operator; empty: it is.
func (f facet) refuses(op string) string {
	switch {
	case f.truth != nil:
		return "it is true or not: it stands alone, or behind !"
	case f.text != nil || f.bytes != nil:
		if op != "==" && op != "!=" && op != "~" && op != "!~" {
			return "it is text: it is compared by ==, !=, ~ and !~"
		}
	case f.address != nil:
		if op != "==" && op != "!=" {
			return "it is an address: it is compared by == and !="
		}
	case ordered[op] == 0:
		return "it is compared by ==, !=, <, <=, > and >="
	}
	return ""
}

// compare makes what a field, an operator that it does not refuse, and a value ask. Its error says
// what values are.
func (f facet) compare(op, value string) (func(*Candidate) bool, error) {
	takes := ordered[op]
	switch {
	case f.text != nil || f.bytes != nil:
		return f.compareText(op, value)
	case f.address != nil:
		is, err := addresses(value)
		return func(m *Candidate) bool { return slices.ContainsFunc(f.address(m), is) == (op == "==") }, err
	case f.number != nil:
		n, err := parseNumber(value)
		return func(m *Candidate) bool { return order(cmp.Compare(f.number(m), n))&takes != 0 }, err
	case f.wait != nil:
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return nil, fmt.Errorf("%q is no duration, as 250ms or 1.5s are", value)
		}
		return func(m *Candidate) bool {
			took := f.wait(m)
			return took > 0 && order(cmp.Compare(took, d))&takes != 0
		}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return nil, fmt.Errorf("%q is no time, as 2026-01-02T15:04:05Z is", value)
	}
	return func(m *Candidate) bool { return !f.moment(m).IsZero() && order(f.moment(m).Compare(at))&takes != 0 }, nil
}

// compareText compares with a text, or searches for a regular expression (RE2, which ends in linear
// time).
func (f facet) compareText(op, value string) (func(*Candidate) bool, error) {
	get := f.bytes
	if get == nil {
		get = func(m *Candidate) []byte { return []byte(f.text(m)) }
	}
	if op == "==" || op == "!=" {
		return func(m *Candidate) bool { return (string(get(m)) == value) == (op == "==") }, nil
	}
	r, err := regexp.Compile(value)
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %w", value, err)
	}
	return func(m *Candidate) bool { return r.Match(get(m)) == (op == "~") }, nil
}

// addresses says which addresses a value stands for: an address with or without a port, a port
// alone, or a network.
func addresses(value string) (is func(netip.AddrPort) bool, err error) {
	if port, ok := strings.CutPrefix(value, ":"); ok {
		n, err := parseNumber(port)
		if err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("%q is no port", value)
		}
		return func(a netip.AddrPort) bool { return int64(a.Port()) == n }, nil
	}
	if network, err := netip.ParsePrefix(value); err == nil {
		return func(a netip.AddrPort) bool { return a.IsValid() && network.Contains(a.Addr().Unmap()) }, nil
	}
	if whole, err := netip.ParseAddrPort(value); err == nil {
		return func(a netip.AddrPort) bool { return a == whole }, nil
	}
	bare, err := netip.ParseAddr(strings.Trim(value, "[]"))
	if err != nil {
		return nil, fmt.Errorf("%q is no address: IP, IP:PORT, :PORT or IP/LENGTH", value)
	}
	return func(a netip.AddrPort) bool { return a.Addr() == bare }, nil
}
