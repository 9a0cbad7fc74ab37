// Package ends measures what messages cost from end to end, in processor time of both ends, beside
// what else carries messages. Each contestant is a process of its own with one processor, so that
// no one's memory or garbage is another's; the processes take turns, round by round.
package ends

import (
	"context"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

// pathway is one way to carry messages.
type pathway struct {
	name string
	// oneWay: messages have no reply; they count once they have arrived.
	oneWay bool
	open   func(ctx context.Context, messages [][]byte) (*contestant, error)
}

// contestant has both ends of a way, in one process.
type contestant struct {
	// carry carries so many messages, and waits until they and their replies have arrived.
	carry func(n int) error
	close func() error
}

// The ways by their names in the report.
const (
	RawTCP       = "raw TCP, 64 bytes"
	WebSocket    = "WebSocket"
	GRPCBidi     = "gRPC bidirectional stream"
	GRPCUnary    = "gRPC unary"
	PlainHTTP    = "HTTP/1.1, kept alive"
	H2C          = "HTTP/2 cleartext"
	NATSRequest  = "NATS request"
	HHFRStream   = "hhfr, a handler of the stream"
	HHFRClient   = "hhfr.Client and hhfr.Server"
	HHFRDropIn   = "hhfr.Transport and hhfr.Handler"
	HHFRPipeline = "hhfr, 64 calls in flight"

	Framed         = "bufio, length and bytes"
	NATSPublish    = "NATS publish"
	GRPCSend       = "gRPC client stream"
	HHFRSend       = "hhfr Send"
	HHFRSendCrowd  = "hhfr Send, 16 producers"
	crowd          = 16
	inFlight       = 64
	rawLength      = 64
	longestMessage = 1 << 20
)

// ways are all, in the order of the report.
var ways = []pathway{
	{name: RawTCP, open: openRaw},
	{name: WebSocket, open: openWebSocket},
	{name: GRPCBidi, open: openBidi},
	{name: GRPCUnary, open: openUnary},
	{name: PlainHTTP, open: openHTTP},
	{name: H2C, open: openH2C},
	{name: NATSRequest, open: openNATSRequest},
	{name: HHFRStream, open: openStream},
	{name: HHFRClient, open: openClient},
	{name: HHFRDropIn, open: openDropIn},
	{name: HHFRPipeline, open: openPipeline},

	{name: Framed, oneWay: true, open: openFramed},
	{name: NATSPublish, oneWay: true, open: openNATSPublish},
	{name: GRPCSend, oneWay: true, open: openGRPCSend},
	{name: HHFRSend, oneWay: true, open: sendBy(1)},
	{name: HHFRSendCrowd, oneWay: true, open: sendBy(crowd)},
}

// sample is what one turn took, per message; in nanoseconds.
type sample struct {
	Processor float64 `json:"processor_ns"`
	Time      float64 `json:"time_ns"`
}

// measure carries messages for at least so long.
func (c *contestant) measure(least time.Duration) (sample, error) {
	began, used, n := time.Now(), clock.Processor(), 0
	for batch := 16; ; batch *= 2 {
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
