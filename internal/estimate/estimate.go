// Package estimate says what hhfr would bring to those whose traffic is in a capture: the calls of
// plain SOAP in it go once more over emulated links, as they are and through pairs of proxies.
//
// What a pair sends is what the learner, the coder and the encoder of streams make of the messages,
// whose heads and bodies are those of a real pair. What they take on a link is computed, packet by
// packet, by the lines of package link in virtual time: in the capture's own time, a request leaves
// at its time in the capture, or when the replies have come that its client had before it,
// whichever is later.
package estimate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"time"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Config is what is to be estimated.
type Config struct {
	// Links are the links.
	Links []link.Profile
	// PricePerMB is the price of a million bytes on the link.
	PricePerMB float64
	// Description describes the messages to both halves of a pair; nil: nothing does.
	Description binary.Describer
	// PerAddress: the near half of the pair takes connections from one address for one client.
	PerAddress bool

	mostBehind int // for tests; 0: the constant
}

// Capture is a capture, which is read [Passes] times.
type Capture struct {
	Name   string
	Octets io.ReadSeeker
}

// Passes is how often captures are read, from their beginnings.
const Passes = 2

var (
	// ErrNoSOAP says that the captures have no whole call of plain SOAP.
	ErrNoSOAP = errors.New("no whole call of plain SOAP")
	// ErrManyServers says that the captures have calls to more servers than are estimated at once.
	ErrManyServers = fmt.Errorf("calls to more than %d servers", mostServers)
)

// mostServers bounds the pairs, each of which knows shapes of its own.
const mostServers = 256

// Run estimates what the calls in captures take. The counts of packets tell what is missing.
// Errors: ErrNoSOAP, with a report; ErrManyServers; those of package flow and link, of reading, and
// the cause of ctx.
func Run(ctx context.Context, cfg Config, inputs ...Capture) (*Report, flow.Stats, error) {
	e := &estimator{cfg: cfg, ctx: ctx, report: &Report{}, numbers: map[soap.Name]int{},
		servers: map[netip.AddrPort]*called{}, byLength: map[int][ways]traffic{}, rivals: newRivals()}
	defer e.close()
	stats, err := e.pass(inputs, Plain, Gzip, Zstd, FirstContact)
	switch {
	case err != nil:
		return nil, stats, err
	case e.report.Calls == 0:
		e.report.HHFR = e.reader.hhfr
		return e.report, stats, ErrNoSOAP
	}
	if err := e.meetAgain(); err != nil {
		return nil, stats, err
	}
	if _, err := e.pass(inputs, MetBefore, Steady); err != nil {
		return nil, stats, err
	}
	e.finish()
	return e.report, stats, nil
}

// estimator reads the captures twice: for all ways of which the traffic shows what they take, and
// then for those of pairs that have seen it.
type estimator struct {
	cfg    Config
	ctx    context.Context
	report *Report

	numbers    map[soap.Name]int // of operations
	operations []operationState
	servers    map[netip.AddrPort]*called
	between    [ways]traffic
	opening    [ways]traffic         // a part of between
	byLength   map[int][ways]traffic // of openings, by the length of the server's address
	rivals     *rivals
	results    [][ways]*virtualLink // by link

	// Of one pass:
	again    bool
	lasted   time.Duration // the calls of the pass before
	reader   *callReader
	networks []*virtualLink
	serial   int
	clients  map[callerHost]*lastReplies
}

// operationState is what is known of one.
type operationState struct {
	name  soap.Name
	calls int
	took  time.Duration
	ways  [ways]traffic
}

// called is a server that is called, and the pairs in front of it.
type called struct {
	number    int
	near, far ctxstore.Store
	pairs     [ways]*pair
}

// callerHost is a host that calls a server.
type callerHost struct {
	host   netip.Addr
	server netip.AddrPort
}

// pass reads the captures once, for some ways.
func (e *estimator) pass(inputs []Capture, by ...Way) (flow.Stats, error) {
	e.serial, e.clients, e.networks = 0, map[callerHost]*lastReplies{}, nil
	if e.results == nil {
		e.results = make([][ways]*virtualLink, len(e.cfg.Links))
	}
	for i, profile := range e.cfg.Links {
		for _, w := range by {
			n, err := newNetwork(w.index(), profile, cmp.Or(e.cfg.mostBehind, mostBehind))
			if err != nil {
				return flow.Stats{}, err
			}
			e.results[i][w.index()] = n
			e.networks = append(e.networks, n)
		}
	}
	e.reader = &callReader{call: e.call, ended: e.ended}
	files, err := e.open(inputs)
	if err != nil {
		return flow.Stats{}, err
	}
	stats, err := e.reader.read(files)
	if err == nil {
		err = context.Cause(e.ctx)
	}
	for _, n := range e.networks {
		n.finish()
	}
	return stats, err
}

// open opens the captures at their beginnings.
func (e *estimator) open(inputs []Capture) (files []*flow.File, err error) {
	for _, in := range inputs {
		var f *flow.File
		_, err := in.Octets.Seek(0, io.SeekStart)
		if err == nil {
			f, err = flow.Open(in.Octets)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Name, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// call takes the next call: in the order of the ends of replies.
func (e *estimator) call(c *capturedCall) error {
	s, err := e.server(c.conn.server)
	if err != nil {
		return err
	}
	var x exchange
	if carried, err := e.take(s, c, &x); err != nil || !carried {
		return err
	}
	e.serial++
	x.serial, x.server, x.took, x.connect = e.serial, s.number, c.server, c.connects
	x.at, x.op = c.request.first.Sub(e.reader.begun), e.operation(c)
	who := callerHost{c.conn.client.Addr(), c.conn.server}
	if e.clients[who] == nil {
		if len(e.clients) >= mostClients {
			clear(e.clients) // others only wait for less
		}
		e.clients[who] = new(lastReplies)
	}
	x.after = [2]int{c.conn.last, e.clients[who].before(c.request.first)}
	e.clients[who].add(c.reply.last, e.serial)
	c.conn.last = e.serial
	e.count(&x, c)
	return e.add(&x)
}

// mostClients bounds the clients whose replies are remembered.
const mostClients = 1 << 16

// take fills in what a call takes. It is false for one that no pair carries as messages.
func (e *estimator) take(s *called, c *capturedCall, x *exchange) (carried bool, err error) {
	for w, p := range s.pairs {
		if p == nil {
			continue
		}
		if x.legs[w], carried, err = p.carry(c, e.now(w)); err != nil || !carried {
			return false, err
		}
	}
	if e.again {
		return true, nil
	}
	for i, m := range []*message{&c.request, &c.reply} {
		for w := range FirstContact.index() {
			x.legs[w][i].down = i == 1
		}
		x.legs[Plain.index()][i].octets = int64(len(m.octets))
		if x.legs[Gzip.index()][i].octets, err = e.rivals.gzipped(m); err != nil {
			return false, err
		}
		if x.legs[Zstd.index()][i].octets, err = e.rivals.windowed(c.conn, i, m.octets); err != nil {
			return false, err
		}
	}
	return true, nil
}

// now is the time on a pair's stream.
func (e *estimator) now(way int) time.Time {
	if way == Steady.index() {
		return e.reader.now.Add(e.lasted)
	}
	return e.reader.now
}

// operation returns the number of the operation of a call.
func (e *estimator) operation(c *capturedCall) int {
	name := c.request.operation
	if name.Local == "" {
		name = c.reply.operation
	}
	i, known := e.numbers[name]
	if !known {
		i = len(e.operations)
		e.numbers[name] = i
		e.operations = append(e.operations, operationState{name: name})
	}
	return i
}

// count adds a call to what operations take.
func (e *estimator) count(x *exchange, c *capturedCall) {
	o := &e.operations[x.op]
	for w := range x.legs {
		o.ways[w].add(x.legs[w].traffic())
	}
	if e.again {
		return
	}
	e.lasted = max(e.lasted, c.reply.last.Sub(e.reader.begun))
	o.calls++
	o.took += c.server
	e.report.Calls++
	if c.conn.calls == 1 {
		e.report.Connections++
	}
}

// traffic are bytes with the headers of their packets.
type traffic struct{ Bytes, Packets int64 }

func (t *traffic) add(o traffic) { t.Bytes, t.Packets = t.Bytes+o.Bytes, t.Packets+o.Packets }

// traffic is what legs take, each in packets of its own.
func (l legs) traffic() (t traffic) {
	for _, one := range l {
		t.add(traffic{link.WireOf(one.octets), link.PacketsOf(one.octets)})
	}
	return t
}

// ended takes the end of a connection.
func (e *estimator) ended(c *connection, at time.Time, byClient bool) error {
	e.rivals.leave(c)
	s := e.servers[c.server]
	if s == nil {
		return nil
	}
	e.serial++
	x := exchange{serial: e.serial, server: s.number, op: -1, at: at.Sub(e.reader.begun), after: [2]int{c.last}}
	for w, p := range s.pairs {
		if p == nil {
			continue
		}
		var err error
		if x.legs[w], err = p.leave(c, byClient, e.now(w)); err != nil {
			return err
		}
		e.between[w].add(x.legs[w].traffic())
	}
	return e.add(&x)
}

// add has an exchange travel, and links run as far as is known what travels on them.
func (e *estimator) add(x *exchange) error {
	until := e.reader.earliest().Sub(e.reader.begun)
	for _, n := range e.networks {
		n.add(x)
		n.run(until)
	}
	return context.Cause(e.ctx)
}

// server returns the server at an address.
func (e *estimator) server(addr netip.AddrPort) (*called, error) {
	if s := e.servers[addr]; s != nil {
		return s, nil
	}
	if len(e.servers) == mostServers {
		return nil, ErrManyServers
	}
	s := &called{number: len(e.servers), near: memory.New(memory.Config{}), far: memory.New(memory.Config{})}
	e.servers[addr] = s
	opening, err := e.openings(addr.String())
	if err != nil {
		return nil, err
	}
	for w, o := range opening {
		e.opening[w].add(o)
		e.between[w].add(o)
	}
	s.pairs[FirstContact.index()], err = newPair(s.near, s.far, e.cfg, e.reader.now)
	return s, err
}

// openings are what it takes to open the streams of the pairs of a server.
func (e *estimator) openings(host string) (o [ways]traffic, err error) {
	if o, known := e.byLength[len(host)]; known { // all that there is of it on the link is its name
		return o, nil
	}
	first, met, err := openings(e.ctx, host)
	o[FirstContact.index()], o[MetBefore.index()] = first.traffic(), met.traffic()
	e.byLength[len(host)] = o
	return o, err
}

// meetAgain has all pairs meet again, and go on where they are.
func (e *estimator) meetAgain() (err error) {
	e.again = true
	for _, s := range e.servers {
		first := s.pairs[FirstContact.index()]
		if s.pairs[MetBefore.index()], err = first.again(e.reader.begun); err != nil {
			return err
		}
		first.rejoin()
		s.pairs[Steady.index()], s.pairs[FirstContact.index()] = first, nil
	}
	r := e.report
	r.Began, r.Seconds = e.reader.begun, e.reader.now.Sub(e.reader.begun).Seconds()
	r.Servers, r.Messages, r.Others, r.Cut, r.HHFR = len(e.servers), 2*r.Calls, e.reader.others,
		e.reader.cut, e.reader.hhfr
	return nil
}

func (e *estimator) close() {
	for s := range maps.Values(e.servers) {
		_, _ = s.near.Close(), s.far.Close() // in memory
	}
}
