package unchanging

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// CommonStore is the context store that an end shares with its peers.
type CommonStore struct {
	// URL names it as the peers do, in offers.
	URL string
	// Store is what is there. It stays the caller's.
	Store ctxstore.Store
	// Headers names header blocks that may go there when they recur; those about security never do.
	Headers []soap.Name
}

// ReferrerConfig is what a [Referrer] is made of.
type ReferrerConfig struct {
	CommonStore
	// Common has the key that was agreed on. Required.
	Common *negotiate.Common
	// Blocks are texts of header blocks that may go to the store whatever their name is.
	Blocks []string
	// Lent is what earlier sessions with that key have put into the store; nil: nothing is known,
	// and nothing is kept for later ones.
	Lent *Lent
	// Lifetime is how long entries are kept; 0: forever.
	Lifetime time.Duration
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log is told when the store cannot be used, once; nil: nobody is told.
	Log *slog.Logger
}

// Referrer replaces header blocks of outgoing plain SOAP by references to the common store. A block
// goes to the store when it has recurred; messages that have it wait for that, but not for long. It
// is safe for concurrent use.
type Referrer struct {
	cfg    ReferrerConfig
	keys   *fragmentKeys
	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu        sync.Mutex
	seen      map[[32]byte]int     // how often header blocks were there
	stored    map[string]*lentText // by their text
	size      int                  // of the texts
	pause     time.Time            // no entry is made before
	failing   bool
	refused   bool // the log says that the peer did not take some
	forbidden bool // the peer does not understand references
	replies   replyCounts
}

// lentText is a text that is in the store, or on the way there.
type lentText struct {
	uri   string
	there bool
	done  chan struct{} // closed when it is there, or will not be; nil: it is there from the beginning
	since time.Time     // when it began to go there
	reply uint64        // number of the last reply that had it; 0: none had
}

const (
	// maxSeen bounds the header blocks that are counted: beyond it counting begins again.
	maxSeen = 1024
	// maxLent and maxLentSize bound what one session puts into the store, in entries and bytes.
	maxLent, maxLentSize = 64, 512 << 10
	// shortest is the longest block that is not worth a reference on a stream, in bytes.
	shortest = 64
	// putTimeout bounds an attempt to make an entry, and putPause is the pause after a failure.
	putTimeout, putPause = 10 * time.Second, 30 * time.Second
	// putWait is how long messages wait for an entry that is being made, from its beginning: all
	// messages together lose no more.
	putWait = 2 * time.Second
)

// NewReferrer returns one for a session. The caller must call Close in the end.
func NewReferrer(cfg ReferrerConfig) *Referrer {
	orDefaults(&cfg.Clock, &cfg.Log)
	r := &Referrer{cfg: cfg, keys: newFragmentKeys(cfg.Common)}
	r.seen, r.stored = map[[32]byte]int{}, map[string]*lentText{}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// orDefaults gives a configuration the real clock, and a log that nobody reads, where it has none.
func orDefaults(c *clock.Clock, log **slog.Logger) {
	if *c == nil {
		*c = clock.Real()
	}
	if *log == nil {
		*log = slog.New(slog.DiscardHandler)
	}
}

// Close waits for entries that are being made, or gives them up.
func (r *Referrer) Close() {
	r.cancel()
	r.wait.Wait()
}

// Keep makes entries of texts now, at the same time, and returns the references to them.
func (r *Referrer) Keep(ctx context.Context, texts []string) (references []string, err error) {
	references, err = atOnce(texts, func(text string) (string, error) {
		uri := r.keys.uri(text)
		if r.cfg.Lent.has(text) {
			return r.keys.reference(uri), nil
		}
		if err := r.put(ctx, uri, text); err != nil {
			return "", err
		}
		r.keep(text, nil)
		return r.keys.reference(uri), nil
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range texts {
		if r.stored[text] == nil {
			r.stored[text] = &lentText{uri: r.keys.uri(text), there: true}
			r.size += len(text)
		}
	}
	return references, nil
}

// put stores a text, or keeps the entry that an earlier session with that key made of it.
func (r *Referrer) put(ctx context.Context, uri, text string) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	value, o := r.keys.entry(uri, text), ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: r.cfg.Lifetime}
	_, err := r.cfg.Store.Put(ctx, uri, value, o)
	if !errors.Is(err, ctxstore.Conflict) {
		return err
	}
	there, err := r.cfg.Store.Get(ctx, uri)
	if err != nil {
		return err
	}
	if !bytes.Equal(there.Value, value) {
		return errors.New("there is another text of the same name")
	}
	o.IfRevision = ctxstore.If(there.Revision)
	_, err = r.cfg.Store.Put(ctx, uri, value, o)
	return err
}

// keep records in the own store that there is an entry of a text of blocks that recur.
func (r *Referrer) keep(text string, blocks []string) {
	if err := r.cfg.Lent.put(r.ctx, text, blocks, r.cfg.Lifetime); err != nil {
		r.cfg.Log.Warn("the next session will put header blocks into the common context store again", "err", err)
	}
}

// Refer returns a message with references, and which; nil: it has none, and is to travel as it is.
// It waits for entries that are being made, as long as ctx lasts, but no more than 2 s for each.
func (r *Referrer) Refer(ctx context.Context, body []byte) (by []byte, references []string) {
	h, ok := headerOf(body)
	if !ok || slices.ContainsFunc(h.blocks, func(b foundBlock) bool { return b.reference != "" }) {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forbidden {
		return nil, nil
	}
	runs, at := r.runs(body, h.blocks), 0
	for _, run := range runs {
		r.awaitLocked(ctx, body, run)
	}
	for _, run := range runs {
		for _, part := range r.there(body, run) {
			reference := r.keys.short(r.stored[string(body[part.from:part.to])].uri)
			block := referringBlock(&h, reference)
			if len(block) >= part.to-part.from {
				continue
			}
			by = append(append(by, body[at:part.from]...), block...)
			at, references = part.to, append(references, reference)
		}
	}
	if references == nil {
		return nil, nil
	}
	return append(by, body[at:]...), references
}

// awaitLocked waits for the entry of a run that is being made, without the lock.
func (r *Referrer) awaitLocked(ctx context.Context, body []byte, run blockRun) {
	text := string(body[run.from:run.to])
	if r.lent(text, run.texts(body)) || r.stored[text] == nil {
		return
	}
	t := r.stored[text]
	left := putWait - r.cfg.Clock.Now().Sub(t.since)
	if left <= 0 {
		return
	}
	over := make(chan struct{})
	timer := r.cfg.Clock.AfterFunc(left, func() { close(over) })
	r.mu.Unlock()
	select {
	case <-t.done:
	case <-over:
	case <-ctx.Done():
	}
	timer.Stop()
	r.mu.Lock()
}

// Recurring returns the header blocks that recur at the beginning of a message and are in the
// store, but for those that were agreed on before; others that recur go there.
func (r *Referrer) Recurring(body []byte) (texts []string) {
	h, ok := headerOf(body)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range h.blocks {
		text := body[b.from:b.to]
		if b.stays || len(text) <= shortest || slices.Contains(r.cfg.Blocks, string(text)) || !r.recurs(b.name, text) {
			continue
		}
		if kept := string(text); r.lent(kept, []string{kept}) {
			texts = append(texts, kept)
		}
	}
	return texts
}

// Reference returns the reference to a text.
func (r *Referrer) Reference(text string) string { return r.keys.reference(r.keys.uri(text)) }

// there returns the parts of a run that have entries: all of it, or until that is there the blocks
// that have some of their own.
func (r *Referrer) there(body []byte, run blockRun) []blockRun {
	if r.lent(string(body[run.from:run.to]), run.texts(body)) {
		return []blockRun{run}
	}
	var parts []blockRun
	for _, b := range run.blocks {
		if t := r.stored[string(body[b.from:b.to])]; t != nil && t.there {
			parts = append(parts, blockRun{from: b.from, to: b.to})
		}
	}
	return parts
}

// blockRun is a part of a message with adjacent header blocks.
type blockRun struct {
	from, to int
	blocks   []foundBlock
}

// texts are those of the blocks.
func (run *blockRun) texts(body []byte) (list []string) {
	for _, b := range run.blocks {
		list = append(list, string(body[b.from:b.to]))
	}
	return list
}

// runs finds the blocks that recur, those next to one another together.
func (r *Referrer) runs(body []byte, blocks []foundBlock) (list []blockRun) {
	for _, b := range blocks {
		text := body[b.from:b.to]
		if b.stays || !r.recurs(b.name, text) {
			continue
		}
		if n := len(list); n > 0 && len(bytes.TrimSpace(body[list[n-1].to:b.from])) == 0 {
			list[n-1].to, list[n-1].blocks = b.to, append(list[n-1].blocks, b)
			continue
		}
		list = append(list, blockRun{b.from, b.to, []foundBlock{b}})
	}
	return list
}

// recurs counts a block, and reports whether it may be referred to and was there before.
func (r *Referrer) recurs(name soap.Name, text []byte) bool {
	if slices.Contains(r.cfg.Blocks, string(text)) {
		return true
	}
	if !slices.Contains(r.cfg.Headers, name) {
		return false
	}
	if len(r.seen) >= maxSeen {
		clear(r.seen)
	}
	sum := sha256.Sum256(text)
	r.seen[sum]++
	return r.seen[sum] > 1 || r.cfg.Lent.recurs(text)
}

// lent reports whether there is an entry of a text that messages can refer to, and sees to it that
// there will be. blocks are those in the text.
func (r *Referrer) lent(text string, blocks []string) bool {
	t := r.stored[text]
	switch {
	case t != nil && t.there:
		return true
	case t != nil || len(r.stored) >= maxLent || r.size+len(text) > maxLentSize || r.ctx.Err() != nil ||
		r.cfg.Clock.Now().Before(r.pause):
		return false
	}
	t = &lentText{uri: r.keys.uri(text), there: r.cfg.Lent.has(text), since: r.cfg.Clock.Now()}
	r.stored[text] = t
	r.size += len(text)
	if !t.there {
		t.done = make(chan struct{})
		r.wait.Go(func() { r.stores(t, text, blocks) })
	}
	return t.there
}

// stores makes an entry.
func (r *Referrer) stores(t *lentText, text string, blocks []string) {
	err := r.put(r.ctx, t.uri, text)
	if err == nil {
		defer r.keep(text, blocks) // no message waits for that
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(t.done)
	t.there = err == nil
	if err == nil {
		r.failing = false
		return
	}
	r.forgetLocked(text)
	if r.ctx.Err() == nil {
		r.failedLocked(err)
	}
}

func (r *Referrer) forgetLocked(text string) {
	if r.stored[text] != nil {
		delete(r.stored, text)
		r.size -= len(text)
	}
}

// failedLocked has messages travel whole for a while.
func (r *Referrer) failedLocked(err error) {
	r.pause = r.cfg.Clock.Now().Add(putPause)
	if !r.failing {
		r.failing = true
		r.cfg.Log.Warn("header blocks travel with each message: the common context store cannot be used",
			"store", r.cfg.URL, "err", err)
	}
}

// Refused records that a peer did not take these references. forever: it does not understand any.
func (r *Referrer) Refused(references []string, forever bool, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var gone []string
	for text, t := range r.stored {
		if slices.Contains(references, r.keys.short(t.uri)) {
			r.forgetLocked(text)
			gone = append(gone, text)
		}
	}
	if r.ctx.Err() == nil {
		r.wait.Go(func() { r.Lost(gone) })
	}
	r.forbidden = r.forbidden || forever
	r.failing = r.failing || r.refused
	r.refused = true
	r.failedLocked(why)
}

// Lost records that a peer found no entry of these texts: the next session makes new ones.
func (r *Referrer) Lost(texts []string) {
	if err := r.cfg.Lent.forget(r.ctx, texts); err != nil {
		r.cfg.Log.Warn("the next session may refer to header blocks that are gone", "err", err)
	}
}

// referringBlock is the header block that stands in the place of a fragment: 80 bytes where the
// prefix of the envelope has 8. Who does not understand it must not process the message.
func referringBlock(h *foundHeader, reference string) string {
	prefix, declared := h.prefix, ""
	if prefix == "" {
		prefix, declared = "e", ` xmlns:e="`+h.version.Namespace()+`"`
	}
	return `<r xmlns="` + xmlns.Reference + `"` + declared + " " + prefix + `:mustUnderstand="1">` + reference + "</r>"
}

// MaxFault is how much of a reply is looked at, in bytes: the fault about a reference is short.
const MaxFault = 16 << 10

// RefusedBy returns why a fault says that a message was not processed because of its references;
// nil if it says something else. forever: the receiver does not know what references are.
func RefusedBy(fault []byte, references []string) (why error, forever bool) {
	e, err := soap.Parse(fault, soap.Limits{MaxBytes: MaxFault})
	if err != nil {
		return nil, false
	}
	f, ok := e.Fault()
	switch {
	case !ok:
		return nil, false
	case f.Code == soap.MustUnderstand:
		return errors.New("the receiver does not understand references"), true
	}
	for i := range f.Detail {
		d := &f.Detail[i]
		id := d.Child(soap.Name{Space: xmlns.WSContext, Local: identifierName})
		if id != nil && d.Name.Space == xmlns.WSContext && slices.Contains(references, id.Text) {
			return fmt.Errorf("the receiver cannot put it back (%s)", d.Name.Local), false
		}
	}
	return nil, false
}
