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
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// Way is how a session's messages travel.
type Way string

const (
	// HHFR negotiates and streams.
	HHFR Way = "hhfr"
	// SOAPNew posts each message over a connection of its own, as the papers do.
	SOAPNew Way = "soap-new"
	// SOAPKept posts all messages over one connection.
	SOAPKept Way = "soap-kept"
)

// Ways are all of them, in the order of reports.
var Ways = []Way{HHFR, SOAPNew, SOAPKept}

// Cell is one session. Times are those of the link, in milliseconds; octets those on the link, with 40 for the headers of each packet.
type Cell struct {
	Service  string  `json:"service"`            // concat or sum
	Way      Way     `json:"way"`                // hhfr, soap-new (a connection for each message) or soap-kept
	Size     int     `json:"size"`               // items in a message
	N        int     `json:"n"`                  // messages
	Millis   float64 `json:"ms"`                 // of the whole session, connections and negotiation included, until the last octet of the last reply
	Setup    float64 `json:"setup_ms"`           // before the first message
	Expected float64 `json:"expected_ms"`        // octets by bandwidth, and round trips
	Sent     int64   `json:"sent_octets"`        // to the server
	Received int64   `json:"received_octets"`    // from it
	Speed    float64 `json:"speed"`              // how many times faster than the link the clock ran
	CPU      float64 `json:"cpu_share"`          // of the time, as lived through, that this process computed; -1 where the system does not tell
	Paper    float64 `json:"paper_ms,omitempty"` // what the papers measured
}

// Off is how far the session's time is from what was expected, as a share of that.
func (c Cell) Off() float64 { return (c.Millis - c.Expected) / c.Expected }

// Good tells whether the time is that of the link: within [MaxOff] of what was expected, and computing no more than [MaxCPU].
func (c Cell) Good() bool { return math.Abs(c.Off()) <= MaxOff && c.CPU <= MaxCPU }

// session is one cell.
type session struct {
	service string
	size, n int
	way     Way
	url     string
	speed   float64
	profile link.Profile
}

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
	l, err := link.Relay(ticks, s.profile)
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
	send, rounds := s.post(client), 1
	var hhfr *negotiate.Session
	switch s.way {
	case HHFR:
		store := memory.New(memory.Config{})
		defer func() { _ = store.Close() }()
		hhfr, err = negotiate.Dial(ctx, s.url, negotiate.Config{HTTPClient: client, Transports: map[string]streamer.Transport{"tcp": l.Over(tcp.Transport{})}, Store: store, Coders: coders(store),
			RequireHHFR: true, Clock: ticks, Timeout: time.Hour})
		if err != nil {
			return c, err
		}
		defer func() { _ = hhfr.Close() }()
		send, rounds = s.call(hhfr), 4 // connection, offer, connection, hello
	case SOAPNew:
		rounds = s.n
	case SOAPKept:
	}
	setup := ticks.Since(began)
	for _, m := range messages {
		if err := send(ctx, m); err != nil {
			return c, err
		}
	}
	took := ticks.Since(began)
	st := l.Stats()
	return Cell{Service: s.service, Way: s.way, Size: s.size, N: s.n, Millis: millis(took), Setup: millis(setup), Expected: millis(l.Expected(rounds + s.n)), Sent: st.Up.Wire, Received: st.Down.Wire}, nil
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

func (s *session) post(client *http.Client) func(context.Context, []byte) error {
	return func(ctx context.Context, m []byte) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(m))
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
