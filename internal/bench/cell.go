package bench

import (
	"math"
	"time"
)

// Cell is one session. Times are those of the link, in milliseconds; bytes are those on the link,
// with 40 for the headers of each packet.
type Cell struct {
	Service string     `json:"service"` // concat, sum or echo; file: messages of files, echoed
	Way     SessionWay `json:"way"`     // how messages travel, as in the command line
	Size    int        `json:"size"`    // items in a message
	N       int        `json:"n"`       // messages
	// of the whole session, connections and negotiation included, until the last byte of the last
	// reply
	Millis float64 `json:"ms"`
	Setup  float64 `json:"setup_ms"` // before the first message
	// time of the bytes, by bandwidth, and of the round trips; for queued messages both directions
	// count at once, and one round trip for all
	Expected float64 `json:"expected_ms"`
	// no session with these bytes takes less: one connection, one round trip, and the bytes by
	// bandwidth, from the first message on only those of the busier direction
	Least    float64 `json:"least_ms"`
	Sent     int64   `json:"sent_octets"`     // to the server
	Received int64   `json:"received_octets"` // from it
	Speed    float64 `json:"speed"`           // how many times faster than the link the clock ran
	// share of the run's time that this process computed; -1 if the system does not report it
	CPU float64 `json:"cpu_share"`
	// processor time of this process, in milliseconds; -1 if the system does not report it
	Compute float64 `json:"compute_ms"`
	Repeat  int     `json:"repeat"`             // of this session, from 1
	Paper   float64 `json:"paper_ms,omitempty"` // what the papers measured
	// the link loses or reorders datagrams: the cost of that is in ms and in the bytes; expected_ms
	// has only that of the bytes
	Lossy bool `json:"lossy,omitempty"`
}

// Off is the difference between the session's time and the expected one, as a share of that.
func (c Cell) Off() float64 { return (c.Millis - c.Expected) / c.Expected }

// Good reports whether the time is that of the link: within [MaxOff] of the expected one, unless
// the link loses datagrams, and computing no more than [MaxCPU]. On a network nothing is expected.
func (c Cell) Good() bool {
	return c.Expected == 0 || (c.Lossy || math.Abs(c.Off()) <= MaxOff) && c.CPU <= MaxCPU
}

// FileService is the service to which messages of files go, to be echoed.
const FileService = "file"

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// LeftOut is what the peer does not have.
type LeftOut struct {
	What string `json:"what"` // how messages would travel, or a cost
	Why  string `json:"why"`
}

// MaxCPU is the share of the link's time above which computing would distort the times.
const MaxCPU = 0.05

const (

	// MaxOff is the maximum difference between a session's time and the time of its bytes and round
	// trips, as a share of that.
	MaxOff = 0.10
)
