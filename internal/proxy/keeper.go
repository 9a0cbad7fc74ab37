package proxy

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// ErrTrying is why a [Keeper] has no session while an offer is in progress, or is about to be made.
var ErrTrying = errors.New("there is no stream yet")

// Keepable is a session that a [Keeper] maintains.
type Keepable interface {
	comparable
	// Alive reports whether it accepts calls.
	Alive() bool
	// Wait waits until it accepts no more calls, or ctx is done.
	Wait(ctx context.Context)
	// Used reports whether anything was sent over it.
	Used() bool
	Close() error
}

// Keeper maintains a session with a peer, if possible. Its offers run concurrently with the calls:
// calls that arrive while there is no session find none, and do not wait. The fields are set before
// Run.
type Keeper[T Keepable] struct {
	// Open makes one attempt; its error says why there is no session.
	Open func(context.Context) (T, error)
	// Quiet returns how long no offer is made after such an error, and whether the peer may come
	// back after that: then one is made also if no call requests it.
	Quiet func(error) (pause time.Duration, returns bool)
	// Told is called with the result of each attempt.
	Told func(T, error)
	// FirstBackOff is the pause before an offer that no call requests, and MaxBackOff its maximum.
	FirstBackOff, MaxBackOff time.Duration
	Clock                    clock.Clock

	wanted  chan struct{} // holds one when a call has found no session
	closing sync.WaitGroup

	mu      sync.Mutex
	current T
	why     error         // there is none
	trying  chan struct{} // closed when the attempt in progress ends; nil: none is
	since   time.Time     // when that began
	closed  bool
}

// Init prepares it; why is the reason for having no session until the first attempt.
func (k *Keeper[T]) Init(why error) { k.wanted, k.why = make(chan struct{}, 1), why }

// Get returns the live session, or why there is none. It does not wait.
func (k *Keeper[T]) Get() (none T, _ error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != none && k.current.Alive() {
		return k.current, nil
	}
	select {
	case k.wanted <- struct{}{}:
	default:
	}
	return none, cmp.Or(k.why, ErrTrying)
}

// Await waits for the attempt in progress; nil: there is a session.
func (k *Keeper[T]) Await(ctx context.Context) error {
	var none T
	for {
		k.mu.Lock()
		alive, why, trying := k.current != none && k.current.Alive(), cmp.Or(k.why, ErrTrying), k.trying
		k.mu.Unlock()
		switch {
		case alive:
			return nil
		case trying == nil:
			return why
		}
		select {
		case <-trying:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Begin notes that an attempt is about to be made; Run does so itself for all but the first.
func (k *Keeper[T]) Begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	var wrong *session.SchemeError
	if !errors.As(k.why, &wrong) { // calls to a peer of another scheme would fail meanwhile
		k.why = ErrTrying
	}
	if k.trying == nil {
		k.trying, k.since = make(chan struct{}), k.Clock.Now()
	}
}

// Trying is how long the attempt in progress has taken so far; 0: none is.
func (k *Keeper[T]) Trying() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trying == nil {
		return 0
	}
	return k.Clock.Since(k.since)
}

// Run makes offers until ctx is done: one at once, and others when a session has ended, when the
// peer was unreachable, and when calls arrive after the time of Quiet. It returns when everything
// it began has ended.
func (k *Keeper[T]) Run(ctx context.Context) {
	var none T
	for backOff := k.FirstBackOff; ctx.Err() == nil; backOff = min(2*backOff, k.MaxBackOff) {
		sess, err := k.Open(ctx)
		k.settle(ctx, sess, err)
		if sess != none {
			began := k.Clock.Now()
			sess.Wait(ctx)
			k.closing.Go(func() { _ = sess.Close() })
			if k.Clock.Since(began) > k.MaxBackOff || sess.Used() {
				backOff = k.FirstBackOff // it was used
			}
		}
		pause, returns := k.Quiet(err)
		if k.Clock.Sleep(ctx, pause) == nil {
			k.rest(ctx, sess != none || returns, backOff)
		}
		k.Begin()
	}
	k.settle(ctx, none, &negotiate.Error{Code: negotiate.Closed})
	k.closing.Wait()
}

// rest waits until the next offer is due: until a call wants it; if a peer may come back, no longer
// than backOff.
func (k *Keeper[T]) rest(ctx context.Context, mayComeBack bool, backOff time.Duration) {
	var again <-chan time.Time
	if mayComeBack {
		timer := k.Clock.NewTimer(backOff)
		defer timer.Stop()
		again = timer.C()
	}
	select {
	case <-k.wanted: // possibly long ago
	default:
	}
	select {
	case <-k.wanted:
	case <-again:
	case <-ctx.Done():
	}
}

// settle handles the result of an attempt.
func (k *Keeper[T]) settle(ctx context.Context, sess T, err error) {
	var none T
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed && sess != none {
		late := sess
		k.closing.Go(func() { _ = late.Close() })
		sess, err = none, &negotiate.Error{Code: negotiate.Closed}
	}
	k.current, k.why = sess, err
	close(k.trying)
	k.trying = nil
	if ctx.Err() == nil {
		k.Told(sess, err)
	}
}

// Close ends the session; no other is opened.
func (k *Keeper[T]) Close() {
	var none T
	k.mu.Lock()
	k.closed = true
	sess := k.current
	k.mu.Unlock()
	if sess != none {
		_ = sess.Close()
	}
}
