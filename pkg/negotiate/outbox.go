package negotiate

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/sequence"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// outbox is the initiator's end of the sequence that a store has for one URL, or under at-most-once one session. Its entry names the sequence; the state lies under a URI of its own.
type outbox struct {
	d        *Dialer
	store    ctxstore.Store
	uri      string // of the entry
	revision uint64
	entry    outboxEntry
	release  func() // of the entry
	closed   bool   // all is done, and an earlier session was interrupted before both ends knew

	mu        sync.Mutex
	seq       *sequence.Sequence
	replacing chan struct{}       // closed when a lost sequence was replaced, or the outbox closed; nil: none is lost
	left      []*sequence.Sending // of a lost sequence, as long as there is no other to send them in
}

// outboxEntry is what lies in the store, as XML.
type outboxEntry struct {
	assurance string // URI
	sequence  string // URI
	// joined: a responder has taken the sequence, and knows it from then on.
	joined bool
	// base is how many messages the sequence had accepted before the run that goes on, and before how many earlier sequences of that run had, less those that are in this one too.
	base   uint64
	before int64
}

const outboxName = "Outbox"

// stateURI is where the state of the sequence lies.
func (e *outboxEntry) stateURI() string { return e.sequence + ":initiator" }

func (e *outboxEntry) marshal() ([]byte, error) {
	w := writer{ns: xmlns.HHFRContext}
	w.texts("Assurance", e.assurance)
	w.sequence(e.sequence, stateName(e.joined))
	w.texts("Base", fmt.Sprint(e.base))
	w.texts("Before", fmt.Sprint(e.before))
	if w.err != nil {
		return nil, malformed(w.err)
	}
	el := w.element(outboxName)
	return soap.BuildElement(&el)
}

func parseOutbox(data []byte) (e outboxEntry, err error) {
	el, err := soap.ParseElement(data, soap.Limits{MaxBytes: maxContext, MaxDepth: 4, MaxElements: 16})
	if err != nil {
		return e, malformed(fmt.Errorf("outbox: %w", err))
	}
	r := reader{el: el, asked: map[string]bool{}}
	var state string
	e.assurance = r.one("Assurance")
	e.sequence, state = r.sequence()
	e.joined = state == sequenceKnown
	if _, err := fmt.Sscan(r.one("Base"), &e.base); err != nil {
		r.fail("Base: %w", err)
	}
	if _, err := fmt.Sscan(r.one("Before"), &e.before); err != nil {
		r.fail("Before: %w", err)
	}
	if r.err != nil || e.sequence == "" {
		return e, malformed(fmt.Errorf("outbox: %w", errors.Join(r.err, errNoSequence)))
	}
	return e, nil
}

// openOutbox goes on with the sequence that the store has for u, or makes one.
func (d *Dialer) openOutbox(ctx context.Context, u *url.URL) (*outbox, error) {
	name := sha256.Sum256([]byte(Origin(u) + pathOf(u)))
	o := &outbox{d: d, store: d.cfg.Store, uri: outboxPrefix + hex.EncodeToString(name[:])}
	if !d.cfg.kept() {
		o.store = memory.New(memory.Config{Clock: d.cfg.Clock})
	}
	release, err := ctxstore.Hold(o.store, o.uri)
	if err != nil {
		return nil, err
	}
	o.release = release
	if err := o.restore(ctx); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// close lets go of the sequence, and lets another session have it. Nothing replaces the sequence meanwhile.
func (o *outbox) close() {
	if q := o.sequence(); q != nil {
		q.Close()
	}
	sequence.Abandon(o.left)
	o.left = nil
	o.replaced()
	o.release()
}

// replaced lets those go on that wait for another sequence.
func (o *outbox) replaced() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.replacing != nil {
		close(o.replacing)
		o.replacing = nil
	}
}

func (o *outbox) restore(ctx context.Context) error {
	d := o.d
	stored, err := o.store.Get(ctx, o.uri)
	switch {
	case errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}):
		return o.begin(ctx, 0)
	case err != nil:
		return err
	}
	o.revision = stored.Revision
	if o.entry, err = parseOutbox(stored.Value); err != nil {
		return err
	}
	q, err := o.open(ctx, o.entry)
	if err != nil {
		return err
	}
	o.use(q)
	st := q.Status()
	before := int64(0)
	if d.cfg.Resume {
		before = int64(o.resumed()) // what is left of the run goes into another sequence
	} else {
		o.entry.before = 0
	}
	switch {
	case st.Over, st.Closed && st.Accepted > st.Done, st.Accepted == 0 && o.entry.assurance != d.assurance():
		return o.replace(ctx, before)
	case o.entry.assurance != d.assurance():
		return badConfig("the store has a sequence of %s for this URL that is not over: finish it first", o.entry.assurance)
	case st.Closed:
		o.closed = true
	case !d.cfg.Resume && o.entry.base != st.Accepted:
		e := o.entry
		e.base = st.Accepted
		return o.save(ctx, e)
	}
	return nil
}

// outboxPrefix begins the URI of an outbox; what follows is the SHA-256 of the URL without query, in hexadecimal digits.
const outboxPrefix = "urn:hhfr:outbox:"

// assurance is the URI of what is asked for.
func (d *Dialer) assurance() string {
	return AssuranceURI(max(d.cfg.Assurance, wsrm.AtMostOnce), d.cfg.Ordered)
}

// sequenced tells whether sessions have a sequence.
func (c *Config) sequenced() bool { return c.kept() || c.Ordered }

// kept tells whether that outlives them.
func (c *Config) kept() bool { return c.Assurance > wsrm.AtMostOnce }

// save makes e the entry, unless it cannot be stored.
func (o *outbox) save(ctx context.Context, e outboxEntry) error {
	b, err := e.marshal()
	if err != nil {
		return err
	}
	revision, err := o.store.Commit(ctx, o.uri, o.revision, b)
	if err == nil {
		o.revision, o.entry = revision, e
	}
	return err
}

// begin makes a new sequence, and the entry that names it; before is what that says. After an error the one before is still there.
func (o *outbox) begin(ctx context.Context, before int64) error {
	var id [16]byte
	rand.Read(id[:])
	e := outboxEntry{assurance: o.d.assurance(), sequence: ctxstore.SequenceURI(id), before: before}
	q, err := o.open(ctx, e)
	if err != nil {
		return err
	}
	if err := o.save(ctx, e); err != nil {
		q.Close()
		o.forget(ctx, e)
		return err
	}
	o.use(q)
	return nil
}

// open opens the sequence that an entry names.
func (o *outbox) open(ctx context.Context, e outboxEntry) (*sequence.Sequence, error) {
	a, ordered, ok := parseAssurance(e.assurance)
	if !ok {
		return nil, malformed(fmt.Errorf("outbox of assurance %.60q", e.assurance))
	}
	return sequence.Open(ctx, sequence.Config{Assurance: a, Ordered: ordered, Store: o.store, URI: e.stateURI(), Late: o.late, Clock: o.d.cfg.Clock, Log: o.d.cfg.Log})
}

// forget deletes the state of the sequence that an entry named.
func (o *outbox) forget(ctx context.Context, e outboxEntry) {
	if err := o.store.Delete(ctx, e.stateURI(), nil); err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
		o.d.cfg.Log.Warn("state of an ended sequence not deleted", "uri", e.stateURI(), "err", err)
	}
}

func (o *outbox) use(q *sequence.Sequence) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq = q
}

// sequence is the one at hand.
func (o *outbox) sequence() *sequence.Sequence {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seq
}

// name is the sequence's URI; "" without an outbox.
func (o *outbox) name() string {
	if o == nil {
		return ""
	}
	return o.entry.sequence
}

// resumed is how many messages of the run that goes on were accepted.
func (o *outbox) resumed() uint64 {
	return uint64(max(0, o.entry.before+int64(o.seq.Status().Accepted)-int64(o.entry.base)))
}

func (o *outbox) late(number uint64, m sequence.Message, err error) {
	if o.d.cfg.LateReply != nil {
		o.d.cfg.LateReply(number, streamer.NewMessage(m.Head, m.Body), sequenceError(err))
	}
}

// replace begins a new sequence in the place of one that is over, or lost.
func (o *outbox) replace(ctx context.Context, before int64) error {
	old := o.entry
	o.seq.Close()
	if err := o.begin(ctx, before); err != nil {
		return err
	}
	o.forget(ctx, old)
	return nil
}

// lost is for a responder that knew the sequence and knows it no more. What it may have done nobody knows: under at-least-once that is sent again, else reported. After an error it is called again, or the outbox closed.
func (o *outbox) lost(ctx context.Context) error {
	o.d.cfg.Log.Warn("the other end lost the state of the sequence", "sequence", o.entry.sequence)
	o.mu.Lock()
	if o.replacing == nil {
		o.replacing = make(chan struct{})
	}
	o.mu.Unlock()
	o.left = append(o.left, o.seq.Lose(o.d.cfg.Assurance == wsrm.AtLeastOnce)...)
	// Those of them that were accepted are so once more.
	accepted := slices.DeleteFunc(slices.Clone(o.left), func(s *sequence.Sending) bool { return !s.Accepted() })
	if err := o.replace(ctx, o.entry.before+int64(o.seq.Status().Accepted)-int64(o.entry.base)-int64(len(accepted))); err != nil {
		return err
	}
	o.seq.Take(o.left)
	o.left = nil
	o.replaced()
	return nil
}

// after is the sequence that came in the place of q, once that is decided; q itself if none did, or ctx ended before.
func (o *outbox) after(ctx context.Context, q *sequence.Sequence) *sequence.Sequence {
	o.mu.Lock()
	replacing := o.replacing
	o.mu.Unlock()
	if replacing != nil {
		select {
		case <-replacing:
		case <-ctx.Done():
			return q
		}
	}
	return o.sequence()
}

// taken notes that a responder has the sequence.
func (o *outbox) taken(ctx context.Context) error {
	if o.entry.joined {
		return nil
	}
	e := o.entry
	e.joined = true
	return o.save(ctx, e)
}
