package session

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/session/machine"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// runner runs the machine of a session: it tells the machine what happens, and does what that says.
// It has the streams of the session, one after another. Its methods are safe for concurrent use.
type runner struct {
	cfg      *Config
	dialer   *Dialer
	url      *url.URL // as dialed: the sequence and what is remembered belong to it
	log      *slog.Logger
	nodes    *nodes
	handler  atomic.Pointer[streamer.ExchangeHandler]
	outbox   *outbox // nil: no sequence
	asker    *asker
	client   *http.Client // the client that speaks plain SOAP, through the asker
	taken    atomic.Int64 // number of unchanging headers taken out of messages
	referrer atomic.Pointer[unchanging.Referrer]

	ctx    context.Context // done at Close
	cancel context.CancelFunc
	wait   sync.WaitGroup

	failing atomic.Bool // as the machine has it
	mu      sync.Mutex
	machine *machine.Machine
	agreed  negotiate.Agreed
	streams int              // how many there were
	link    *sessionStream   // the last stream; nil: there never was one, or the next call asks for one
	before  []*sessionStream // earlier streams that may not have ended yet
	again   <-chan struct{}  // closed when the last stream that was lost is replaced, or will not be
	found   func()           // closes again
}

// init prepares the runner of a session that is dialed from now on.
func (r *runner) init(d *Dialer, nodes *nodes, outbox *outbox) {
	r.cfg, r.dialer, r.url, r.nodes, r.outbox = &d.cfg, d, nodes.urls[0], nodes, outbox
	r.found = func() {}
	r.log = d.cfg.Log.With("url", loggable(r.url))
	r.ctx, r.cancel = context.WithCancel(context.Background())
	client := *d.cfg.HTTPClient
	if d.cfg.Mode != negotiate.Explicit {
		r.asker = newAsker(r.ctx, r.cfg, nodes, r, client.Transport)
		client.Transport = r.asker
	}
	client.Transport = r.referring(client.Transport)
	r.client = &client
	if d.cfg.Handler != nil {
		r.OnMessage(d.cfg.Handler)
	}
	r.machine = machine.New(machine.Config{
		Asks:      r.asker != nil,
		Sequenced: outbox != nil,
		Required:  d.cfg.RequireHHFR,
		Reconnect: d.cfg.Reconnect,
		Nodes:     len(nodes.urls),
		Random:    rand.N[time.Duration],
	}, d.cfg.Clock.Now())
}

// step tells the machine of an event, and returns what is to be done before mu is unlocked. mu is
// locked.
func (r *runner) step(e machine.Event) []machine.Task {
	actions := r.machine.Step(r.cfg.Clock.Now(), e)
	r.failing.Store(r.machine.Failing())
	return actions
}

// OnMessage sets the handler of the exchanges that the peer begins, from now on: one-way messages,
// and requests, which are answered by Exchange.Reply. It may be called at any time, also by the
// handler. A message that arrives before there is a handler is dropped; Config.Handler misses none.
// In plain SOAP the peer cannot begin exchanges.
func (r *runner) OnMessage(handler streamer.ExchangeHandler) { r.handler.Store(&handler) }

// serve hands an exchange to the current handler.
func (r *runner) serve(ctx context.Context, x *streamer.Exchange) {
	r.carried()
	if h := r.handler.Load(); h != nil && *h != nil {
		(*h)(ctx, x)
	}
}

// Agreed returns what was agreed, and the reason for plain SOAP if that is spoken.
func (r *runner) Agreed() negotiate.Agreed {
	r.mu.Lock()
	defer r.mu.Unlock()
	agreed := r.agreed
	if l := r.link; l != nil && agreed.Facts != nil && isMet(l.stream) {
		hello := l.stream.Hello()
		facts := l.confirmed(*agreed.Facts, &hello)
		agreed.Facts = &facts
	}
	agreed.Undecided = r.machine.Undecided()
	return agreed
}

// tell calls Config.OnAgreed with how the session speaks now.
func (r *runner) tell() {
	if r.cfg.OnAgreed != nil {
		r.cfg.OnAgreed(negotiate.Origin(r.url), r.Agreed())
	}
}

// Stream returns the session's stream, for its figures; the last one if there were several; nil if
// there never was one, or the next call asks for one.
func (r *runner) Stream() *streamer.Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link == nil {
		return nil
	}
	return r.link.stream
}

// Wait waits as long as the peer can begin exchanges, and asks for a stream if no call has done so.
// It waits until ctx is done, whose cause it returns, or until there is no stream and none will
// come, by Config.Reconnect either. Then the error is a [negotiate.Error] with the code NoHHFR that
// gives the reason, or Closed.
func (r *runner) Wait(ctx context.Context) error {
	for {
		l, err := r.current(ctx)
		switch {
		case err != nil:
			return err
		case l == nil && r.claim():
			if err := r.askNow(ctx); err != nil {
				return err
			}
			continue
		case l == nil:
			return coded(negotiate.NoHHFR, errors.New(r.Agreed().Why))
		}
		select {
		case <-l.stream.Done():
		case <-r.ctx.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// current returns the stream to use now; nil means plain SOAP. While a broken stream is being
// replaced it waits.
func (r *runner) current(ctx context.Context) (*sessionStream, error) {
	for {
		r.mu.Lock()
		state, l, again, why := r.machine.Phase(), r.link, r.again, r.agreed.Why
		r.mu.Unlock()
		switch {
		case state == machine.Closed:
			return nil, coded(negotiate.Closed, nil)
		case state == machine.Plain && r.cfg.RequireHHFR:
			return nil, coded(negotiate.NoHHFR, errors.New(why))
		case state == machine.Replacing:
			select {
			case <-again:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		case state != machine.Streaming:
			return nil, nil
		case l.stream.Over():
			r.lost(l)
		default:
			return l, nil
		}
	}
}

// streaming reports whether messages go over a stream now, or wait for the next one.
func (r *runner) streaming() bool {
	r.mu.Lock()
	state, l := r.machine.Phase(), r.link
	r.mu.Unlock()
	if l == nil || state == machine.Plain {
		return false
	}
	if state != machine.Streaming || !l.stream.Over() {
		return true
	}
	r.lost(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.machine.Phase() != machine.Plain
}

// begin takes the first stream of the session, and logs it.
func (r *runner) begin(n *negotiation) {
	f := n.agreed.Facts
	n.log.Info("stream", "mode", string(n.agreed.Mode), "session", f.Session.String(),
		"representation", f.Representation, "transport", f.Transport)
	r.install(n)
}

// install makes a negotiated stream the current one.
func (r *runner) install(n *negotiation) {
	l := &sessionStream{negotiation: n, lane: n.stream.Lane(0), path: n.agreed.Facts.Path}
	r.adopt(n)
	n.headers.begin(r, l.stream)
	l.used.coder, l.used.known = n.coder, n.agreed.Facts.PeerShapes
	r.mu.Lock()
	dropped := false
	if r.link == nil || r.link.stream != n.stream { // else a call and a question have the same one
		r.streams++
		l.number = r.streams
		for _, t := range r.step(machine.Connected{Stream: l.number}) {
			if dropped = t.Do == machine.Drop; !dropped {
				r.use(l)
			}
		}
	}
	found := r.found
	r.mu.Unlock()
	r.tell()
	found()
	if dropped {
		_ = l.stream.Close()
	}
}

// use makes a stream the current one. mu is locked.
func (r *runner) use(l *sessionStream) {
	r.before = slices.DeleteFunc(r.before, func(l *sessionStream) bool { return l.stream.Over() })
	if r.link != nil {
		r.before = append(r.before, r.link)
	} else {
		l.agreed.Tried = slices.Concat(r.agreed.Tried, l.agreed.Tried)
	}
	r.link, r.agreed = l, l.agreed
	if r.cfg.Reconnect > 0 || r.outbox != nil {
		r.wait.Go(func() {
			select {
			case <-l.stream.Done():
				r.lost(l)
			case <-r.ctx.Done():
			}
		})
	}
	if r.asker != nil {
		r.wait.Go(func() { l.watchMet() })
	}
}

// negotiation starts an attempt to get a stream.
func (r *runner) negotiation() *negotiation {
	r.mu.Lock()
	undeclared := r.machine.Undeclared()
	r.mu.Unlock()
	target := r.nodes.target()
	return &negotiation{
		dialer: r.dialer,
		cfg:    r.cfg,
		url:    target,
		log:    r.cfg.Log.With("url", loggable(target)),
		serve:  r.serve,
		outbox: r.outbox,
		taken:  &r.taken,
		client: r.client,
		asker:  r.asker,

		undeclared: undeclared,
	}
}

// start runs something beside the session, which Close waits for; false: it is closed.
func (r *runner) start(f func(context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.machine.Phase() == machine.Closed {
		return false
	}
	r.wait.Go(func() { f(r.ctx) })
	return true
}
