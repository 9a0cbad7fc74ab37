// Package ends measures what messages cost from end to end, in processor time of both ends, beside
// what else carries messages. Each contestant is a process of its own with one processor, so that
// no one's memory or garbage is another's; the processes take turns, round by round.
package ends

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

// pathway is one way to carry messages.
type pathway struct {
	name string
	kind Kind
	open func(ctx context.Context, messages [][]byte) (*contestant, error)
}

// Kind is how messages are carried.
type Kind string

const (
	RoundTrip Kind = "round trip" // a call waits for the reply to the one before
	InFlight  Kind = "in flight"  // so many calls wait at a time
	OneWay    Kind = "one-way"    // messages have no reply; they count once they have arrived
)

// contestant has both ends of a way, in one process.
type contestant struct {
	// carry carries so many messages, a multiple of [inFlight], and waits until they and their
	// replies have arrived.
	carry func(n int) error
	close func() error
}

// The ways by their names in the report.
const (
	RawTCP      = "raw TCP, 64 bytes"
	WebSocket   = "WebSocket"
	GRPCBidi    = "gRPC bidirectional stream"
	GRPCUnary   = "gRPC unary"
	PlainHTTP   = "HTTP/1.1, kept alive"
	H2C         = "HTTP/2 cleartext"
	NATSRequest = "NATS request"
	HHFRClient  = "hhfr.Client.Call, hhfr.Server"
	HHFRDropIn  = "hhfr.Transport, hhfr.Handler"

	GRPCWindow      = "gRPC bidirectional stream, window of 64"
	HTTPCrowd       = "HTTP/1.1, 64 connections"
	HHFRClientCrowd = "hhfr.Client.Call, 64 in flight"
	HHFRDropInCrowd = "hhfr.Transport, hhfr.Handler, 64 in flight"

	Framed        = "bufio, length and bytes"
	NATSPublish   = "NATS publish"
	GRPCSend      = "gRPC client stream"
	HHFRSend      = "hhfr.Client.Send"
	HHFRSendCrowd = "hhfr.Client.Send, 16 producers"
	HHFRSendAll   = "hhfr.Client.SendAll, 64 at a time"

	crowd          = 16
	inFlight       = 64
	rawLength      = 64
	longestMessage = 1 << 20
)

// ways are all, in the order of the report.
var ways = []pathway{
	{RawTCP, RoundTrip, openRaw},
	{WebSocket, RoundTrip, openWebSocket},
	{GRPCBidi, RoundTrip, openBidi},
	{GRPCUnary, RoundTrip, openUnary},
	{PlainHTTP, RoundTrip, openHTTP},
	{H2C, RoundTrip, openH2C},
	{NATSRequest, RoundTrip, openNATSRequest},
	{HHFRClient, RoundTrip, calling(1)},
	{HHFRDropIn, RoundTrip, openDropIn(1)},
	{GRPCWindow, InFlight, openWindow},
	{HTTPCrowd, InFlight, openHTTPCrowd},
	{HHFRClientCrowd, InFlight, calling(inFlight)},
	{HHFRDropInCrowd, InFlight, openDropIn(inFlight)},
	{Framed, OneWay, openFramed},
	{NATSPublish, OneWay, openNATSPublish},
	{GRPCSend, OneWay, openGRPCSend},
	{HHFRSend, OneWay, sending(1, 1)},
	{HHFRSendCrowd, OneWay, sending(crowd, 1)},
	{HHFRSendAll, OneWay, sending(1, inFlight)},
}

// sample is what one turn took, per message; in nanoseconds.
type sample struct {
	Processor float64 `json:"processor_ns"`
	Time      float64 `json:"time_ns"`
}

// measure carries messages for at least so long.
func (c *contestant) measure(least time.Duration) (sample, error) {
	began, used, n := time.Now(), clock.Processor(), 0
	for batch := inFlight; ; batch *= 2 {
		if err := c.carry(batch); err != nil {
			return sample{}, err
		}
		n += batch
		if took := time.Since(began); took >= least {
			return sample{
				Processor: float64(clock.Processor()-used) / float64(n),
				Time:      float64(took) / float64(n),
			}, nil
		}
	}
}

// each returns a contestant that makes one call after the other, with the messages in turn.
func each(messages [][]byte, call func(message []byte) error, end func() error) *contestant {
	at := 0
	return &contestant{close: end, carry: func(n int) error {
		for range n {
			if err := call(messages[at%len(messages)]); err != nil {
				return err
			}
			at++
		}
		return nil
	}}
}

// crowded returns a contestant that makes calls from so many goroutines.
func crowded(callers int, messages [][]byte, call func(message []byte) error, end func() error) *contestant {
	if callers == 1 {
		return each(messages, call, end)
	}
	return &contestant{close: end, carry: func(n int) error {
		return byAll(callers, n, func(i int) error { return call(messages[i%len(messages)]) })
	}}
}

// byAll calls do for all numbers below n, from so many goroutines. Each ends with its first error.
func byAll(goroutines, n int, do func(i int) error) error {
	errs := make([]error, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := g; i < n && errs[g] == nil; i += goroutines {
				errs[g] = do(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
