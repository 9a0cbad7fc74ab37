package resolve

// The parts of a Resolver, for tests of bytes and of single steps.
var (
	Getaddrinfo = getaddrinfo
	ReadAnswer  = readAnswer
)

// Failure is a lookup failure that Android's resolver reports.
type Failure = failure

// Lookup looks up without package net in between.
var Lookup = System.lookup

// Bounds of an answer.
const (
	MaxSockaddr  = maxSockaddr
	MaxCanonical = maxCanonical
	MaxAddresses = maxAddresses
)
