package sequence

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// pieces are where the bodies of long messages lie: each in entries of a store, under its name and
// the offset of what is in the entry. Nothing else says that a piece is there, so that a process
// that dies leaves what the next one finds: either the state of the sequence has the message, or
// its pieces are nobody's and are dropped.
type pieces struct {
	store  ctxstore.Store
	prefix string // of their URIs
	life   time.Duration
}

// piecePrefix begins the URIs of all pieces.
const piecePrefix = "urn:hhfr:piece:"

// piecesOf are those of messages in one direction, of what has a URI.
func piecesOf(store ctxstore.Store, uri, direction string, life time.Duration) pieces {
	name := sha256.Sum256([]byte(uri))
	return pieces{store, piecePrefix + hex.EncodeToString(name[:16]) + ":" + direction + ":", life}
}

// numberOf is the reverse of nameOf.
func numberOf(name string) (uint64, error) { return strconv.ParseUint(name, 16, 64) }

// newName names a body that is to be sent.
func newName() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// nameOf names the body of the message with a number.
func nameOf(number uint64) string { return fmt.Sprintf("%032x", number) }

func (p pieces) put(ctx context.Context, name string, at int64, piece []byte) error {
	if p.store == nil {
		return nil // it is only measured
	}
	_, err := p.store.Put(ctx, fmt.Sprintf("%s%s:%010x", p.prefix, name, at), piece, ctxstore.PutOptions{TTL: p.life})
	return err
}

// storedPiece is an entry of a body.
type storedPiece struct {
	uri      string
	at, size int64
}

// list gives the pieces of each body, those of each by their offsets; name: only of that one.
func (p pieces) list(ctx context.Context, name string) (map[string][]storedPiece, error) {
	all := map[string][]storedPiece{}
	for info, err := range p.store.List(ctx, p.prefix+name) {
		if err != nil {
			return nil, err
		}
		name, offset, _ := strings.Cut(strings.TrimPrefix(info.URI, p.prefix), ":")
		at, err := strconv.ParseInt(offset, 16, 64)
		if err != nil {
			continue // none of ours
		}
		all[name] = append(all[name], storedPiece{info.URI, at, info.Size})
	}
	return all, nil
}

// length is how far pieces go without a gap.
func length(list []storedPiece) (n int64) {
	for _, s := range list {
		if s.at > n {
			break
		}
		n = max(n, s.at+s.size)
	}
	return n
}

// drop removes a body.
func (p pieces) drop(ctx context.Context, name string) error {
	all, err := p.list(ctx, name)
	if err != nil {
		return err
	}
	for _, s := range all[name] {
		err := p.store.Delete(ctx, s.uri, nil)
		if err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
			return err
		}
	}
	return nil
}

// LongBody is the body of a long message, which lies in pieces in the store.
type LongBody struct {
	in     pieces
	name   string
	length int64
	digest [sha256.Size]byte // of what is sent; that of what arrived nobody asks for
	read   func()            // nil, or called when it is read, or not wanted
}

// Open reads the body, one piece at a time, from an offset on. The body must not be done meanwhile.
func (b *LongBody) Open(ctx context.Context, from int64) io.ReadCloser {
	return &pieceReader{ctx: ctx, body: b, at: from}
}

// pieceReader reads a body.
type pieceReader struct {
	ctx  context.Context
	body *LongBody
	at   int64 // of what is read next, behind piece
	rest []storedPiece
	open bool
	read []byte // of the piece at hand
}

// Read implements [io.Reader].
func (r *pieceReader) Read(b []byte) (int, error) {
	for len(r.read) == 0 {
		if r.at >= r.body.length {
			_ = r.Close()
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, fmt.Errorf("piece at byte %d of %d of a long message: %w", r.at, r.body.length, err)
		}
	}
	n := copy(b, r.read)
	r.read = r.read[n:]
	return n, nil
}

// Close implements [io.Closer].
func (r *pieceReader) Close() error {
	r.at, r.read = r.body.length, nil
	if r.body.read != nil {
		r.body.read()
	}
	return nil
}

var errGap = errors.New("it is not in the store any more")

// next gets the piece that has the byte at hand. Pieces may overlap: two processes may have stored
// the same message as it came.
func (r *pieceReader) next() error {
	if !r.open {
		all, err := r.body.in.list(r.ctx, r.body.name)
		if err != nil {
			return err
		}
		r.rest, r.open = all[r.body.name], true
	}
	for len(r.rest) > 0 && r.rest[0].at+r.rest[0].size <= r.at {
		r.rest = r.rest[1:]
	}
	if len(r.rest) == 0 || r.rest[0].at > r.at {
		return errGap
	}
	entry, err := r.body.in.store.Get(r.ctx, r.rest[0].uri)
	if err != nil {
		return err
	}
	skip := r.at - r.rest[0].at
	if int64(len(entry.Value)) <= skip {
		return errGap
	}
	r.read = entry.Value[skip:min(int64(len(entry.Value)), r.body.length-r.rest[0].at)]
	r.at += int64(len(r.read))
	return nil
}

// pieceWriter stores a body as it comes.
type pieceWriter struct {
	to     *LongBody
	digest hash.Hash
	buffer []byte
}

func newPieceWriter(in pieces, size int) *pieceWriter {
	return &pieceWriter{to: &LongBody{in: in, name: newName()}, digest: sha256.New(), buffer: make([]byte, size)}
}

// from stores what a reader has, up to most bytes of the whole body.
func (w *pieceWriter) from(ctx context.Context, r io.Reader, most int64) error {
	for {
		n, err := io.ReadFull(r, w.buffer)
		w.digest.Write(w.buffer[:n])
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return err
		}
		if w.to.length+int64(n) > most {
			return tooLarge(w.to.length+int64(n), most)
		}
		if n > 0 {
			if err := w.to.in.put(ctx, w.to.name, w.to.length, w.buffer[:n]); err != nil {
				return &Error{Code: Unsent, Err: err}
			}
			w.to.length += int64(n)
		}
		if ended {
			w.digest.Sum(w.to.digest[:0])
			return nil
		}
	}
}
