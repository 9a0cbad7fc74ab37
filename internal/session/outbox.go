package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// outbox is the initiator's end of the sequence that a store has for one URL, or under at-most-once
// one session. Its entry names the sequence; the state has a URI of its own.
type outbox struct {
	d        *Dialer
	store    ctxstore.Store
	uri      string            // of the entry
	release  func()            // of the entry
	closed   bool              // all messages are committed, and an earlier session broke off before both ends knew
	finished *sequence.SentRun // the run of the session, once all of it is committed

	// entryMu is also locked while it is decided which run messages belong to, and while another
	// sequence replaces a lost one.
	entryMu  sync.Mutex
	revision uint64
	entry    negotiate.Outbox
	fresh    bool        // the next message is the first of another run
	over     bool        // all messages are committed, and both ends know
	resume   *resumption // with Config.Resume, for the runs that the store has; else nil

	mu        sync.Mutex
	seq       *sequence.Sequence
	replacing chan struct{}       // closed when a lost sequence was replaced, or the outbox closed; nil: none is lost
	left      []*sequence.Sending // messages of a lost sequence, as long as there is no other to send them in
}

// openOutbox continues the sequence that the store has for u, or makes one.
func (d *Dialer) openOutbox(ctx context.Context, u *url.URL) (*outbox, error) {
	o := &outbox{d: d, store: d.cfg.Store, uri: outboxURI(u)}
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

// close releases the sequence so that another session can have it. Nothing replaces the sequence
// meanwhile.
func (o *outbox) close() {
	if q := o.sequence(); q != nil {
		q.Close()
	}
	sequence.Abandon(o.left)
	o.left = nil
	o.replaced()
	o.release()
}

// replaced wakes those that wait for another sequence.
func (o *outbox) replaced() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.replacing != nil {
		close(o.replacing)
		o.replacing = nil
	}
}

// restore opens the sequence that the store has, or another in its place.
func (o *outbox) restore(ctx context.Context) error {
	stored, err := lookUp(ctx, o.store, o.uri)
	switch {
	case err != nil:
		return err
	case stored == nil:
		return o.begin(ctx, sequence.NewRun())
	}
	o.revision = stored.Revision
	if o.entry, err = negotiate.ParseOutbox(stored.Value); err != nil {
		return err
	}
	q, err := o.open(ctx, o.entry, sequence.NewRun())
	if err != nil {
		return err
	}
	o.use(q)
	last, err := o.restoreRun(ctx)
	if err != nil {
		return err
	}
	st := q.Status()
	switch {
	case st.Over, st.Closed && st.Accepted > st.Done, st.Accepted == 0 && o.entry.Assurance != o.d.assurance():
		if err := o.replace(ctx, last); err != nil {
			return err
		}
		for n := st.Done + 1; n <= st.Accepted; n++ {
			o.late(n, sequence.Stored{}, &sequence.Error{Code: sequence.FateUnknown, Err: errEndedBefore})
		}
	case o.entry.Assurance != o.d.assurance():
		return negotiate.BadConfigf("the store has a sequence of %s for this URL that is not over: finish it first",
			o.entry.Assurance)
	case st.Closed:
		o.closed = true
	}
	return nil
}

var errEndedBefore = errors.New("the sequence ended before the message was known to be committed")

// outboxPrefix begins the URI of an outbox. The SHA-256 of the URL without query follows, in
// hexadecimal digits.
const outboxPrefix = "urn:hhfr:outbox:"

func outboxURI(u *url.URL) string {
	name := sha256.Sum256([]byte(negotiate.Origin(u) + negotiate.PathOf(u)))
	return outboxPrefix + hex.EncodeToString(name[:])
}

// HasSequence reports whether a store has a sequence of sessions with the service at a URL that the
// service knows: its messages go by hhfr, and by nothing else beside it. What is over counts until
// the next [Dialer.Dial].
func HasSequence(ctx context.Context, store ctxstore.Store, u *url.URL) (bool, error) {
	entry, err := lookUp(ctx, store, outboxURI(u))
	if entry == nil {
		return false, err
	}
	o, err := negotiate.ParseOutbox(entry.Value)
	return o.Joined, err
}

// save makes e the entry, unless it cannot be stored.
func (o *outbox) save(ctx context.Context, e negotiate.Outbox) error {
	b, err := e.Marshal()
	if err != nil {
		return err
	}
	revision, err := o.store.Commit(ctx, o.uri, o.revision, b)
	if err == nil {
		o.revision, o.entry = revision, e
	}
	return err
}

// begin makes a new sequence, whose messages continue a run, and the entry that names it. After an
// error the earlier sequence is still there.
func (o *outbox) begin(ctx context.Context, run sequence.SentRun) error {
	var id [16]byte
	rand.Read(id[:])
	e := o.entry
	e.Assurance, e.Sequence, e.Joined = o.d.assurance(), ctxstore.SequenceURI(id), false
	q, err := o.open(ctx, e, run)
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

// open opens the sequence that an entry names. A sequence that the store does not have continues a
// run.
func (o *outbox) open(ctx context.Context, e negotiate.Outbox, run sequence.SentRun) (*sequence.Sequence, error) {
	a, ordered, ok := negotiate.ParseAssurance(e.Assurance)
	if !ok {
		return nil, negotiate.AsMalformed(fmt.Errorf("outbox of assurance %.60q", e.Assurance))
	}
	cfg := sequence.Config{
		Assurance: a, Ordered: ordered, Store: o.store, URI: e.StateURI(), Late: o.late,
		Clock: o.d.cfg.Clock, Log: o.d.cfg.Log,
	}
	if o.d.cfg.kept() {
		cfg.Run = &run
		cfg.Long, cfg.Collect = o.uri, o.sequence() == nil // later, a lost sequence may have left some
	}
	return sequence.Open(ctx, cfg)
}

// forget deletes the state of the sequence that an entry named.
func (o *outbox) forget(ctx context.Context, e negotiate.Outbox) {
	if err := o.store.Delete(ctx, e.StateURI(), nil); err != nil &&
		!errors.Is(err, ctxstore.NotFound) {
		o.d.cfg.Log.Warn("state of an ended sequence not deleted", "uri", e.StateURI(), "err", err)
	}
}

func (o *outbox) use(q *sequence.Sequence) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seq = q
}

// sequence returns the current sequence.
func (o *outbox) sequence() *sequence.Sequence {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seq
}

// named returns the entry; that of nothing without an outbox.
func (o *outbox) named() negotiate.Outbox {
	if o == nil {
		return negotiate.Outbox{}
	}
	o.entryMu.Lock()
	defer o.entryMu.Unlock()
	return o.entry
}

// name returns the sequence's URI; "" without an outbox.
func (o *outbox) name() string { return o.named().Sequence }

// joined reports whether a responder has taken the sequence before; false without an outbox.
func (o *outbox) joined() bool { return o.named().Joined }

func (o *outbox) late(number uint64, m sequence.Stored, err error) {
	reply := m.Message(context.Background())
	if o.d.cfg.LateReply == nil {
		_ = httpmsg.CloseReader(reply.Body)
		return
	}
	o.d.cfg.LateReply(number, reply, sequenceError(err))
}

// replace begins a new sequence in the place of one that is over, or lost. The new sequence
// continues a run.
func (o *outbox) replace(ctx context.Context, run sequence.SentRun) error {
	old := o.entry
	o.seq.Close()
	if err := o.begin(ctx, run); err != nil {
		return err
	}
	o.forget(ctx, old)
	return nil
}

// lost is called when a responder that knew the sequence no longer knows it. Nobody knows which
// messages it handled: under at-least-once those are sent again, else reported. After an error it
// is called again, or the outbox closed.
func (o *outbox) lost(ctx context.Context) error {
	o.d.cfg.Log.Warn("the peer lost the state of the sequence", "sequence", o.name())
	o.mu.Lock()
	if o.replacing == nil {
		o.replacing = make(chan struct{})
	}
	o.mu.Unlock()
	o.entryMu.Lock()
	defer o.entryMu.Unlock()
	o.left = append(o.left, o.seq.Lose(o.d.cfg.Assurance == wsrm.AtLeastOnce)...)
	run, _ := o.seq.Run()
	if err := o.replace(ctx, run); err != nil {
		return err
	}
	o.seq.Take(o.left)
	o.left = nil
	o.replaced()
	return nil
}

// after returns the sequence that replaced q, once that is decided; q itself if none did, or ctx
// ended before.
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

// taken records that a responder has the sequence.
func (o *outbox) taken(ctx context.Context) error {
	o.entryMu.Lock()
	defer o.entryMu.Unlock()
	if o.entry.Joined {
		return nil
	}
	e := o.entry
	e.Joined = true
	return o.save(ctx, e)
}

// sequenceError returns an error of a sequence as an error of this package.
func sequenceError(err error) error {
	var e *sequence.Error
	if !errors.As(err, &e) {
		return err
	}
	code := negotiate.Unsent
	switch e.Code {
	case sequence.Kept, sequence.Unstored:
		code = negotiate.Kept
	case sequence.FateUnknown, sequence.Outdated:
		code = negotiate.FateUnknown
	case sequence.BadConfig:
		code = negotiate.BadConfig
	case sequence.Unsent, sequence.TooLarge:
	}
	return coded(code, err)
}

// opens reports whether the session has a sequence that no peer has taken yet.
func (o *outbox) opens() bool { return o != nil && !o.joined() }
