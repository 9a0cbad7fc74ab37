package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/hhfr/hhfr/internal/clock"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/workload"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/peer"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Way is how a session's messages travel.
type Way string

const (
	// HHFR negotiates and streams; each message waits for the reply to the one before.
	HHFR Way = "hhfr"
	// HHFRQueued is the same without waiting: messages leave by the stream's queue, as in the papers' design.
	HHFRQueued Way = "hhfr-queued"
	// SOAPNew posts each message over a connection of its own, as the papers do.
	SOAPNew Way = "soap-new"
	// SOAPKept posts all messages over one connection.
	SOAPKept Way = "soap-kept"
)

// Ways are all of them, in the order of reports.
var Ways = []Way{HHFR, HHFRQueued, SOAPNew, SOAPKept}

// Cell is one session. Times are those of the link, in milliseconds; octets those on the link, with 40 for the headers of each packet.
type Cell struct {
	Service  string  `json:"service"`            // concat or sum
	Way      Way     `json:"way"`                // hhfr, hhfr-queued (messages do not wait for replies), soap-new (a connection for each message) or soap-kept
	Size     int     `json:"size"`               // items in a message
	N        int     `json:"n"`                  // messages
	Millis   float64 `json:"ms"`                 // of the whole session, connections and negotiation included, until the last octet of the last reply
	Setup    float64 `json:"setup_ms"`           // before the first message
	Expected float64 `json:"expected_ms"`        // octets by bandwidth, and round trips; of hhfr-queued both directions at once, and one round trip for all messages
	Sent     int64   `json:"sent_octets"`        // to the server
	Received int64   `json:"received_octets"`    // from it
	Speed    float64 `json:"speed"`              // how many times faster than the link the clock ran
	CPU      float64 `json:"cpu_share"`          // of the time, as lived through, that this process computed; -1 where the system does not tell
	Paper    float64 `json:"paper_ms,omitempty"` // what the papers measured
	Lossy    bool    `json:"lossy,omitempty"`    // the link loses or reorders datagrams: what that costs is in ms and in the octets, and not in expected_ms but for the octets
}

// Off is how far the session's time is from what was expected, as a share of that.
func (c Cell) Off() float64 { return (c.Millis - c.Expected) / c.Expected }

// Good tells whether the time is that of the link: within [MaxOff] of what was expected, unless the link loses datagrams, and computing no more than [MaxCPU].
func (c Cell) Good() bool { return (c.Lossy || math.Abs(c.Off()) <= MaxOff) && c.CPU <= MaxCPU }

// session is one cell.
type session struct {
	service   string
	size, n   int
	way       Way
	transport string
	there     known
	speed     float64
	profile   link.Profile
}

// url is that of the service.
func (s *session) url(server *peer.Server) string { return server.URL("/" + s.service) }

// tries is how often a session is lived through that is not good, each time at half the speed: other work on the machine may have come between.
const tries = 3

// lived lives through a session, again if need be.
func (s *session) lived(ctx context.Context) (c Cell, err error) {
	for range tries {
		began, used := time.Now(), clock.Processor()
		if c, err = s.live(ctx); ctx.Err() != nil {
			return c, context.Cause(ctx)
		} else if err != nil {
			return c, err
		}
		c.Speed, c.CPU = s.speed, -1
		if used >= 0 {
			c.CPU = float64(clock.Processor()-used) / float64(time.Since(began))
		}
		if c.Good() {
			break
		}
		s.speed /= 2
	}
	return c, nil
}

// live opens the link, sends the messages one after the other, and counts.
func (s *session) live(ctx context.Context) (c Cell, err error) {
	ticks := clock.Scaled(s.speed)
	server, err := s.there.start(ctx, ticks)
	if err != nil {
		return c, err
	}
	defer func() { _ = server.Close() }()
	l, err := s.open(ticks)
	if err != nil {
		return c, err
	}
	defer func() { _ = l.Close() }()
	transport := &http.Transport{DialContext: l.DialContext((&net.Dialer{}).DialContext), DisableKeepAlives: s.way == SOAPNew, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	messages, err := s.messages()
	if err != nil {
		return c, err
	}
	began := ticks.Now()
	var hhfr *negotiate.Session
	rounds := 1 + s.n // the connection
	switch s.way {
	case HHFR, HHFRQueued:
		store := memory.New(memory.Config{})
		defer func() { _ = store.Close() }()
		hhfr, err = negotiate.Dial(ctx, s.url(server), negotiate.Config{HTTPClient: client, Transports: map[string]streamer.Transport{s.transport: l.streams()}, Store: store, Coders: coders(store),
			RequireHHFR: true, Clock: ticks, Timeout: time.Hour})
		if err != nil {
			return c, err
		}
		defer func() { _ = hhfr.Close() }()
		rounds = setupRounds + s.n
	case SOAPNew:
		rounds = 2 * s.n
	case SOAPKept:
	}
	setup, before := ticks.Since(began), l.stats()
	if s.way == HHFRQueued {
		err = queue(ctx, hhfr, messages)
	} else {
		send := s.post(client, s.url(server))
		if hhfr != nil {
			send = s.call(hhfr)
		}
		for i := 0; i < len(messages) && err == nil; i++ {
			err = send(ctx, messages[i])
		}
	}
	if err != nil {
		return c, err
	}
	took, st := ticks.Since(began), l.stats()
	expected := st.up.Busy + st.down.Busy + time.Duration(rounds)*s.profile.RTT
	if s.way == HHFRQueued {
		expected = before.up.Busy + before.down.Busy + (setupRounds+1)*s.profile.RTT + s.bothWays(since(before.up, st.up), since(before.down, st.down))
	}
	return Cell{Service: s.service, Way: s.way, Size: s.size, N: s.n, Millis: millis(took), Setup: millis(setup), Expected: millis(expected), Sent: st.up.Wire, Received: st.down.Wire,
		Lossy: s.profile != s.profile.Reliable()}, nil
}

func since(before, now link.Direction) link.Direction {
	return link.Direction{Octets: now.Octets - before.Octets, Busy: now.Busy - before.Busy}
}

// bothWays is how long the link takes for messages that do not wait for each other: both directions at once, but for the first request or the last reply,
// of which nothing is there before all packets are that it has a part in.
func (s *session) bothWays(up, down link.Direction) time.Duration {
	less := up
	if down.Busy < up.Busy {
		less = down
	}
	return max(up.Busy, down.Busy) + min(less.Busy, s.profile.FullPackets(less.Octets/int64(s.n)))
}

// setupRounds are the round trips before the first message of a stream: connection, offer, connection, hello.
const setupRounds = 4

// queue sends messages one behind the other and reads the replies as they come.
func queue(ctx context.Context, h *negotiate.Session, messages [][]byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := make(chan *negotiate.Pending, len(messages))
	go func() {
		defer close(begun)
		for _, m := range messages {
			p, err := h.Begin(ctx, streamer.NewMessage(nil, m))
			if err != nil {
				cancel(err)
				return
			}
			begun <- p
		}
	}()
	var failed error
	for p := range begun {
		reply, err := p.Reply(ctx)
		var body []byte
		if err == nil {
			body, err = reply.ReadAll(1 << 20)
		}
		if err = isReply(body, err); err != nil && failed == nil {
			failed = err
			cancel(err)
		}
	}
	if failed == nil && ctx.Err() != nil {
		failed = context.Cause(ctx)
	}
	return failed
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

var items = regexp.MustCompile(`<item>[^<]*</item>`)

// messages makes the requests, with the values of workloads W1 and W2.
func (s *session) messages() (list [][]byte, err error) {
	source := workload.Strings(1, s.size)
	if s.service == "sum" {
		source = workload.Floats(1, s.size)
	}
	for m := range source {
		body := fmt.Sprintf(`<%s xmlns="%s">%s</%s>`, s.service, peer.Namespace, bytes.Join(items.FindAll(m, -1), nil), s.service)
		wrapped, err := soap.Wrap(soap.V11, []byte(body))
		if err != nil {
			return nil, err
		}
		if list = append(list, wrapped); len(list) == s.n {
			break
		}
	}
	return list, nil
}

func (s *session) call(h *negotiate.Session) func(context.Context, []byte) error {
	return func(ctx context.Context, m []byte) error {
		reply, err := h.Call(ctx, streamer.NewMessage(nil, m))
		if err != nil {
			return err
		}
		body, err := reply.ReadAll(1 << 20)
		return isReply(body, err)
	}
}

func (s *session) post(client *http.Client, url string) func(context.Context, []byte) error {
	return func(ctx context.Context, m []byte) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "text/xml; charset=utf-8")
		request.Header.Set("SOAPAction", `""`)
		reply, err := client.Do(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(reply.Body)
		return isReply(body, errors.Join(err, reply.Body.Close()))
	}
}

func isReply(body []byte, err error) error {
	if err == nil && (soap.Recognize(body).Fault || !bytes.Contains(body, []byte("result"))) {
		return fmt.Errorf("not a reply: %.200s", body)
	}
	return err
}
