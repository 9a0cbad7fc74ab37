package soapjms

import "github.com/hhfr/hhfr/internal/fault"

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// BadAddress: an address of a queue or of a broker that is none.
	BadAddress Code = iota + 1
	// Unreachable: the broker cannot be reached, or does not let the client in.
	Unreachable
	// Refused: the broker does not take a message.
	Refused
	// TooLarge: a message is larger than 64 MiB.
	TooLarge
	// NoReply: a request has had no reply in time, or its connection ended before. It may have been
	// handled.
	NoReply
	// Malformed: a reply that is none of SOAP over JMS.
	Malformed
)

var codeNames = map[Code]string{
	BadAddress: "bad address", Unreachable: "broker unreachable", TooLarge: "message too large",
	Refused: "the broker refuses", NoReply: "no reply", Malformed: "malformed reply",
}

func (c Code) String() string { return codeNames[c] }

// From implements [fault.Code].
func (Code) From() string { return "soapjms: " }

// Error is what this package returns.
type Error = fault.Of[Code]
