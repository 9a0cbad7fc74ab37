package link

import "github.com/hhfr/hhfr/internal/fault"

// Code is the kind of an [Error].
type Code uint8

const (
	// BadProfile: an invalid profile.
	BadProfile Code = iota + 1
	// Unsupported: a profile that a relay of bytes cannot implement.
	Unsupported
	// Closed: the link was closed.
	Closed
)

var codeNames = map[Code]string{BadProfile: "bad profile", Unsupported: "not for a relay of bytes", Closed: "closed"}

func (c Code) String() string { return codeNames[c] }

// From implements [fault.Code].
func (Code) From() string { return "link: " }

// Error is the error of this package; the errors of connections are those of package net.
type Error = fault.Of[Code]
