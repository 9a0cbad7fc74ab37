package estimate

import (
	"context"
	"time"

	"github.com/hhfr/hhfr/internal/proxy"
)

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
	if carried, err = s.carry(c, x, e.reader.now); err != nil || !carried || e.again {
		return carried, err
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
