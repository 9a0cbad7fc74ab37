package proxy

import (
	"context"
	"sync"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// caller is one client connection at the near end of a lane. One goroutine reads requests and
// begins exchanges, another writes the replies in the order of the requests, unless the reader of
// the stream can (completeNow).
type caller struct {
	p      *core
	l      *link
	number uint64
	client visitor // of the reader, and of who has waited for its end
	// entered is the key of the client when the connection took its lane, until it leaves that; of
	// the link.
	entered principal.Key
	// place is the lane as it was found, until its first call; used by the reader alone.
	place  vacancy
	lane   *streamer.Lane
	in     *sock.Source
	way    journey
	coded  *deflate.Finder // of its requests; nil: none is looked for
	out    *sock.StallWriter
	ctx    context.Context
	cancel context.CancelFunc
	// reading ends with ctx, or when the writer takes the source over.
	reading context.Context
	halt    context.CancelFunc
	calls   chan *pendingCall
	// ready holds one when the writer has something to do for the calls: it is not woken when one
	// begins, only to wait for the reply.
	ready chan struct{}
	wake  func()
	over  latestEnd
	done  chan struct{} // holds one: the latest call has its reply
	told  []byte        // the reply of this proxy's own with which the connection ends; of who writes

	readEnd  readEnd
	progress callProgress
	quick    quick
}

// readEnd is how the reading of requests has ended; valid once calls is closed.
type readEnd struct {
	moves   bool // the next request goes elsewhere
	inOrder bool // the client has ended in order, between calls
	// unwatch ends the watch on a client that has ended its direction; nil: there is none.
	unwatch func()
}

func newCaller(l *link, client visitor, place vacancy, in *sock.Source, way journey) *caller {
	p := l.p
	c := &caller{
		p: p, l: l, number: place.number, client: client, entered: client.Key, place: place,
		progress: callProgress{before: l.clientsBefore(place.number)},
		lane:     l.stream.Lane(place.number), in: in, way: way, coded: finderFor(l.stream, new(deflate.Finder)),
		out:   p.patient(in.Conn),
		calls: make(chan *pendingCall, pipelined), ready: make(chan struct{}, 1),
		over: make(latestEnd, 1), done: make(chan struct{}, 1),
	}
	c.wake, c.quick.now, c.quick.eager.To = c.wakeWriter, c.completeNow, c.out
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	c.reading, c.halt = context.WithCancel(c.ctx)
	return c
}

// run serves the connection to its end, or until its next request goes elsewhere: then it reports
// that, and the request is in the source still.
func (c *caller) run() (moves bool) {
	c.l.take(c)
	var reader sync.WaitGroup
	reader.Go(func() {
		c.read()
		close(c.calls)
		c.wake()
	})
	end := c.write()
	c.cancel()
	c.stopNow()
	for x := range c.calls { // the reader ends now, and must not wait for a slot
		_ = x.giveUp(c.ctx)
		x.ended(false)
	}
	reader.Wait()
	if c.readEnd.unwatch != nil {
		c.readEnd.unwatch()
	}
	c.p.calls.Add(-int64(c.progress.open())) // no goroutine changes them any more
	// Before the client may notice: its next connection goes on with the lane.
	c.leave(end)
	switch end {
	case goOn:
	case endInOrder:
		sock.Finish(c.p.ctx, c.in)
	case endBroken:
		sock.Reset(c.in.Conn)
	}
	c.l.drop(c)
	return end == goOn
}

// read reads one request after another from the client.
func (c *caller) read() {
	defer c.in.Watch(c.reading)()
	if c.way.raw {
		c.tunnel()
		return
	}
	for next, first := c.client.first, true; ; first = false {
		if !first {
			next = c.p.nextHead(c.reading, c.in)
		}
		switch {
		case c.reading.Err() != nil:
			return
		case c.way.isOver(next.st, &next.h, c.in):
			c.readEnd.moves = true
			return
		case next.st == stateWhole:
			if !first && !c.follow(&next.h) || !c.request(&next.h, next.n) {
				return
			}
		case next.st == statePaused && len(c.in.Peek()) == 0:
			c.over.put(upstreamEnd{idle: true})
		case next.st == stateEnded && len(c.in.Peek()) == 0:
			c.clientEnded(next.err)
			return
		default:
			c.tunnel()
			return
		}
	}
}

// wakeWriter has the writer look for calls that have a reply, or will have none.
func (c *caller) wakeWriter() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// enter counts a call, unless the idle connection is about to be closed.
func (c *caller) enter() error {
	if !c.progress.begin() {
		return &Error{Code: Closed}
	}
	c.p.calls.Add(1)
	return nil
}
