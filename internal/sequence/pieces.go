package sequence

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
)

// numberOf is the reverse of nameOf.
func numberOf(name string) (uint64, error) { return strconv.ParseUint(name, 16, 64) }

// nameOf names the body of the message with a number.
func nameOf(number uint64) string { return fmt.Sprintf("%032x", number) }

// LongBody is the body of a long message, which lies in pieces in the store.
type LongBody struct {
	in     pieces.Bodies
	name   string
	length int64
	digest [sha256.Size]byte // of what is sent; that of what arrived nobody asks for
	read   func()            // nil, or called when it is read, or not wanted
}

// Open reads the body, one piece at a time, from an offset on. The body must not be done meanwhile.
func (b *LongBody) Open(ctx context.Context, from int64) io.ReadCloser {
	return &bodyReader{b.in.Open(ctx, b.name, b.length, from), b}
}

// bodyReader reads a body, and says so when that is over.
type bodyReader struct {
	io.Reader
	body *LongBody
}

// Read implements [io.Reader].
func (r *bodyReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if errors.Is(err, io.EOF) {
		_ = r.Close()
	}
	return n, err
}

// Close implements [io.Closer].
func (r *bodyReader) Close() error {
	r.Reader = io.MultiReader()
	if r.body.read != nil {
		r.body.read()
	}
	return nil
}

// pieceWriter stores a body as it comes.
type pieceWriter struct {
	to     *LongBody
	digest hash.Hash
	buffer []byte
}

func newPieceWriter(in pieces.Bodies, size int) *pieceWriter {
	return &pieceWriter{to: &LongBody{in: in, name: pieces.NewName()}, digest: sha256.New(), buffer: make([]byte, size)}
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
			if err := w.to.in.Put(ctx, w.to.name, w.to.length, w.buffer[:n]); err != nil {
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
