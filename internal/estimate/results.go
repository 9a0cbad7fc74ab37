package estimate

import (
	"cmp"
	"slices"
	"time"
)

// Report is what calls take by each way. Lists by way have all of them, in the order of [Ways].
type Report struct {
	Began       time.Time `json:"began"`       // time of the first bytes of a connection
	Seconds     float64   `json:"seconds"`     // from then to the last bytes
	Servers     int       `json:"servers"`     // addresses that were called; a pair stands before each
	Connections int       `json:"connections"` // connections that had calls
	Calls       int       `json:"calls"`       // requests with their replies
	Messages    int       `json:"messages"`    // requests and replies
	Others      int       `json:"others"`      // calls without SOAP, which are left out
	Cut         int       `json:"cut"`         // messages that are left out since they are not whole
	HHFR        int       `json:"hhfr"`        // connections that are hhfr streams already, which are left out
	// the server's part of the time from a request to its reply, in seconds a call
	ServerSeconds float64         `json:"server_seconds"`
	Operations    []OperationCost `json:"operations"` // those with most bytes first
	Between       []WayTraffic    `json:"between"`    // to open streams, and for the ends of connections
	Total         []WayTraffic    `json:"total"`      // the operations, and what is between
	Links         []OnLink        `json:"links"`      // the same on each link, with times
	// the total, were all calls as those of the second half are; null: there are too few
	Steady   []WayTraffic `json:"steady"`
	Smallest Smallest     `json:"smallest"`           // what has the fewest bytes: a pair, or a tunnel
	Month    []WayMonth   `json:"month"`              // 30 days of such traffic; null: the capture says too little
	NoMonth  string       `json:"no_month,omitempty"` // why it is null
}

// Smallest is which of a pair and the tunnels has the fewest bytes: first_contact, zlib or zstd.
// The pair is the one with clients by the rule.
type Smallest struct {
	First  Way `json:"first"`            // from the first call on
	Steady Way `json:"steady,omitempty"` // were all calls as those of the second half are
}

// smallest compares what ways take.
func smallest(of *[ways]traffic) Way {
	return names[slices.MinFunc([]int{firstContact, zlibbed, zstded}, func(i, j int) int {
		return cmp.Compare(of[i].Bytes, of[j].Bytes)
	})]
}

// WayTraffic is what travels by one way, each message in packets of its own.
type WayTraffic struct {
	// plain, kept, gzip, dcz, zlib, zstd, first_contact, by_connection, met_before or
	// by_connection_met
	Way     Way   `json:"way"`
	Bytes   int64 `json:"bytes"`   // with 40 for the headers of each packet
	Packets int64 `json:"packets"` // in both directions
}

// OperationCost are the calls of one operation.
type OperationCost struct {
	Name          string       `json:"operation"`      // local name; - if no body shows one
	Namespace     string       `json:"namespace"`      // of the name
	Calls         int          `json:"calls"`          // requests with their replies
	ServerSeconds float64      `json:"server_seconds"` // as above, of these calls
	Ways          []WayTraffic `json:"ways"`           // what all of them take
	Smallest      Way          `json:"smallest"`       // as above, from the first call on
}

// OnLink is what calls take on one link.
type OnLink struct {
	Link       string            `json:"link"`            // the profile
	Bandwidth  int64             `json:"bits_per_second"` // in each direction
	RTT        float64           `json:"rtt_seconds"`     // round trip of an empty line
	Ways       []WayOnLink       `json:"ways"`            // what all calls take
	Operations []OperationOnLink `json:"operations"`      // in the order of those above
}

// WayOnLink is what all calls take on a link by one way.
type WayOnLink struct {
	Way     Way   `json:"way"`     // as above
	Bytes   int64 `json:"bytes"`   // as above, but messages that wait for the line share packets
	Packets int64 `json:"packets"` // in both directions
	// time from requests to the ends of their replies, of all calls
	Seconds float64 `json:"seconds"`
	Call    float64 `json:"call_seconds"` // the same a call
	// the link cannot carry the traffic at the pace of the capture: all figures of it are 0
	TooThin bool `json:"too_thin,omitempty"`
}

// OperationOnLink are the calls of one operation on a link.
type OperationOnLink struct {
	Name string       `json:"operation"` // as above
	Ways []WaySeconds `json:"ways"`      // the times
}

// WaySeconds is the time of a call by one way.
type WaySeconds struct {
	Way  Way     `json:"way"`          // as above
	Call float64 `json:"call_seconds"` // from the request to the end of the reply; 0: the link is too thin
}

// WayMonth is what 30 days take by one way.
type WayMonth struct {
	Way       Way     `json:"way"`       // as above
	Megabytes float64 `json:"megabytes"` // millions of bytes
	Cost      float64 `json:"cost"`      // of them, at the price per megabyte
}
