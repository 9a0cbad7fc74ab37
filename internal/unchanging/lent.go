package unchanging

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Lent is what an end has put into a common store for the service at one URL, with the key for
// that: it is kept in the end's own store, and so the next session there refers at once. It is safe
// for concurrent use.
type Lent struct {
	own   ctxstore.Store
	uri   string
	url   string // of the common store
	clock clock.Clock

	writing sync.Mutex

	mu    sync.Mutex
	key   [32]byte
	until time.Time // end of the key
	// texts are those of which there are entries, with the end of these; recurring are header
	// blocks that recurred. Both by digest.
	texts     map[string]time.Time
	recurring map[string]bool
}

// lentDocument is the form in the store.
type lentDocument struct {
	Key       string               `json:"key"`
	Until     time.Time            `json:"until"`
	Texts     map[string]time.Time `json:"texts"`
	Recurring map[string]bool      `json:"recurring"`
}

const (
	// keyLife is how long one key is offered again.
	keyLife = 7 * 24 * time.Hour
	// maxRecurring bounds the blocks that are known to recur.
	maxRecurring = 4 * maxLent
	// lentTimeout bounds the reading and writing of the own store.
	lentTimeout = 5 * time.Second
)

// OpenLent returns what own has for the service at a URL and the common store of another. Without
// that, or if it cannot be read, there is a new key, and nothing under it.
func OpenLent(ctx context.Context, own ctxstore.Store, service, common string, c clock.Clock) *Lent {
	sum := sha256.Sum256([]byte(service + "\n" + common))
	l := &Lent{own: own, uri: ctxstore.LentPrefix + hex.EncodeToString(sum[:16]), url: common, clock: c}
	if entry, err := own.Get(ctx, l.uri); err == nil && l.parse(entry.Value) == nil && c.Now().Before(l.until) {
		return l
	}
	l.key, l.until = negotiate.NewCommon(common).Key, c.Now().Add(keyLife)
	l.texts, l.recurring = map[string]time.Time{}, map[string]bool{}
	return l
}

func (l *Lent) parse(value []byte) error {
	var d lentDocument
	if err := json.Unmarshal(value, &d); err != nil {
		return err
	}
	if n, err := hex.Decode(l.key[:], []byte(d.Key[:min(len(d.Key), 64)])); err != nil || n != len(l.key) {
		return errors.New("no key")
	}
	if len(d.Texts) > maxLent || len(d.Recurring) > maxRecurring || d.Texts == nil || d.Recurring == nil {
		return errors.New("too many texts, or none")
	}
	l.until, l.texts, l.recurring = d.Until, d.Texts, d.Recurring
	return nil
}

// Common is the common store with the key.
func (l *Lent) Common() *negotiate.Common { return &negotiate.Common{URL: l.url, Key: l.key} }

// has reports whether there is an entry of a text, for long enough.
func (l *Lent) has(text string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	until, ok := l.texts[digestOf(text)]
	return ok && (until.IsZero() || l.clock.Now().Before(until))
}

// recurs reports whether a header block has recurred.
func (l *Lent) recurs(block []byte) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recurring[digestOf(string(block))]
}

// put records that there is an entry of a text, which consists of blocks that recur; 0: forever. It
// counts on that for three quarters of the lifetime, lest messages refer to what is about to go.
func (l *Lent) put(ctx context.Context, text string, blocks []string, lifetime time.Duration) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	until := time.Time{}
	if lifetime > 0 {
		until = l.clock.Now().Add(lifetime * 3 / 4)
	}
	maps.DeleteFunc(l.texts, func(_ string, until time.Time) bool {
		return !until.IsZero() && !l.clock.Now().Before(until)
	})
	if len(l.texts) >= maxLent {
		clear(l.texts)
	}
	l.texts[digestOf(text)] = until
	if len(l.recurring)+len(blocks) > maxRecurring {
		clear(l.recurring)
	}
	for _, block := range blocks {
		l.recurring[digestOf(block)] = true
	}
	l.mu.Unlock()
	return l.write(ctx)
}

// forget records that there is no entry of these texts.
func (l *Lent) forget(ctx context.Context, texts []string) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	for _, text := range texts {
		delete(l.texts, digestOf(text))
	}
	l.mu.Unlock()
	return l.write(ctx)
}

// write keeps it all in the own store.
func (l *Lent) write(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lentTimeout)
	defer cancel()
	l.mu.Lock()
	value, err := json.Marshal(lentDocument{hex.EncodeToString(l.key[:]), l.until, l.texts, l.recurring})
	ttl := l.until.Sub(l.clock.Now())
	l.mu.Unlock()
	if err != nil || ttl <= 0 {
		return err
	}
	_, err = l.own.Put(ctx, l.uri, value, ctxstore.PutOptions{TTL: ttl})
	return err
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}
