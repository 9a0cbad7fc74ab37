// Package bench measures what hhfr brings: [Session] repeats the papers' experiments on an emulated link.
package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"time"

	"github.com/hhfr/hhfr/internal/clock"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/workload"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
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

// SessionConfig says which sessions to live through. The zero value is the papers' experiment.
type SessionConfig struct {
	// Services are `concat` (tables 2 and 3 of paper 2) and `sum` (tables 4 and 5); nil: both.
	Services []string
	// Sizes are items in a message, Counts messages in a session; nil: those of the papers for each service.
	Sizes, Counts []int
	// Link is an emulated link as in the command line; empty: 14k4.
	Link string
	// Speed is how many times faster than the link the clock runs; 0: 20, at which a wait that ends a millisecond late costs a fiftieth of a second.
	Speed int
	// Each, if given, hears of every cell as it is done.
	Each func(Cell)
}

// Cell is one session. Times are those of the link, in milliseconds.
type Cell struct {
	Service string `json:"service"`
	Way     Way    `json:"way"`
	Size    int    `json:"size"`
	N       int    `json:"n"`
	// Millis is the time of the whole session, connections and negotiation included, until the last octet of the last reply; Setup is that before the first message.
	Millis float64 `json:"ms"`
	Setup  float64 `json:"setup_ms"`
	// Expected is octets by bandwidth, and round trips.
	Expected float64 `json:"expected_ms"`
	// Sent and Received are octets on the link, with 40 for the headers of each packet.
	Sent     int64 `json:"sent_octets"`
	Received int64 `json:"received_octets"`
	// Paper is what the papers measured, 0 where they did not.
	Paper float64 `json:"paper_ms,omitempty"`
}

// Off is how far the session's time is from what was expected, as a share of that.
func (c Cell) Off() float64 { return (c.Millis - c.Expected) / c.Expected }

// Model is what the cells of one service and size say in the papers' cost model (paper 2, section 5.1): t1 and t2 are milliseconds a message with hhfr and with SOAP, Setup is Oa + Ob, and the rest how many messages
// it takes until hhfr is faster. The papers' numbers stand beside, 0 where they have none.
type Model struct {
	Service        string  `json:"service"`
	Size           int     `json:"size"`
	T1             float64 `json:"t1_ms"`
	T2New          float64 `json:"t2_new_ms"`
	T2Kept         float64 `json:"t2_kept_ms"`
	Setup          float64 `json:"oa_ob_ms"`
	BreakEvenNew   float64 `json:"break_even_new"`
	BreakEvenKept  float64 `json:"break_even_kept"`
	PaperBreakEven float64 `json:"paper_break_even,omitempty"`
}

// Report is what [Session] found. CPU is the share of the link's time, as lived through, that this process computed; -1 where the system does not tell.
type Report struct {
	Link   string  `json:"link"`
	Speed  int     `json:"speed"`
	CPU    float64 `json:"cpu_share"`
	Cells  []Cell  `json:"cells"`
	Models []Model `json:"models"`
}

// MaxCPU is the share of the link's time above which computing would count as link: then the clock must run slower.
const MaxCPU = 0.05

// ErrTooFast says that the clock ran so fast that computing took a share of the link's time.
var ErrTooFast = errors.New("this machine computes too slowly for the clock")

// Session lives through the sessions, one after the other, and reports. The server is in the same process, at the far end of the link.
func Session(ctx context.Context, cfg SessionConfig) (*Report, error) {
	if len(cfg.Services) == 0 {
		cfg.Services = []string{"concat", "sum"}
	}
	if cfg.Link == "" {
		cfg.Link = "14k4"
	}
	if cfg.Speed == 0 {
		cfg.Speed = 20
	}
	profile, err := link.ParseProfile(cfg.Link)
	if err != nil {
		return nil, err
	}
	r := &Report{Link: cfg.Link, Speed: cfg.Speed}
	server, err := startServer(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Close() }()
	began, used := time.Now(), cpuTime()
	for _, service := range cfg.Services {
		p, known := papers[service]
		if !known {
			return nil, fmt.Errorf("no service %q to measure: concat and sum are", service)
		}
		sizes, counts := orElse(cfg.Sizes, p.sizes), orElse(cfg.Counts, p.counts)
		for _, size := range sizes {
			first := len(r.Cells)
			for _, way := range Ways {
				for _, n := range counts {
					s := session{service: service, size: size, n: n, way: way, url: server.URL("/" + service), clock: clock.Scaled(cfg.Speed), profile: profile}
					c, err := s.live(ctx)
					if err != nil {
						return r, fmt.Errorf("%s, %s, %d items, %d messages: %w", service, way, size, n, err)
					}
					c.Paper = p.time(way, size, n)
					if r.Cells = append(r.Cells, c); cfg.Each != nil {
						cfg.Each(c)
					}
				}
			}
			r.Models = append(r.Models, model(r.Cells[first:], p.breakEven[size]))
		}
	}
	if r.CPU = -1; used >= 0 {
		r.CPU = float64(cpuTime()-used) / float64(time.Since(began))
	}
	if r.CPU > MaxCPU {
		return r, fmt.Errorf("%w: %.0f %% of the link's time at speed %d", ErrTooFast, 100*r.CPU, cfg.Speed)
	}
	return r, nil
}

func orElse(list, standard []int) []int {
	if len(list) > 0 {
		return list
	}
	return standard
}

func startServer(ctx context.Context) (*peer.Server, error) {
	services, err := peer.NewServices(peer.Concat(), peer.Sum())
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	plain, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	streams, err := tcp.Transport{}.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	store := memory.New(memory.Config{})
	return peer.Start(peer.Config{HTTP: plain, Streams: map[string]net.Listener{"tcp": streams}, Services: services, Store: store, Coders: coders(store)})
}

func coders(store ctxstore.Store) negotiate.Coders {
	return negotiate.BookCoders(binary.NewBook(ctxstore.Shapes{Store: store}))
}

// session is one cell.
type session struct {
	service string
	size, n int
	way     Way
	url     string
	clock   clock.Clock
	profile link.Profile
}

// live opens the link, sends the messages one after the other, and counts.
func (s *session) live(ctx context.Context) (c Cell, err error) {
	l, err := link.Relay(s.clock, s.profile)
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
	began := s.clock.Now()
	send, rounds := s.post(client), 1
	var hhfr *negotiate.Session
	switch s.way {
	case HHFR:
		store := memory.New(memory.Config{})
		defer func() { _ = store.Close() }()
		hhfr, err = negotiate.Dial(ctx, s.url, negotiate.Config{HTTPClient: client, Transports: map[string]streamer.Transport{"tcp": l.Over(tcp.Transport{})}, Store: store, Coders: coders(store),
			RequireHHFR: true, Clock: s.clock, Timeout: time.Hour})
		if err != nil {
			return c, err
		}
		defer func() { _ = hhfr.Close() }()
		send, rounds = s.call(hhfr), 4 // connection, offer, connection, hello
	case SOAPNew:
		rounds = s.n
	case SOAPKept:
	}
	setup := s.clock.Since(began)
	for _, m := range messages {
		if err := send(ctx, m); err != nil {
			return c, err
		}
	}
	took := s.clock.Since(began)
	st := l.Stats()
	rounds += s.n
	expected := st.Up.Busy + st.Down.Busy + time.Duration(rounds)*s.profile.RTT
	return Cell{Service: s.service, Way: s.way, Size: s.size, N: s.n, Millis: millis(took), Setup: millis(setup), Expected: millis(expected), Sent: st.Up.Wire, Received: st.Down.Wire}, nil
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

// model fits the cost model to the cells of one service and size.
func model(cells []Cell, paper float64) Model {
	m := Model{Service: cells[0].Service, Size: cells[0].Size, PaperBreakEven: paper}
	slope := func(way Way) float64 {
		var first, last Cell
		for _, c := range cells {
			if c.Way != way {
				continue
			}
			if first.N == 0 || c.N < first.N {
				first = c
			}
			if c.N > last.N {
				last = c
			}
		}
		if last.N == first.N {
			return last.Millis / float64(max(last.N, 1))
		}
		return (last.Millis - first.Millis) / float64(last.N-first.N)
	}
	m.T1, m.T2New, m.T2Kept = slope(HHFR), slope(SOAPNew), slope(SOAPKept)
	for _, c := range cells {
		if c.Way == HHFR {
			m.Setup = c.Setup
		}
	}
	m.BreakEvenNew, m.BreakEvenKept = breakEven(m.Setup, m.T1, m.T2New), breakEven(m.Setup, m.T1, m.T2Kept)
	return m
}

// breakEven is (Oa + Ob) / (t2 - t1), 0 where hhfr never is faster.
func breakEven(setup, t1, t2 float64) float64 {
	if t2 <= t1 {
		return 0
	}
	return setup / (t2 - t1)
}
