package flow

import "github.com/hhfr/hhfr/internal/fault"

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// NoCapture: the input is neither pcap nor pcapng, nor one of them in gzip.
	NoCapture Code = iota + 1
	// Truncated: the input ends inside a packet or block.
	Truncated
	// Malformed: the input is damaged from an offset on.
	Malformed
	// ReadFailed: the input could not be read.
	ReadFailed
)

var codeNames = map[Code]string{
	NoCapture:  "not a capture",
	Truncated:  "capture is cut off",
	Malformed:  "capture is damaged",
	ReadFailed: "reading the capture",
}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package. At is an offset in the capture, after gzip, in bytes: the
// beginning of the packet or block that could not be read.
type Error = fault.At[Code]
