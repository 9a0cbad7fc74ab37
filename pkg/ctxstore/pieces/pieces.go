// Package pieces keeps in a store what is too long for one entry: the bodies of long messages under
// a guarantee, each in several entries.
package pieces

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Size is how many bytes of a body lie in one entry, at most.
const Size = 512 << 10

// prefix begins the URIs of all pieces.
const prefix = "urn:hhfr:piece:"

// Bodies are where the bodies of long messages lie: each in entries of a store, under its name and
// the offset of what is in the entry. Nothing else says that a piece is there, so that a process
// that dies leaves what the next one finds: either the state of the sequence has the message, or
// its pieces are nobody's and are dropped. Of the zero value nothing is kept.
type Bodies struct {
	store  ctxstore.Store
	prefix string // of their URIs
	life   time.Duration
}

// Of are those of messages in one direction, of what has a URI, for so long; 0: forever.
func Of(store ctxstore.Store, uri, direction string, life time.Duration) Bodies {
	name := sha256.Sum256([]byte(uri))
	return Bodies{store, prefix + hex.EncodeToString(name[:16]) + ":" + direction + ":", life}
}

// NewName names a body.
func NewName() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// IsZero reports whether nothing is kept.
func (b Bodies) IsZero() bool { return b.store == nil }

// Put stores the piece of a body that begins at an offset. Errors: those of the store.
func (b Bodies) Put(ctx context.Context, name string, at int64, piece []byte) error {
	if b.store == nil {
		return nil // it is only measured
	}
	_, err := b.store.Put(ctx, fmt.Sprintf("%s%s:%010x", b.prefix, name, at), piece, ctxstore.PutOptions{TTL: b.life})
	return err
}

// PutAll stores a body. What is stored of it when that fails is dropped. Errors: those of the
// store.
func (b Bodies) PutAll(ctx context.Context, name string, body []byte) error {
	for at := 0; at < len(body); at += Size {
		if err := b.Put(ctx, name, int64(at), body[at:min(at+Size, len(body))]); err != nil {
			return errors.Join(err, b.Drop(ctx, name))
		}
	}
	return nil
}

// Piece is an entry of a body.
type Piece struct {
	uri      string
	at, size int64
}

// List returns the pieces of each body, those of each by their offsets; name: only of that one.
func (b Bodies) List(ctx context.Context, name string) (map[string][]Piece, error) {
	all := map[string][]Piece{}
	for info, err := range b.store.List(ctx, b.prefix+name) {
		if err != nil {
			return nil, err
		}
		name, offset, _ := strings.Cut(strings.TrimPrefix(info.URI, b.prefix), ":")
		at, err := strconv.ParseInt(offset, 16, 64)
		if err != nil {
			continue // none of ours
		}
		all[name] = append(all[name], Piece{info.URI, at, info.Size})
	}
	return all, nil
}

// Length is how far pieces go without a gap, in bytes.
func Length(list []Piece) (n int64) {
	for _, s := range list {
		if s.at > n {
			break
		}
		n = max(n, s.at+s.size)
	}
	return n
}

// Drop removes a body.
func (b Bodies) Drop(ctx context.Context, name string) error {
	all, err := b.List(ctx, name)
	if err != nil {
		return err
	}
	for _, s := range all[name] {
		err := b.store.Delete(ctx, s.uri, nil)
		if err != nil && !errors.Is(err, ctxstore.NotFound) {
			return err
		}
	}
	return nil
}

// DropAll removes all bodies but those of some names.
func (b Bodies) DropAll(ctx context.Context, but ...string) error {
	all, err := b.List(ctx, "")
	for name := range all {
		if !slices.Contains(but, name) {
			err = errors.Join(err, b.Drop(ctx, name))
		}
	}
	return err
}

// Open reads a body of a length, one piece at a time, from an offset on. The body must not be
// dropped meanwhile. Errors: [ErrGap], those of the store.
func (b Bodies) Open(ctx context.Context, name string, length, from int64) io.Reader {
	return &reader{ctx: ctx, in: b, name: name, length: length, at: from}
}

type reader struct {
	ctx    context.Context
	in     Bodies
	name   string
	length int64
	at     int64 // of what is read next, behind piece
	rest   []Piece
	open   bool
	read   []byte // of the piece at hand
}

// Read implements [io.Reader].
func (r *reader) Read(b []byte) (int, error) {
	for len(r.read) == 0 {
		if r.at >= r.length {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, fmt.Errorf("piece at byte %d of %d of a long message: %w", r.at, r.length, err)
		}
	}
	n := copy(b, r.read)
	r.read = r.read[n:]
	return n, nil
}

// ErrGap says that a body, or a part of it, was dropped.
var ErrGap = errors.New("it is not in the store any more")

// next gets the piece that has the byte at hand. Pieces may overlap: two processes may have stored
// the same message as it came.
func (r *reader) next() error {
	if !r.open {
		all, err := r.in.List(r.ctx, r.name)
		if err != nil {
			return err
		}
		r.rest, r.open = all[r.name], true
	}
	for len(r.rest) > 0 && r.rest[0].at+r.rest[0].size <= r.at {
		r.rest = r.rest[1:]
	}
	if len(r.rest) == 0 || r.rest[0].at > r.at {
		return ErrGap
	}
	entry, err := r.in.store.Get(r.ctx, r.rest[0].uri)
	if err != nil {
		return err
	}
	skip := r.at - r.rest[0].at
	if int64(len(entry.Value)) <= skip {
		return ErrGap
	}
	r.read = entry.Value[skip:min(int64(len(entry.Value)), r.length-r.rest[0].at)]
	r.at += int64(len(r.read))
	return nil
}
