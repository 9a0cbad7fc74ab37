package session

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// DefaultIdle is how long a session of a [RoundTripper] may be idle: as long as a connection of
// [http.DefaultTransport].
const DefaultIdle = 90 * time.Second

// useLocked counts one more user of an origin.
func (t *RoundTripper) useLocked(o *originSession) { o.inUse++ }

// release ends one use of an origin.
func (t *RoundTripper) release(o *originSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.inUse--
	if o.inUse > 0 || t.closed || t.origins[o.origin] != o {
		return
	}
	o.since = t.dialer.cfg.Clock.Now()
	if o.place == nil {
		o.place = t.used.PushBack(o)
	} else {
		t.used.MoveToBack(o.place)
	}
	t.sweepLocked(t.dialer.cfg.Idle)
}

// sweepLocked has sweep called after a time, unless it will be called anyway.
func (t *RoundTripper) sweepLocked(after time.Duration) {
	if !t.sweeping {
		t.sweeping = true
		t.dialer.cfg.Clock.AfterFunc(after, t.sweep)
	}
}

// sweep forgets the origins that nothing has used for Config.Idle.
func (t *RoundTripper) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweeping = false
	if t.closed {
		return
	}
	now := t.dialer.cfg.Clock.Now()
	for at := t.used.Front(); at != nil; at = t.used.Front() {
		o := at.Value.(*originSession)
		if left := t.dialer.cfg.Idle - now.Sub(o.since); left > 0 {
			t.sweepLocked(left)
			return
		}
		if o.inUse > 0 || o.session != nil && o.session.isPending() {
			t.used.MoveToBack(at)
			o.since = now
			continue
		}
		t.forgetLocked(o)
	}
}

// Sequenced is the sum of [Session.Sequenced] over the sessions that there are.
func (t *RoundTripper) Sequenced() (accepted, done uint64) {
	t.mu.Lock()
	origins := slices.Collect(maps.Values(t.origins))
	t.mu.Unlock()
	for _, o := range origins {
		if o.settled() && o.session != nil {
			a, d := o.session.Sequenced()
			accepted, done = accepted+a, done+d
		}
	}
	return accepted, done
}

// forgetLocked ends the session of an origin that is not in use, and drops all that is known of
// that origin. The next request for it finds what the store remembers.
func (t *RoundTripper) forgetLocked(o *originSession) {
	t.endLocked(o)
	delete(t.origins, o.origin)
	for _, as := range o.names {
		delete(t.names, as)
	}
}

// endLocked ends the session of an origin.
func (t *RoundTripper) endLocked(o *originSession) {
	if o.place != nil {
		t.used.Remove(o.place)
		o.place = nil
	}
	s := o.session
	if s == nil {
		return
	}
	if s.Agreed().HHFR && !s.streaming() {
		t.fellLocked(o) // the session has logged it
	}
	if s.outbox == nil {
		t.wait.Go(func() { _ = s.Close() })
		return
	}
	before, ended := t.ending[o.origin], make(chan struct{})
	t.ending[o.origin] = ended
	t.wait.Go(func() {
		_ = s.Close()
		if before != nil {
			<-before
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.ending[o.origin] == ended {
			delete(t.ending, o.origin)
		}
		close(ended)
	})
}

// CloseIdleConnections ends the sessions that no request uses, as if they had been idle for
// Config.Idle, and calls the same method of base, where there is one.
func (t *RoundTripper) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	for at := t.used.Front(); at != nil; {
		o := at.Value.(*originSession)
		if at = at.Next(); o.inUse == 0 && (o.session == nil || !o.session.isPending()) {
			t.forgetLocked(o)
		}
	}
	for _, o := range t.origins {
		if o.settled() && o.session != nil && o.session.asker != nil {
			o.session.asker.CloseIdleConnections()
		}
	}
}

// untilRead has an origin in use until the body of a response is read to its end or closed.
func (t *RoundTripper) untilRead(o *originSession, resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		t.release(o)
		return nil, err
	}
	_, upgraded := resp.Body.(io.Writer) // the connection of another protocol
	if upgraded || resp.Body == http.NoBody {
		t.release(o)
		return resp, nil
	}
	resp.Body = &endingReply{ReadCloser: resp.Body, end: sync.OnceFunc(func() { t.release(o) })}
	return resp, nil
}
