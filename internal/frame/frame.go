// Package frame has the bytes of the hhfr wire format (docs/wire-format.md, sections 2 to 8): the
// frames, and what sender, receiver and decoder of a capture must all count in the same way: lane
// and exchange numbers ([Numbering]), message checks ([Checks]), the parts of payloads
// ([MessageState]), the pieces of shapes ([Pieces]). It knows no connection and no clock. Nothing
// in it is safe for concurrent use of one value.
package frame

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

const (
	// maxBody is the longest body of a frame that is no data frame, in octets (section 2).
	maxBody = 65536
	// MaxPayload is the longest payload of a data frame, in octets: the most that a hello may state
	// (section 3).
	MaxPayload = 16384
	// MinPayload is the least that a hello may state as max fragment, in octets.
	MinPayload = 512
	// formatVersion is the version of the format.
	formatVersion = 1
	// MaxSyncOctets, MaxSyncMessages and MaxSyncLanes bound what a direction carries between two
	// syncs (section 6): octets, whole messages, and lanes on which messages began.
	MaxSyncOctets   = 1 << 20
	MaxSyncMessages = 16384
	MaxSyncLanes    = 1024
)

// Kind is the kind of a frame. Values from 1 to 63 are those of the wire; data frames, which have
// no kind there, are 0.
type Kind uint8

// The kinds of section 2.
const (
	KindData   Kind = 0
	KindHello  Kind = 1
	KindShape  Kind = 2
	KindSync   Kind = 3
	KindAck    Kind = 4
	KindWindow Kind = 5
	KindCancel Kind = 6
	KindClose  Kind = 7
	KindIdle   Kind = 8
	KindFlush  Kind = 9
	KindKept   Kind = 10
	KindResync Kind = 11
)

const (
	dataBit  = 0x80
	skipBit  = 0x40
	kindMask = 0x3f
)

// Frame is one frame: [Data], [Hello], [Shape], [Sync], [Ack], [Window], [Cancel], [Close], [Idle],
// [Flush], [Kept], [Resync] or [Skipped], each by value.
type Frame interface {
	// Kind is the kind of the frame.
	Kind() Kind
	// AppendTo appends the octets of the frame. What it appends parses back to the same frame if
	// the fields are within the bounds of the format.
	AppendTo(b []byte) []byte
}

// unlessShort is nil for an input that just ends too early.
func unlessShort(err error) error {
	e := own(err)
	if errors.Is(e, &Error{Code: Truncated}) {
		return nil
	}
	return e
}

// appendFramed appends first (an octet or a mark), the length, and the body that fill appends.
func appendFramed(b, first []byte, fill func([]byte) []byte) []byte {
	b = append(b, first...)
	start := len(b)
	b = fill(b)
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(len(b)-start))
	b = append(b, length[:n]...)
	copy(b[start+n:], b[start:len(b)-n])
	copy(b[start:], length[:n])
	return b
}

// checkLen is the length of a check, in octets.
const checkLen = 4

// appendChecked is appendFramed, with a CRC over all that behind it: the own check of the frame.
func appendChecked(b, first []byte, fill func([]byte) []byte) []byte {
	start := len(b)
	b = appendFramed(b, first, func(b []byte) []byte { return append(fill(b), make([]byte, checkLen)...) })
	end := len(b) - checkLen
	binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[start:end], castagnoli))
	return b
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
