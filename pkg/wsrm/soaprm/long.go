package soaprm

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
)

// maxLong is how many messages of more than maxShort an end has in memory at once; others wait.
const maxLong = 4

// longSlots bound those.
type longSlots chan struct{}

// take waits for a slot. Errors: the cause of ctx.
func (s longSlots) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s longSlots) free() { <-s }

// storedBody is an envelope in pieces, as a payload of an engine refers to it.
type storedBody struct {
	in     pieces.Bodies
	name   string
	length int64
}

// putLong stores an envelope in pieces.
func putLong(ctx context.Context, in pieces.Bodies, envelope []byte) (*storedBody, error) {
	b := &storedBody{in, pieces.NewName(), int64(len(envelope))}
	return b, in.PutAll(ctx, b.name, envelope)
}

func (b *storedBody) append(dst []byte) []byte {
	return binary.AppendUvarint(bin.AppendBytes(dst, []byte(b.name)), uint64(b.length))
}

func readStoredBody(octets []byte, in pieces.Bodies) *storedBody {
	c := bin.NewCursor(octets, 0)
	return &storedBody{in, string(c.Bytes(uint64(len(octets)))), int64(c.Uvarint())}
}

// read returns the envelope. Errors: those of [pieces.Bodies.Open].
func (b *storedBody) read(ctx context.Context) ([]byte, error) {
	envelope := make([]byte, min(b.length, MaxMessage))
	_, err := io.ReadFull(b.in.Open(ctx, b.name, b.length, 0), envelope)
	return envelope, err
}

// longBody is the body of a request that takes a slot once it is long. What comes before is not
// much, and slow clients hold no slot by it.
type longBody struct {
	io.ReadCloser
	ctx   context.Context
	slots longSlots
	came  int
	holds bool
}

// Read implements [io.Reader].
func (b *longBody) Read(p []byte) (int, error) {
	if b.came > maxShort {
		if err := b.hold(); err != nil {
			return 0, err
		}
	}
	n, err := b.ReadCloser.Read(p)
	b.came += n
	return n, err
}

// hold takes the slot of the request, if it has none: for a long reply, too.
func (b *longBody) hold() error {
	if b.holds {
		return nil
	}
	err := b.slots.take(b.ctx)
	b.holds = err == nil
	return err
}

// done frees the slot.
func (b *longBody) done() {
	if b.holds {
		b.slots.free()
	}
	b.holds = false
}
