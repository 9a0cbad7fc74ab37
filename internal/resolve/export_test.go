package resolve

// What is behind a Resolver, for tests of bytes and of single steps.
var (
	Getaddrinfo = getaddrinfo
	ReadAnswer  = readAnswer
)

// Failure is what Android's resolver says of a lookup that failed.
type Failure = failure

// Lookup looks up without package net in between.
var Lookup = System.lookup

// Bounds of an answer.
const (
	MaxSockaddr  = maxSockaddr
	MaxCanonical = maxCanonical
	MaxAddresses = maxAddresses
)
