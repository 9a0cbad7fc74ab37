package demo

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// The paths to the server, in the order of the tour.
const (
	// SOAP is plain SOAP over one kept connection.
	SOAP = "soap"
	// Stream is a client that negotiates and streams.
	Stream = "stream"
	// Again is the same between peers that have met: they know the shapes.
	Again = "again"
	// Pair is plain SOAP at both ends, and a pair of proxies around the link that have not met.
	Pair = "pair"
)

// Ways are all of them.
var Ways = []string{SOAP, Stream, Again, Pair}

// SessionRun is one session over the link. Times are those of the link, in milliseconds; bytes are
// those on the link, with 40 for the headers of each packet.
type SessionRun struct {
	// soap (one kept connection), stream, again (a stream of peers that have met) or pair (of
	// proxies)
	Name        string  `json:"name"`
	Messages    int     `json:"messages"`        // requests, each with its reply, one after the other
	Millis      float64 `json:"ms"`              // of the whole session, connections and negotiation included
	Expected    float64 `json:"expected_ms"`     // time of the bytes, by bandwidth, and of the round trips
	RoundTrips  int     `json:"round_trips"`     // of connections, negotiation, hello and messages
	Connections int     `json:"connections"`     // over the link
	Sent        int64   `json:"sent_octets"`     // to the server
	Received    int64   `json:"received_octets"` // from it
	Speed       float64 `json:"speed"`           // how many times faster than the link the clock ran
	// share of the run's time that this process computed; -1 if the system does not report it
	CPU float64 `json:"cpu_share"`
	// number of messages after which it was faster than soap, and stayed so; left out: never
	BreakEven int    `json:"break_even,omitempty"`
	Capture   string `json:"capture,omitempty"` // file with what went over the link
	Octets    string `json:"octets,omitempty"`  // folder with the bytes of the stream alone
	Found     int    `json:"found,omitempty"`   // messages in the capture that are as they were sent
	Rebuilt   int    `json:"rebuilt,omitempty"` // the same from the bytes of the stream and the store
	Same      bool   `json:"same"`              // what came back, was found and was rebuilt is what was sent

	each []time.Duration // time at which each message ended
}

// Off is the difference between the session's time and the expected one, as a share of that.
func (w SessionRun) Off() float64 { return (w.Millis - w.Expected) / w.Expected }

// Good reports whether the time is that of the link: within [MaxOff] of the expected one, and
// computing no more than [MaxCPU].
func (w SessionRun) Good() bool { return math.Abs(w.Off()) <= MaxOff && w.CPU <= MaxCPU }

const (
	// tries is the maximum number of runs of a session that is not good: other work on the machine
	// may have interfered.
	tries = 3
)

// ways runs all sessions.
func (t *tour) ways(ctx context.Context) error {
	if len(t.sent) == 0 {
		return nil
	}
	var soap []time.Duration
	for _, name := range Ways {
		l, err := t.lived(ctx, name)
		if err == nil && name != SOAP {
			l.BreakEven = breakEven(soap, l.each)
			err = t.tell(ctx, l)
		}
		if err != nil {
			return fmt.Errorf("%s over the link: %w", name, err)
		}
		if name == SOAP {
			soap = l.each
		}
		if t.report.Ways = append(t.report.Ways, l.SessionRun); t.EachWay != nil {
			t.EachWay(l.SessionRun)
		}
	}
	return nil
}

// breakEven is the number of messages after which a way is faster, and stays so; 0: never.
func breakEven(soap, way []time.Duration) int {
	n := len(way)
	for n > 0 && way[n-1] < soap[n-1] {
		n--
	}
	if n == len(way) {
		return 0
	}
	return n + 1
}

// lived is a run, and its results.
type lived struct {
	SessionRun
	capture bytes.Buffer
	ends    *ends
}

// lived runs a session, again if need be.
func (t *tour) lived(ctx context.Context, name string) (l *lived, err error) {
	speed := t.Speed
	for range tries {
		l, err = t.live(ctx, name, speed)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil || l.Good() {
			break
		}
		speed /= 2
	}
	return l, err
}

// live opens a link and a path over it, sends the messages one after the other, and counts.
func (t *tour) live(ctx context.Context, name string, speed float64) (*lived, error) {
	ticks := clock.Scaled(speed)
	line, err := link.Relay(ticks, t.report.link)
	if err != nil {
		return nil, err
	}
	l := &lived{SessionRun: SessionRun{Name: name, Messages: len(t.sent), Speed: speed, CPU: -1, Same: true}}
	rec := pcapng.NewRecorder(&l.capture, ticks.Now)
	o := &opener{tour: t, line: line, clock: ticks, rec: rec}
	o.closers = append(o.closers, line.Close)
	began, from, used := ticks.Now(), time.Now(), clock.Processor()
	err = o.open(ctx, name)
	l.ends = o.ends
	for _, m := range t.sent {
		if err == nil {
			err = l.send(ctx, o, m)
			l.each = append(l.each, ticks.Since(began))
		}
	}
	if err == nil {
		l.RoundTrips = o.roundTrips + l.Messages
		if used >= 0 {
			l.CPU = float64(clock.Processor()-used) / float64(time.Since(from))
		}
		l.Millis, l.Expected = millis(l.each[len(l.each)-1]), millis(line.Expected(l.RoundTrips))
		s := line.Stats()
		l.Sent, l.Received, l.Connections = s.Up.Wire, s.Down.Wire, s.Connections
	}
	if closed := o.close(); err == nil {
		err = closed
	}
	if recorded := rec.Close(); err == nil {
		err = recorded
	}
	return l, err
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// send sends one message and checks its reply.
func (l *lived) send(ctx context.Context, o *opener, m TourMessage) error {
	head, err := sender.RequestHead(peer.EchoPath, m.Body, "", nil)
	if err != nil {
		return err
	}
	reply, err := o.session.Call(ctx, &streamer.Message{Head: head, Body: bytes.NewReader(m.Body)})
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	body, err := reply.ReadAll(1 << 30)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	l.Same = l.Same && bytes.Equal(body, m.Body)
	return nil
}
