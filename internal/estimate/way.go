package estimate

// Way is how calls travel.
type Way string

// The ways.
const (
	// Plain is as captured, Kept the same on connections that stay open.
	Plain Way = "plain"
	Kept  Way = "kept"
	// Gzip is as captured, each body compressed by itself.
	Gzip Way = "gzip"
	// DCZ is as captured, but that each reply is compressed with the one before from the same URL
	// as its dictionary (RFC 9842, dcz).
	DCZ Way = "dcz"
	// Zlib and Zstd are tunnels: one connection for all of a link's traffic, in frames, each
	// direction compressed as a whole and flushed as the data came.
	Zlib Way = "zlib"
	Zstd Way = "zstd"
	// FirstContact is through pairs that meet for the first time, ByConnection the same with each
	// connection taken for a client of its own.
	FirstContact Way = "first_contact"
	ByConnection Way = "by_connection"
	// MetBefore and ByConnectionMet are through pairs that had a session with the same traffic
	// before.
	MetBefore       Way = "met_before"
	ByConnectionMet Way = "by_connection_met"
)

// The numbers of ways, in the order of reports.
const (
	plain = iota
	kept
	gzipped
	dcz
	zlibbed
	zstded
	firstContact
	byConnection
	metBefore
	byConnectionMet
	ways

	// anew is how many there are without those that met before, which have the second pass.
	anew = metBefore
)

var names = [ways]Way{Plain, Kept, Gzip, DCZ, Zlib, Zstd, FirstContact, ByConnection, MetBefore, ByConnectionMet}
