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
	"net/netip"
	"time"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/proxy"
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
	// ZstdLevel is that of the tunnel and of the dictionaries, as near as the library has it; 0
	// means 3.
	ZstdLevel int

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
		servers: map[netip.AddrPort]*called{}, byLength: map[int][ways]traffic{}, replay: proxy.NewReplay()}
	defer e.close()
	var err error
	if e.rivals, err = newRivals(cfg.ZstdLevel); err != nil {
		return nil, flow.Stats{}, err
	}
	stats, err := e.read(inputs)
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
	if _, err := e.read(inputs); err != nil {
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
	called     []*called // the same, in order
	between    [ways]traffic
	opening    [ways]traffic         // a part of between
	byLength   map[int][ways]traffic // of openings, by the length of the server's address
	rivals     *rivals
	replay     *proxy.Replay
	sum        [ways]traffic // so far
	halves     halves
	results    [][]*virtualLink // by link and way

	// Of one pass:
	again    bool
	channels []uint16 // of tunnels, that are free again
	highest  uint16   // of them
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
	number int
	stores []ctxstore.Store
	pairs  [ways]*pair
}

// callerHost is a host that calls a server.
type callerHost struct {
	host   netip.Addr
	server netip.AddrPort
}

// read reads the captures once: first for all ways but those that met before, and then for these.
func (e *estimator) read(inputs []Capture) (flow.Stats, error) {
	e.serial, e.clients, e.networks = 0, map[callerHost]*lastReplies{}, nil
	for _, profile := range e.cfg.Links {
		if e.again {
			break
		}
		var of []*virtualLink
		for w := range anew {
			n, err := newNetwork(w, profile, cmp.Or(e.cfg.mostBehind, mostBehind))
			if err != nil {
				return flow.Stats{}, err
			}
			of = append(of, n)
		}
		e.results, e.networks = append(e.results, of), append(e.networks, of...)
	}
	e.reader = &callReader{call: e.call, ended: e.ended}
	files, err := e.open(inputs)
	if err != nil {
		return flow.Stats{}, err
	}
	stats, err := e.reader.read(files)
	err = cmp.Or(err, context.Cause(e.ctx))
	if err == nil {
		err = e.lastEnds()
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
	x.serial, x.server = e.serial, s.number
	x.at, x.op = c.request.first.Sub(e.reader.begun), e.operation(c)
	who := callerHost{c.conn.client.Addr(), c.conn.server}
	for w := range zlibbed {
		if c.connects && !e.again && (w != kept || e.clients[who] == nil) {
			x.legs[w] = append(legs{bare(false), bare(true)}, x.legs[w]...)
		}
	}
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
		if x.legs[w], carried, err = p.carry(c, e.replay, e.reader.now); err != nil || !carried {
			return false, err
		}
	}
	if e.again {
		return true, nil
	}
	interim := make([][]write, len(c.interim))
	for i, m := range c.interim {
		interim[i] = m.packets()
	}
	x.legs[plain] = c.legs(c.request.packets(), interim, c.reply.packets())
	x.legs[kept] = x.legs[plain]
	for w, changed := range map[int]func(*capturedCall) (request, reply int64, err error){
		gzipped: e.rivals.gzipped, dcz: e.rivals.withDictionary,
	} {
		request, reply, err := changed(c)
		if err != nil {
			return false, err
		}
		x.legs[w] = c.legs(c.request.changed(request), interim, c.reply.changed(reply))
	}
	return true, e.tunnel(c, x)
}

// tunnel fills in what a call takes in tunnels.
func (e *estimator) tunnel(c *capturedCall, x *exchange) error {
	if c.conn.channel == 0 {
		if last := len(e.channels) - 1; last >= 0 {
			c.conn.channel, e.channels = e.channels[last], e.channels[:last]
		} else {
			e.highest++
			c.conn.channel = e.highest
		}
	}
	for i, t := range e.rivals.tunnels {
		interim := make([][]write, len(c.interim))
		request, err := t.send(0, c.conn.channel, &c.request)
		for k, m := range c.interim {
			if err == nil {
				interim[k], err = t.send(1, c.conn.channel, m)
			}
		}
		if err != nil {
			return err
		}
		reply, err := t.send(1, c.conn.channel, &c.reply)
		if err != nil {
			return err
		}
		x.legs[zlibbed+i] = c.legs(request, interim, reply)
	}
	return nil
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
		for i := range x.legs[w] {
			l := &x.legs[w][i]
			t := l.traffic()
			if e.sum[w].add(t); l.between {
				e.between[w].add(t)
			} else {
				o.ways[w].add(t)
			}
		}
	}
	if e.again {
		return
	}
	o.calls++
	o.took += c.server
	e.report.Calls++
	e.halves.note(e.report.Calls, &e.sum)
	if c.conn.calls == 1 {
		e.report.Connections++
	}
}

// traffic are bytes with the headers of their packets.
type traffic struct{ Bytes, Packets int64 }

func (t *traffic) add(o traffic) { t.Bytes, t.Packets = t.Bytes+o.Bytes, t.Packets+o.Packets }

// ended takes the end of a connection.
func (e *estimator) ended(c *connection, at time.Time, byClient bool) error {
	s := e.servers[c.server]
	if s == nil {
		return nil
	}
	x := exchange{at: at.Sub(e.reader.begun), server: s.number, after: [2]int{c.last}}
	for w, p := range s.pairs {
		if p == nil {
			continue
		}
		var err error
		if x.legs[w], err = p.leave(c, byClient, e.reader.now); err != nil {
			return err
		}
	}
	if !e.again {
		ends := legs{bare(!byClient), bare(byClient)}
		x.legs[plain], x.legs[gzipped], x.legs[dcz] = ends, ends, ends
	}
	if c.channel > 0 { // which is so in the first pass
		e.channels = append(e.channels, c.channel)
		for i, t := range e.rivals.tunnels {
			var err error
			if x.legs[zlibbed+i], err = t.end(c.channel, byClient); err != nil {
				return err
			}
		}
	}
	return e.addBetween(&x)
}

// lastEnds has pairs tell what they have not told when the captures end.
func (e *estimator) lastEnds() error {
	for _, s := range e.called {
		x := exchange{at: e.reader.now.Sub(e.reader.begun) + proxy.EndDelay, server: s.number}
		for w, p := range s.pairs {
			if p == nil {
				continue
			}
			ends, err := p.tellEnds(e.reader.now, e.reader.now.Add(2*proxy.EndDelay))
			if err != nil {
				return err
			}
			if ends.octets > 0 {
				x.legs[w] = legs{ends.leg()}
			}
		}
		if err := e.addBetween(&x); err != nil {
			return err
		}
	}
	return nil
}

// addBetween adds what is no call.
func (e *estimator) addBetween(x *exchange) error {
	e.serial++
	x.serial, x.op = e.serial, -1
	for w := range x.legs {
		for i := range x.legs[w] {
			t := x.legs[w][i].traffic()
			e.between[w].add(t)
			e.sum[w].add(t)
		}
	}
	return e.add(x)
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
	s := &called{number: len(e.servers)}
	e.servers[addr], e.called = s, append(e.called, s)
	opening, err := e.openings(addr.String())
	if err != nil {
		return nil, err
	}
	if len(e.servers) == 1 { // there is one tunnel
		opening[zlibbed], opening[zstded] = traffic{2 * packetHeaders, 2}, traffic{2 * packetHeaders, 2}
	}
	for w, o := range opening {
		e.opening[w].add(o)
		e.between[w].add(o)
		e.sum[w].add(o)
	}
	for w, mode := range map[int]principal.Mode{firstContact: e.mode(), byConnection: principal.ByConnection} {
		near, far := memory.New(memory.Config{}), memory.New(memory.Config{})
		s.stores = append(s.stores, near, far)
		if s.pairs[w], err = newPair(near, far, &e.cfg, mode, e.reader.now); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// mode is who a client is to the near half of a pair.
func (e *estimator) mode() principal.Mode {
	if e.cfg.PerAddress {
		return principal.ByAddress
	}
	return principal.ByProof
}

// openings are what it takes to open the streams of the pairs of a server.
func (e *estimator) openings(host string) (o [ways]traffic, err error) {
	if o, known := e.byLength[len(host)]; known { // all that there is of it on the link is its name
		return o, nil
	}
	first, met, err := openings(e.ctx, host)
	o[firstContact], o[metBefore] = first.traffic(), met.traffic()
	o[byConnection], o[byConnectionMet] = o[firstContact], o[metBefore]
	e.byLength[len(host)] = o
	return o, err
}

// meetAgain has all pairs meet again.
func (e *estimator) meetAgain() (err error) {
	e.again = true
	for _, s := range e.called {
		for of, w := range map[int]int{firstContact: metBefore, byConnection: byConnectionMet} {
			if s.pairs[w], err = s.pairs[of].again(e.reader.begun); err != nil {
				return err
			}
			s.pairs[of] = nil
		}
	}
	r := e.report
	r.Began, r.Seconds = e.reader.begun, e.reader.now.Sub(e.reader.begun).Seconds()
	r.Servers, r.Messages, r.Others, r.Cut, r.HHFR = len(e.servers), 2*r.Calls, e.reader.others,
		e.reader.cut, e.reader.hhfr
	return nil
}

func (e *estimator) close() {
	for _, s := range e.called {
		for _, store := range s.stores {
			_ = store.Close() // in memory
		}
	}
}
