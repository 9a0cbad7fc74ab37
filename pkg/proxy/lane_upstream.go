package proxy

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// upstream is one connection to the upstream.
type upstream struct {
	in  *inlet
	ctx context.Context // ends with it
	end context.CancelFunc
	// told, under lane.mu: the near end knows that it has ended.
	told bool

	p    *Proxy
	once sync.Once // it gives back its place
}

// openUpstream opens a connection to the upstream for an end of a stream, one of at most MaxConns. Errors: NoRoom, Unreachable.
func (p *Proxy) openUpstream(ctx context.Context, tunnel bool) (*upstream, error) {
	if !p.upstreams.enter(p.cfg.MaxConns) {
		return nil, &Error{Code: NoRoom, At: -1}
	}
	conn, err := p.dialUpstream(ctx, tunnel)
	if err != nil {
		p.upstreams.leave()
		return nil, err
	}
	up := &upstream{in: p.newInlet(conn), p: p}
	up.ctx, up.end = context.WithCancel(p.ctx)
	return up, nil
}

// connect gives the upstream connection of the lane, opened if need be, and counts a call. lost: the client's connection is over.
func (l *lane) connect(ctx context.Context, tunnel bool) (up *upstream, lost bool, err error) {
	l.mu.Lock()
	up, lost = l.up, l.lost
	l.calls++
	l.waiting++
	l.f.p.calls.begin()
	if lost || up != nil && (!up.in.over() || l.waiting > 1) {
		l.mu.Unlock()
		return up, lost, nil
	}
	l.up = nil
	l.mu.Unlock()
	if up != nil {
		// It ended between two calls; of this one nothing is written yet.
		up.close()
	}
	up, err = l.f.p.openUpstream(ctx, tunnel)
	if err != nil {
		l.mu.Lock()
		l.lost = true
		l.mu.Unlock()
		return nil, false, err
	}
	up.in.onEnd = func() { l.upstreamEnded(up) }
	l.mu.Lock()
	lost = l.lost || ctx.Err() != nil
	if !lost {
		l.up = up
	}
	l.mu.Unlock()
	up.in.start()
	if lost { // the client left meanwhile
		up.close()
		return nil, true, nil
	}
	return up, false, nil
}

// close closes the connection and waits for its reader.
func (up *upstream) close() {
	up.end()
	up.in.close()
	up.once.Do(up.p.upstreams.leave)
}

// finished counts a call whose reply is through, and tells the near end if the upstream has ended meanwhile.
func (l *lane) finished() {
	l.mu.Lock()
	l.waiting--
	up := l.up
	l.mu.Unlock()
	l.f.p.calls.end(1)
	if up != nil && up.in.over() {
		l.upstreamEnded(up)
	}
}

// upstreamEnded tells the near end that the upstream has closed, if no call is under way.
func (l *lane) upstreamEnded(up *upstream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up != up || l.waiting > 0 || up.told || l.lost {
		return
	}
	up.told = true
	calls := l.calls
	l.words.Add(1)
	l.f.tasks.Add(1)
	go func() {
		defer l.f.tasks.Done()
		defer l.words.Done()
		l.tell(up, calls)
	}()
}

// tell says that an upstream has ended, with what it said before it did.
func (l *lane) tell(up *upstream, calls uint64) {
	ctx := up.ctx
	stream := l.f.opened(ctx)
	if stream == nil {
		return
	}
	data, err := up.in.wait(ctx, pieceOctets, 0)
	if ctx.Err() != nil {
		return
	}
	k := ended
	if !errors.Is(err, io.EOF) {
		k = broken
	}
	octets := append([]byte(nil), data[:min(len(data), pieceOctets)]...)
	// Not with ctx: the near end must have taken it before the lane can be another client's.
	m, err := stream.Lane(l.number).Call(l.f.p.ctx, streamer.NewMessage(endLine(k, calls), octets))
	if err == nil {
		closeBody(m.Body)
	}
}

// drop closes the upstream of a client that is gone, if that is still the one whose lane this is.
func (l *lane) drop(client uint64) {
	l.mu.Lock()
	var up *upstream
	if l.client == client {
		l.lost = true
		up = l.up
	}
	l.mu.Unlock()
	if up != nil {
		up.end()
		reset(up.in.conn)
	}
}

// leave ends the lane of a client, whose last exchange has this number, and makes it ready for another.
func (l *lane) leave(number uint64) {
	l.order.pass(number)
	l.end()
	l.mu.Lock()
	idle := l.idle
	l.mu.Unlock()
	<-idle
	l.mu.Lock()
	l.client++
	l.f.p.calls.end(l.waiting)
	l.calls, l.waiting, l.up, l.rest, l.lost, l.torn = 0, 0, nil, nil, false, false
	l.lastCall, l.lastPoll = closed(), closed()
	l.mu.Unlock()
}

// end closes the upstream and waits for what is to be told of it.
func (l *lane) end() {
	l.mu.Lock()
	l.lost = true
	up := l.up
	l.mu.Unlock()
	if up != nil {
		up.close()
	}
	l.words.Wait()
}
