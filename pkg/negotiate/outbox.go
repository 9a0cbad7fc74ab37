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

	mu  sync.Mutex // held while the sequence is replaced
	seq *sequence.Sequence
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
	name := sha256.Sum256([]byte(originOf(u) + pathOf(u)))
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

// close lets go of the sequence, and lets another session have it.
func (o *outbox) close() {
	if q := o.sequence(); q != nil {
		q.Close()
	}
	o.release()
}

func (o *outbox) restore(ctx context.Context) error {
	d := o.d
	stored, err := o.store.Get(ctx, o.uri)
	switch {
	case errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}):
		return o.begin(ctx)
	case err != nil:
		return err
	}
	o.revision = stored.Revision
	if o.entry, err = parseOutbox(stored.Value); err != nil {
		return err
	}
	if err := o.open(ctx, o.entry.assurance); err != nil {
		return err
	}
	st := o.seq.Status()
	if !d.cfg.Resume {
		o.entry.before = 0
	}
	switch {
	case st.Over, st.Closed && st.Accepted > st.Done, st.Accepted == 0 && o.entry.assurance != d.assurance():
		if d.cfg.Resume {
			o.entry.before = int64(o.resumed()) // what is left of the run goes into another sequence
		}
		return o.replace(ctx, nil)
	case o.entry.assurance != d.assurance():
		return badConfig("the store has a sequence of %s for this URL that is not over: finish it first", o.entry.assurance)
	case st.Closed:
		o.closed = true
	case !d.cfg.Resume && o.entry.base != st.Accepted:
		o.entry.base = st.Accepted
		return o.save(ctx)
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

func (o *outbox) save(ctx context.Context) error {
	b, err := o.entry.marshal()
	if err != nil {
		return err
	}
	o.revision, err = o.store.Commit(ctx, o.uri, o.revision, b)
	return err
}

// begin makes a new sequence.
func (o *outbox) begin(ctx context.Context) error {
	var id [16]byte
	rand.Read(id[:])
	o.entry = outboxEntry{assurance: o.d.assurance(), sequence: ctxstore.SequenceURI(id), before: o.entry.before}
	if err := o.save(ctx); err != nil {
		return err
	}
	return o.open(ctx, o.entry.assurance)
}

func (o *outbox) stateURI() string { return o.entry.sequence + ":initiator" }

func (o *outbox) open(ctx context.Context, assurance string) error {
	a, ordered, ok := parseAssurance(assurance)
	if !ok {
		return malformed(fmt.Errorf("outbox of assurance %.60q", assurance))
	}
	q, err := sequence.Open(ctx, sequence.Config{Assurance: a, Ordered: ordered, Store: o.store, URI: o.stateURI(), Late: o.late, Clock: o.d.cfg.Clock, Log: o.d.cfg.Log})
	if err != nil {
		return err
	}
	o.seq = q
	return nil
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

// replace begins a new sequence in the place of one that is over, or lost; list is what goes on in it. Under mu, once there are sessions.
func (o *outbox) replace(ctx context.Context, list []*sequence.Sending) error {
	old, uri := o.seq, o.stateURI()
	old.Close()
	if err := o.begin(ctx); err != nil {
		return err
	}
	o.seq.Take(list)
	if err := o.store.Delete(ctx, uri, nil); err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
		o.d.cfg.Log.Warn("state of an ended sequence not deleted", "uri", uri, "err", err)
	}
	return nil
}

// lost is for a responder that knew the sequence and knows it no more. What it may have done nobody knows: under at-least-once that is sent again, else reported.
func (o *outbox) lost(ctx context.Context) error {
	o.d.cfg.Log.Warn("the other end lost the state of the sequence", "sequence", o.entry.sequence)
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.seq.Lose(o.d.cfg.Assurance == wsrm.AtLeastOnce)
	// Those of them that were accepted are so once more.
	accepted := slices.DeleteFunc(slices.Clone(list), func(s *sequence.Sending) bool { return !s.Accepted() })
	o.entry.before += int64(o.seq.Status().Accepted) - int64(o.entry.base) - int64(len(accepted))
	return o.replace(ctx, list)
}

// taken notes that a responder has the sequence.
func (o *outbox) taken(ctx context.Context) error {
	if o.entry.joined {
		return nil
	}
	o.entry.joined = true
	return o.save(ctx)
}
