// Package load measures a service under the requests of many clients: as the phones study did, in a
// closed loop, where each client sends as soon as it has its answer, and in an open loop, at a rate
// that does not depend on the answers.
package load

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/experiment"
	"github.com/hhfr/hhfr/pkg/clock"
)

// Config is what [Run] measures.
type Config struct {
	URL string
	// Service is one of [Services]; "": Message is sent, and right answers contain Expect.
	Service string
	Message []byte
	Expect  string
	Mix     Mix
	// How requests travel: as [WayNames] has it. Each is measured with each number of Clients,
	// Repeat times, for a time. At a rate Clients is how many requests may be in flight.
	Ways    []string
	Clients []int
	Repeat  int
	For     time.Duration
	// Rate is how many requests are to be sent in a second; 0: a closed loop. Poisson: they come at
	// random, not at equal distances.
	Rate    float64
	Poisson bool
	// Seed chooses requests, and when they come.
	Seed uint64
	// Timeout is how long an answer may take from when its request was sent.
	Timeout time.Duration
	TLS     *tls.Config
	// Each is called with each row; an error of it ends the run.
	Each func(experiment.LoadRow) error
	// Within: the service is in this process, so that the share of processor time that sending
	// takes is not known.
	Within bool
	// Dial connects to the service in plain SOAP; nil: over TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Check reports what cannot be measured.
func (c *Config) Check() error {
	positive := c.Repeat > 0 && c.For > 0 && c.Timeout > 0 && len(c.Ways) > 0 && len(c.Clients) > 0
	for _, n := range c.Clients {
		positive = positive && n > 0
	}
	switch {
	case !positive:
		return errors.New("clients, repeats, the time of a row and that of an answer are above 0")
	case c.Rate < 0 || c.Rate > maxRate:
		return fmt.Errorf("a rate is from 0 to %d requests a second", maxRate)
	}
	for _, way := range c.Ways {
		if !slices.Contains(WayNames(), way) {
			return fmt.Errorf("no way %q, there are %s", way, strings.Join(WayNames(), ", "))
		}
	}
	_, err := c.questions()
	return err
}

// maxRate is the highest rate, in requests a second: more than one machine sends.
const maxRate = 1_000_000

// ErrUnreachable says that nobody takes connections at the URL.
var ErrUnreachable = errors.New("nobody to measure")

// reach connects once, before anything is measured: what nobody answers is no measurement. A
// service that refuses later is one.
func (c *Config) reach(ctx context.Context, at *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	conn, err := c.dialer()(ctx, "tcp", net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), at.Scheme)))
	if err == nil {
		return conn.Close()
	}
	var dialing *net.OpError
	if errors.As(err, &dialing) {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return nil
}

// Run measures all rows, one after the other. Errors: those of [Config.Check], Config.Each and ctx,
// and ErrUnreachable. A row that ctx ends is given to Each, with a doubt, if there is anything in
// it.
func Run(ctx context.Context, c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	questions, err := c.questions()
	if err != nil {
		return err
	}
	at, err := url.Parse(c.URL)
	if err != nil {
		return err
	}
	if err := c.reach(ctx, at); err != nil {
		return err
	}
	for _, way := range c.Ways {
		for _, clients := range c.Clients {
			for repeat := range c.Repeat {
				row := experiment.LoadRow{Peer: at.Redacted(),
					Service: cmp.Or(c.Service, "file"), Way: way, Clients: clients,
					Rate: c.Rate, Repeat: repeat + 1}
				r := &rowRun{cfg: &c, questions: questions}
				if row, err = r.row(ctx, row); err != nil {
					return err
				}
				if ctx.Err() != nil {
					row.Doubt = joined(row.Doubt, "interrupted")
				}
				if ctx.Err() == nil || row.Responses > 0 {
					if err := c.Each(row); err != nil {
						return err
					}
				}
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
		}
	}
	return nil
}

// rowRun is the measuring of one row.
type rowRun struct {
	cfg       *Config
	questions []question
	next      atomic.Uint64
	to        exchanger
	tally     *rowTally
}

func (r *rowRun) row(ctx context.Context, row experiment.LoadRow) (experiment.LoadRow, error) {
	var err error
	if r.to, err = r.cfg.open(ctx, row.Way, row.Clients); err != nil {
		return row, err
	}
	defer r.to.close()
	if s, ok := r.to.(*streamExchanger); ok { // what opens it is none of the requests
		first, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
		_, _ = s.exchange(first, r.questions[0].body)
		cancel()
		s.before = s.client.Counters()
	}
	sent, received := r.to.traffic()
	computed := clock.Processor()
	r.tally = newRowTally(row, time.Now())
	if r.cfg.Rate > 0 {
		r.open(ctx, row.Clients, rand.New(rand.NewPCG(r.cfg.Seed, uint64(row.Repeat))))
	} else {
		r.closed(ctx, row.Clients)
	}
	took := time.Since(r.tally.begun)
	row = r.tally.result(took)
	nowSent, nowReceived := r.to.traffic()
	row.SentOctets, row.ReceivedOctets = nowSent-sent, nowReceived-received
	row.GeneratorShare = -1
	if computed >= 0 && !r.cfg.Within {
		row.GeneratorShare = float64(clock.Processor()-computed) / float64(took) / float64(runtime.GOMAXPROCS(0))
	}
	row.Doubt = doubt(&row)
	if s, ok := r.to.(*streamExchanger); ok {
		if n, cause := s.asPlain(); n > 0 {
			row.Doubt = joined(row.Doubt, fmt.Sprintf("%d requests went as plain SOAP%s", n, cause))
		}
	}
	return row, nil
}

const (
	// mostComputing is the share of its processors' time that a generator may take: what takes more
	// measures itself.
	mostComputing = 0.8
	// mostLate is the share of requests that may be sent late, and lateBy what is late.
	mostLate = 0.01
	lateBy   = 10 * time.Millisecond
)

// doubt is why a row does not count; "": it does.
func doubt(row *experiment.LoadRow) (why string) {
	if row.GeneratorShare > mostComputing {
		why = fmt.Sprintf("the generator took %.0f %% of its processors' time", 100*row.GeneratorShare)
	}
	if all := float64(row.Responses + row.Unsent); all > 0 && float64(row.Late+row.Unsent) > mostLate*all {
		why = joined(why, fmt.Sprintf("%d of %.0f requests were sent late or not at all", row.Late+row.Unsent, all))
	}
	return why
}

// closed has each client send as soon as it has its answer.
func (r *rowRun) closed(ctx context.Context, clients int) {
	end := r.tally.begun.Add(r.cfg.For)
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			for now := time.Now(); now.Before(end) && ctx.Err() == nil; now = time.Now() {
				r.ask(ctx, now)
			}
		})
	}
	wait.Wait()
}

// open sends requests when they are due, each by one of the clients that has none in flight. One
// for which there is none waits, and its response time counts from when it was due. What still
// waits at the end of the time of a row is not sent.
func (r *rowRun) open(ctx context.Context, clients int, random *rand.Rand) {
	due := make(chan time.Time)
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			for at := range due {
				if time.Since(at) > lateBy {
					r.tally.late()
				}
				r.ask(ctx, at)
			}
		})
	}
	until, cancel := context.WithDeadline(ctx, r.tally.begun.Add(r.cfg.For))
	defer cancel()
	for at := range r.arrivals(random) {
		if !hand(until, due, at) && ctx.Err() == nil {
			r.tally.unsent()
		}
	}
	<-until.Done()
	close(due)
	wait.Wait()
}

// hand gives a time to one of those that take it, at that time or later; false: until is done.
func hand(until context.Context, due chan<- time.Time, at time.Time) bool {
	if early := time.Until(at); early > 0 {
		timer := time.NewTimer(early)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-until.Done():
			return false
		}
	}
	if until.Err() != nil {
		return false
	}
	select {
	case due <- at:
		return true
	case <-until.Done():
		return false
	}
}

// arrivals are when requests of a row are due.
func (r *rowRun) arrivals(random *rand.Rand) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		at := 0.0 // in seconds
		for n := 1; at < r.cfg.For.Seconds(); n++ {
			if !yield(r.tally.begun.Add(time.Duration(math.Round(at * float64(time.Second))))) {
				return
			}
			if r.cfg.Poisson {
				at += random.ExpFloat64() / r.cfg.Rate
			} else {
				at = float64(n) / r.cfg.Rate
			}
		}
	}
}

// ask sends the next request, and counts what becomes of it since a time. What ctx ends is not
// counted.
func (r *rowRun) ask(ctx context.Context, since time.Time) {
	q := &r.questions[(r.next.Add(1)-1)%uint64(len(r.questions))]
	bounded, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	a, err := r.to.exchange(bounded, q.body)
	if ctx.Err() == nil {
		r.tally.add(since, time.Now(), q, a, err)
	}
}
