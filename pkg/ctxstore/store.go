// Package ctxstore keeps contexts: shapes, sessions, and other things that two endpoints agreed on,
// each under a URI (WS-Context: a context and its context-identifier). The engines are in folders
// of their own; package engines opens one by its name.
//
// A shape is stored under [ShapeURI] of its fingerprint and is immutable: the value is checked
// against the name, and putting it again changes nothing. Every other entry is mutable, has a
// revision, and can be compared and set.
//
// A store is as confidential as the traffic.
package ctxstore

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Store keeps values under URIs. All methods are safe for concurrent use, and fail with a [*Error],
// or with the cause of ctx once that is done. After Close all fail with [Closed].
//
// It is an interface since engines are written by others; storetest tests whether an engine keeps
// what is promised here.
type Store interface {
	// Get returns the value under uri; [NotFound] if there is none, or it expired; [Corrupt] if
	// what is stored is not what was put. The value belongs to the caller.
	Get(ctx context.Context, uri string) (Entry, error)

	// Put stores a copy of value and returns its revision. The revisions of one URI only grow, also
	// over a deletion; a shape's is 1, whatever opt says. A Put that fails changes nothing.
	//
	// Errors: [Conflict] if opt.IfRevision does not hold; [Invalid] if uri or value are beyond the
	// limits, or a shape's value does not match its name; [Full] if there is no space.
	Put(ctx context.Context, uri string, value []byte, opt PutOptions) (revision uint64, err error)

	// Commit stores value if the entry's revision is expect (0: there is none), and preserves the
	// time at which the entry expires. The value is the unit of atomicity: after a crash at any
	// moment there is the old one or the new one. [Conflict] if the revision is another; of
	// concurrent calls with the same expect exactly one wins. Shapes are [Invalid].
	Commit(ctx context.Context, uri string, expect uint64, value []byte) (revision uint64, err error)

	// Delete removes an entry: [NotFound] if there is none, [Conflict] if ifRevision is given and
	// the entry has another.
	Delete(ctx context.Context, uri string, ifRevision *uint64) error

	// List yields the entries whose URI begins with prefix, ordered by URI. It holds no lock while
	// it yields. An entry that cannot be read is yielded as an error, and the others follow.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]

	// Watch reports changes of entries whose URI begins with prefix, made after it was called,
	// until ctx is done or the store closed; then the channel is closed. Changes in quick
	// succession may be reported as one, the last. Watch may poll, and may report late that a value
	// expired.
	Watch(ctx context.Context, prefix string) (<-chan Change, error)

	// Close ends all watches, waits for what it started, and is idempotent.
	Close() error
}

// Entry is a value with what the store knows of it.
type Entry struct {
	Value    []byte
	Revision uint64
	Expires  time.Time // zero: never
}

// Info is an entry without its value. Size is the length of the value in bytes.
type Info struct {
	URI      string
	Revision uint64
	Size     int64
	Expires  time.Time // zero: never
}

// Change reports that an entry has a new revision, or is gone; then Revision is the last one seen.
type Change struct {
	URI      string
	Revision uint64
	Deleted  bool
}

// PutOptions are the conditions of a Put. The zero value: store in any case, forever.
type PutOptions struct {
	// IfRevision, if given, is the revision that the entry must have; 0: there must be none. Shapes
	// ignore it.
	IfRevision *uint64
	// TTL is how long the entry lives from now on; 0: forever. It replaces the earlier one. A shape
	// takes none.
	TTL time.Duration
}

// If returns a condition for [PutOptions] and Delete: the revision that the entry must have.
func If(revision uint64) *uint64 { return &revision }

// Persists reports whether the content of a store outlives its process. That of engines does,
// except for those with a method Volatile that returns true.
func Persists(s Store) bool {
	v, ok := s.(interface{ Volatile() bool })
	return !ok || !v.Volatile()
}

// Has reports whether a store has an entry, which need not be intact. Engines look without reading
// the value; a store without a method for it has its value read.
func Has(ctx context.Context, s Store, uri string) (bool, error) {
	if h, ok := s.(interface {
		Has(ctx context.Context, uri string) (bool, error)
	}); ok {
		return h.Has(ctx, uri)
	}
	_, err := s.Get(ctx, uri)
	if errors.Is(err, NotFound) {
		return false, nil
	}
	return err == nil, err
}
