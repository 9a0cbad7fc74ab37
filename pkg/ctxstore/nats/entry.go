package nats

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Fields of a message.
const (
	// headerExpires is when an entry expires; the servers remove it some time after that.
	headerExpires = "Hhfr-Expires"
	// headerURI is the URI that the key does not have, as hexadecimal digits.
	headerURI = "Hhfr-Uri"
	// headerParts says that the value is in parts: their name, number, and bytes in all.
	headerParts = "Hhfr-Parts"
	// headerWas is the revision of the entry that a marker takes the place of.
	headerWas = "Hhfr-Was"
	// headerOperation is there in what takes the place of a deleted entry, as in any bucket;
	// headerReason in what the servers put there when one expires.
	headerOperation, headerReason = "KV-Operation", "Nats-Marker-Reason"
	// headerSize is the length of a value in a list.
	headerSize = "Nats-Msg-Size"
)

// markerLife is how long a deleted entry leaves something behind, for who watches.
const markerLife = time.Minute

// partsOf are the parts of a value that is longer than a message can be.
type partsOf struct {
	name  string // empty: the value is in the message
	count int
	bytes int64
}

func (p partsOf) header() string { return fmt.Sprintf("%s %d %d", p.name, p.count, p.bytes) }

// state is what the message of an entry says, apart from its value.
type state struct {
	revision uint64
	gone     bool // nothing is stored; the message says so
	was      uint64
	expires  time.Time
	parts    partsOf
	uri      string // empty: the key has it
}

// stateOf reads the fields of a message.
func stateOf(h nats.Header, revision uint64) (s state, err error) {
	s.revision = revision
	if h.Get(headerOperation) != "" || h.Get(headerReason) != "" {
		s.gone = true
		s.was, _ = strconv.ParseUint(h.Get(headerWas), 10, 64) // 0: not said
		return s, nil
	}
	if v := h.Get(headerExpires); v != "" {
		if s.expires, err = time.Parse(instant, v); err != nil {
			return s, err
		}
	}
	if v := h.Get(headerURI); v != "" {
		uri, err := hex.DecodeString(v)
		if err != nil {
			return s, err
		}
		s.uri = string(uri)
	}
	if v := h.Get(headerParts); v != "" {
		if n, err := fmt.Sscanf(v, "%s %d %d", &s.parts.name, &s.parts.count, &s.parts.bytes); err != nil || n != 3 ||
			s.parts.count < 1 || s.parts.bytes < 0 || s.parts.bytes > ctxstore.MaxValue ||
			strings.ContainsAny(s.parts.name, ".*>") {
			return s, errors.New("malformed " + headerParts)
		}
	}
	return s, nil
}

// absent reports whether nothing is stored at a time.
func (s *state) absent(now time.Time) bool {
	return s.gone || !s.expires.IsZero() && !now.Before(s.expires)
}

// instant is RFC 3339 of one length: a value can always be replaced by one that is as long.
const instant = "2006-01-02T15:04:05.000000000Z"

// conditions adds the fields of a message that replaces the one of a revision, all of one length.
func conditions(h nats.Header, expect uint64, id string, life time.Duration) {
	h.Set(jetstream.ExpectedLastSubjSeqHeader, fmt.Sprintf("%020d", expect))
	h.Set(jetstream.MsgIDHeader, id)
	if life > 0 {
		h.Set(jetstream.MsgTTLHeader, fmt.Sprintf("%012ds", int64(life/time.Second)))
	}
}

// lifeUntil is for how long the servers keep what expires: whole seconds, and one more, so that
// they never are the first.
func lifeUntil(expires, now time.Time) time.Duration {
	if expires.IsZero() {
		return 0
	}
	return max(expires.Sub(now), 0).Truncate(time.Second) + 2*time.Second
}

// latest are the newest states of entries that this process knows of. A state never changes; only
// whether it still is the newest, the servers know.
type latest struct {
	mu     sync.Mutex
	states map[string]state // by key
}

// maxLatest bounds latest: some 200 bytes each.
const maxLatest = 10_000

func (l *latest) get(key string) (state, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.states[key]
	return s, ok
}

func (l *latest) set(key string, s state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, ok := l.states[key]; ok && old.revision > s.revision {
		return
	}
	if l.states == nil || len(l.states) >= maxLatest {
		l.states = map[string]state{}
	}
	l.states[key] = s
}

func (l *latest) drop(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.states, key)
}
