// Package experiment is the file of what bench measured: lines of JSON, each a [Measured], as
// docs/bench.md describes them.
package experiment

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Version is that of the form. Fields are added, never changed or removed.
const Version = 1

// Measured is a line of the file: one of its fields. What follows an environment was measured
// there.
type Measured struct {
	// where and how a run measured, its first record; what follows was measured there
	Environment *Environment `json:"environment,omitempty"`
	// one whole session: from nothing to its last reply
	Session *SessionRow `json:"session,omitempty"`
	// one measurement of a cost beside the messages
	Overhead *OverheadRow `json:"overhead,omitempty"`
	// the memory of one message of floats
	Memory *MemoryRow `json:"memory,omitempty"`
	// one run of many clients against a service
	Load *LoadRow `json:"load,omitempty"`
	// what disturbed the run before it, its last record
	Noise *Noise `json:"noise,omitempty"`
}

// Environment is where and how a run measured; its first record.
type Environment struct {
	Version int       `json:"version"` // 1
	Started time.Time `json:"started"` // RFC 3339
	// the command line: its words after the program's name
	Arguments []string `json:"arguments"`
	Machine   Computer `json:"machine"` // this computer
	// the peer, as it tells; none: it is in this process, or does not tell
	Peer *Computer `json:"peer,omitempty"`
}

// Computer is a computer with hhfr on it. What its system does not tell is left out.
type Computer struct {
	Program      string   `json:"program"`                 // version of hhfr
	Go           string   `json:"go"`                      // version of Go
	System       string   `json:"system"`                  // as GOOS/GOARCH
	Kernel       string   `json:"kernel,omitempty"`        // version of the system
	Model        string   `json:"model,omitempty"`         // of the device
	Processor    string   `json:"processor,omitempty"`     // its name
	Processors   int      `json:"processors"`              // that the program may use
	MHz          float64  `json:"mhz,omitempty"`           // clock of the fastest processor now
	MaxMHz       float64  `json:"max_mhz,omitempty"`       // its clock at most
	MemoryOctets int64    `json:"memory_octets,omitempty"` // all of the machine
	Celsius      *float64 `json:"celsius,omitempty"`       // of the hottest zone
	// 0 to 100
	BatteryPercent *float64 `json:"battery_percent,omitempty"`
	// the battery is being charged, or full
	Charging *bool `json:"charging,omitempty"`
	// runnable tasks, mean of a minute
	LoadAverage *float64 `json:"load_average,omitempty"`
}

// SessionRow is one whole session: from nothing to its last reply.
type SessionRow struct {
	Service string `json:"service"` // concat, sum or echo; file: messages of files
	Way     string `json:"way"`     // how its messages travel
	Size    int    `json:"size"`    // items in a message
	N       int    `json:"n"`       // messages
	Repeat  int    `json:"repeat"`  // from 1
	// the emulated link, as in the command line
	Link   string  `json:"link,omitempty"`
	Peer   string  `json:"peer,omitempty"` // URL; no link and no peer: within the process
	Millis float64 `json:"ms"`             // time of the whole session
	// of it, before the first message
	SetupMillis float64 `json:"setup_ms"`
	// on the network, below TLS and with heads: by the client
	SentOctets     int64 `json:"sent_octets"`
	ReceivedOctets int64 `json:"received_octets"`
	// processor time of this process; below 0: not known
	ComputeMillis float64 `json:"compute_ms"`
	// why the time does not count
	Doubt string `json:"doubt,omitempty"`
}

// OverheadRow is one measurement of a cost beside the messages, by the names of the papers' model.
type OverheadRow struct {
	Name           string  `json:"name"`            // Oa-set, Oa-get, Ob or Oc
	Repeat         int     `json:"repeat"`          // from 1
	Link           string  `json:"link,omitempty"`  // as of a session
	Peer           string  `json:"peer,omitempty"`  // likewise
	Millis         float64 `json:"ms"`              // what it takes
	SentOctets     int64   `json:"sent_octets"`     // on the network, by the client
	ReceivedOctets int64   `json:"received_octets"` // likewise
}

// MemoryRow is the memory that one message of floats takes, from their array to the reply.
type MemoryRow struct {
	Way        string `json:"way"`            // first-call or soap-kept
	Size       int    `json:"size"`           // floats, of 4 bytes
	Peer       string `json:"peer,omitempty"` // URL; none: a server within the process, whose memory counts as well
	PeakOctets int64  `json:"peak_octets"`    // on the heap beyond what was there before, at most
	// size is that of the largest array whose message takes no more, within 3 %
	LimitOctets int64 `json:"limit_octets,omitempty"`
}

// LoadRow is one run of many clients against a service.
type LoadRow struct {
	Peer    string `json:"peer"`    // URL
	Service string `json:"service"` // geoip, echo or sum; file: a message of a file
	Way     string `json:"way"`     // how requests travel
	Clients int    `json:"clients"` // at once; at a rate the most requests in flight
	// intended requests a second; 0: each client sends as soon as it has its reply
	Rate    float64 `json:"rate,omitempty"`
	Repeat  int     `json:"repeat"`  // from 1
	Seconds float64 `json:"seconds"` // how long it took
	// requests that ended, by whatever, and those whose answer is right
	Responses  int64 `json:"responses"`
	Successful int64 `json:"successful"`
	// what failed, by kind: refused, reset, timed out, fault, wrong answer, status, other
	Errors map[string]int64 `json:"errors,omitempty"`
	// what the first error of each kind said
	Examples map[string]string `json:"examples,omitempty"`
	// of what was to be sent at a rate: not sent at all, and sent late
	Unsent int64 `json:"unsent,omitempty"`
	Late   int64 `json:"late,omitempty"`
	// of those that succeeded, from the time that they were to be sent; 0: none succeeded
	MeanMillis float64 `json:"mean_ms"`
	P50Millis  float64 `json:"p50_ms"`
	P90Millis  float64 `json:"p90_ms"`
	P99Millis  float64 `json:"p99_ms"`
	P999Millis float64 `json:"p999_ms"`
	MaxMillis  float64 `json:"max_ms"`
	// mean that the service says it worked; below 0: it does not say
	ServerMillis float64 `json:"server_ms"`
	// on the network, by the clients
	SentOctets     int64 `json:"sent_octets"`
	ReceivedOctets int64 `json:"received_octets"`
	// share of all processors' time that the generator took; below 0: not known
	GeneratorShare float64 `json:"generator_share"`
	// why the row does not count
	Doubt string `json:"doubt,omitempty"`
	// response times: upper bounds in ms and how many are not above them but above the bound before
	Histogram []Bar `json:"histogram,omitempty"`
	// what happened in each second
	Course []Second `json:"course,omitempty"`
}

// ErrorPercent is the share of requests whose answer was not right, in percent.
func (r *LoadRow) ErrorPercent() float64 {
	if r.Responses == 0 {
		return 0
	}
	return 100 * float64(r.Responses-r.Successful) / float64(r.Responses)
}

// PerSecond is how many right answers came in a second.
func (r *LoadRow) PerSecond() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return float64(r.Successful) / r.Seconds
}

// Bar is a part of a histogram.
type Bar struct {
	Millis float64 `json:"ms"`    // the upper bound
	Count  int64   `json:"count"` // not above it, but above the bound before
}

// Second is what happened in one second of a run.
type Second struct {
	At         int              `json:"at"`               // seconds from the start
	Successful int64            `json:"successful"`       // right answers
	Errors     map[string]int64 `json:"errors,omitempty"` // by kind
}

// Noise is what disturbed the run before it; its last record.
type Noise struct {
	// times in which nothing of the process ran, each of at least 100 ms, and the longest
	Pauses        int     `json:"pauses"`
	LongestMillis float64 `json:"longest_ms"`
	// what the clock of the day was set by; a sleep of the machine is a pause and a jump
	ClockJumpMillis float64 `json:"clock_jump_ms"`
	// share of all processors' time that other processes took; below 0: not known
	OthersShare float64 `json:"others_share"`
	// of the hottest zone, at the end
	Celsius *float64 `json:"celsius,omitempty"`
	// the processor's clock at the end
	MHz float64 `json:"mhz,omitempty"`
}

// Read calls f with each record. Errors are those of in and of f, and name the line that is no
// record or belongs to a later version.
func Read(in io.Reader, f func(Measured) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	n, begun := 0, false
	for lines.Scan() {
		n++
		var r Measured
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("line %d is no record of a measurement: %w", n, err)
		}
		switch e := r.Environment; {
		case e != nil && e.Version != Version:
			return fmt.Errorf("line %d: records of version %d, this program reads version %d", n, e.Version, Version)
		case e != nil:
			begun = true
		case !begun:
			return fmt.Errorf("line %d: no environment before the first measurement, which bench writes", n)
		case r == Measured{}:
			continue // a kind that is added later
		}
		if err := f(r); err != nil {
			return err
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d is longer than any record", n+1)
	case err != nil:
		return err
	case !begun:
		return errors.New("no record of a measurement")
	}
	return nil
}
