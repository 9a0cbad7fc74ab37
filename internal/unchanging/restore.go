package unchanging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// RestorerConfig is what a [Restorer] is made of.
type RestorerConfig struct {
	// Store has the fragments; nil: there is none, and nothing is put back.
	Store ctxstore.Store
	// Common returns the key of a scope. Required. See [CommonIn].
	Common func(ctx context.Context, scope string) (*negotiate.Common, error)
	// Archive is where copies of the fragments stay for good; nil: nowhere.
	Archive ctxstore.Store
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log is told when the store cannot be used, once; nil: nobody is told.
	Log *slog.Logger
}

// Restorer puts fragments back into messages. It is safe for concurrent use.
type Restorer struct {
	cfg RestorerConfig

	mu      sync.Mutex
	keys    map[string]*fragmentKeys // by scope
	texts   map[string]string        // by reference
	reading map[string]bool          // references, for replies
	size    int                      // of the texts
	pause   time.Time                // the store is not asked before
	why     error                    // of the pause
	failing bool
}

const (
	// maxScopes and maxKnown bound what a restorer remembers, in scopes and in bytes of texts.
	maxScopes, maxKnown = 1024, 4 << 20
	// fetchTimeout bounds the wait of a message for the store, and fetchPause is how long no
	// message waits for a store that has failed.
	fetchTimeout, fetchPause = 5 * time.Second, 5 * time.Second
)

// NewRestorer returns one.
func NewRestorer(cfg RestorerConfig) *Restorer {
	orDefaults(&cfg.Clock, &cfg.Log)
	return &Restorer{
		cfg: cfg, keys: map[string]*fragmentKeys{}, texts: map[string]string{}, reading: map[string]bool{},
	}
}

// Restorer returns one for who receives from the peers of a common store; nil without one. own is
// where sessions are kept, and, with archive, the fragments as well.
func (c *CommonStore) Restorer(own ctxstore.Store, archive bool, clock clock.Clock, log *slog.Logger) *Restorer {
	if c == nil {
		return nil
	}
	cfg := RestorerConfig{Store: c.Store, Common: CommonIn(own), Clock: clock, Log: log}
	if archive {
		cfg.Archive = own
	}
	return NewRestorer(cfg)
}

// CommonIn finds the key of a scope by the contexts of sessions in an end's own store.
func CommonIn(store ctxstore.Store) func(context.Context, string) (*negotiate.Common, error) {
	return func(ctx context.Context, scope string) (*negotiate.Common, error) {
		at, err := store.Get(ctx, ScopeURI(scope))
		if err != nil {
			return nil, err
		}
		session, err := store.Get(ctx, string(at.Value))
		if err != nil {
			return nil, err
		}
		facts, err := negotiate.ParseFacts(session.Value)
		if err != nil || facts.Common == nil || !strings.HasPrefix(facts.Common.Scope(), scope) {
			return nil, fmt.Errorf("the context of the session has not the key of scope %s", scope)
		}
		return facts.Common, nil
	}
}

// Unrestored is the error for a message whose fragments cannot be put back. The message was not
// processed.
type Unrestored struct {
	Reference string
	URI       string // of the entry that is not there; "": that is not known
	Version   soap.Version
	Err       error
}

func (e *Unrestored) Error() string { return fmt.Sprintf("fragment %s: %v", e.Reference, e.Err) }
func (e *Unrestored) Unwrap() error { return e.Err }

const (
	unknownContext = "unknownContextFault"
	generalFault   = "generalFault"
)

// Fault is what the sender of the message gets: it may send it again without references.
func (e *Unrestored) Fault() soap.Fault {
	kind := generalFault
	if errors.Is(e.Err, ctxstore.NotFound) {
		kind = unknownContext
	}
	in := func(local string) soap.Name { return soap.Name{Space: xmlns.WSContext, Local: local} }
	return soap.Fault{
		Code: soap.Server, Reason: "the message was not processed: a fragment that it refers to is not there",
		Detail: []soap.Element{{
			Name: in(kind), Children: []soap.Element{{Name: in(identifierName), Text: e.Reference}},
		}},
	}
}

// Restore returns a message with its fragments, and how many they are; 0: it has no references, and
// stays as it is. body needs no more than the beginning of the message, up to its Body. Errors:
// *[Unrestored].
func (r *Restorer) Restore(ctx context.Context, body []byte) (whole []byte, fragments int, err error) {
	if !Refers(body) {
		return nil, 0, nil
	}
	h, _ := headerOf(body)
	at := 0
	for _, b := range h.blocks {
		if b.reference == "" {
			continue
		}
		text, err := r.text(ctx, b.reference)
		if err != nil {
			return nil, 0, &Unrestored{b.reference, r.uriOf(b.reference), h.version, err}
		}
		whole = append(append(whole, body[at:b.from]...), text...)
		at, fragments = b.to, fragments+1
	}
	if fragments == 0 {
		return nil, 0, nil
	}
	return append(whole, body[at:]...), fragments, nil
}

// Texts returns what references of an offer stand for. They are read at the same time: a slow store
// takes as long for all as for one.
func (r *Restorer) Texts(ctx context.Context, common *negotiate.Common, references []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	keys := newFragmentKeys(common)
	return atOnce(references, func(reference string) (string, error) { return r.fetch(ctx, keys, reference) })
}

// atOnce does something for each text at the same time, and returns the results in their order, or
// the first error in that order.
func atOnce(texts []string, do func(text string) (string, error)) ([]string, error) {
	list, errs := make([]string, len(texts)), make([]error, len(texts))
	var wait sync.WaitGroup
	for i, text := range texts {
		wait.Go(func() { list[i], errs[i] = do(text) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Named returns the text that a reference on a stream stands for, by its name.
func (r *Restorer) Named(ctx context.Context, common *negotiate.Common, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	keys := newFragmentKeys(common)
	return r.fetch(ctx, keys, keys.reference(keys.uriOf(name)))
}

// uriOf returns the URI of the entry that a reference stands for; empty if it is not known.
func (r *Restorer) uriOf(reference string) string {
	if parseShort(reference) == nil {
		uri, _, _ := strings.Cut(reference, "#")
		return uri
	}
	r.mu.Lock()
	keys := r.keys[scopeOf(reference)]
	r.mu.Unlock()
	if keys == nil {
		return ""
	}
	uri, _ := keys.check(reference)
	return uri
}

// Refers reports quickly whether there may be a reference at the beginning of a message.
func Refers(body []byte) bool {
	body = body[:min(len(body), headerWindow)]
	return bytes.Contains(body, []byte(xmlns.Reference)) || bytes.Contains(body, []byte(ctxstore.FragmentPrefix))
}

// text returns the text that a reference stands for.
func (r *Restorer) text(ctx context.Context, reference string) (string, error) {
	r.mu.Lock()
	text, known := r.texts[reference]
	keys, pause, why := r.keys[scopeOf(reference)], r.pause, r.why
	r.mu.Unlock()
	switch {
	case known:
		return text, nil
	case r.cfg.Clock.Now().Before(pause):
		return "", why
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if keys == nil {
		common, err := r.cfg.Common(ctx, scopeOf(reference))
		if err != nil {
			return "", r.failed(err)
		}
		keys = newFragmentKeys(common)
	}
	return r.fetch(ctx, keys, reference)
}

// ErrNoStore is why nothing is put back without a store.
var ErrNoStore = errors.New("no context store is given")

// fetch gets a text from the store.
func (r *Restorer) fetch(ctx context.Context, keys *fragmentKeys, reference string) (string, error) {
	uri, err := keys.check(reference)
	if err != nil {
		return "", err
	}
	if r.cfg.Store == nil {
		return "", ErrNoStore
	}
	entry, err := r.cfg.Store.Get(ctx, uri)
	if err != nil {
		return "", r.failed(err)
	}
	text, err := keys.open(uri, entry.Value)
	if err != nil {
		return "", err
	}
	if r.learn(keys, reference, text) && r.cfg.Archive != nil {
		if _, err := r.cfg.Archive.Put(ctx, uri, entry.Value, ctxstore.PutOptions{}); err != nil {
			r.cfg.Log.Warn("fragment not archived", "fragment", uri, "err", err)
		}
	}
	return text, nil
}

// learn remembers what was found, and reports whether it was not known.
func (r *Restorer) learn(keys *fragmentKeys, reference, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = false
	if len(r.keys) >= 2*maxScopes {
		clear(r.keys)
	}
	r.keys[keys.scope], r.keys[keys.scope[:negotiate.HandleLen]] = keys, keys
	if r.size+len(text) > maxKnown {
		clear(r.texts)
		r.size = 0
	}
	if _, known := r.texts[reference]; known {
		return false
	}
	r.texts[reference] = text
	r.size += len(text)
	return true
}

// failed records that a store could not be asked. That it lacks an entry is no failure.
func (r *Restorer) failed(err error) error {
	if errors.Is(err, ctxstore.NotFound) || errors.Is(err, context.Canceled) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pause, r.why = r.cfg.Clock.Now().Add(fetchPause), err
	if !r.failing {
		r.failing = true
		r.cfg.Log.Warn("messages with references are refused: the common context store cannot be used", "err", err)
	}
	return err
}
