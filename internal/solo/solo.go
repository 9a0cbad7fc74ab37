// Package solo writes single messages as hhfr content, so that whoever reads the same context store
// can read each of them alone, in any order: their shapes are in the store, and a message names
// them by fingerprint (docs/wire-format.md, section 13).
package solo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/fault"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// Malformed: what is read is no message of this form.
	Malformed Code = iota + 1
	// UnknownShape: its shape is not in the store.
	UnknownShape
	// TooLarge: the message is longer than the reader takes.
	TooLarge
	// StoreFailed: the store does not say whether it has the shape. It may, a little later; the
	// cause is the error of the store.
	StoreFailed
)

var codeNames = map[Code]string{
	Malformed: "malformed content", UnknownShape: "unknown shape", TooLarge: "message too large",
	StoreFailed: "its shape cannot be looked up",
}

func (c Code) String() string { return codeNames[c] }

// From implements [fault.Code].
func (Code) From() string { return "" }

// Error is what this package returns.
type Error = fault.Of[Code]

// MessageCodec packs and unpacks messages by the shapes of a context store. It is safe for
// concurrent use.
type MessageCodec struct {
	store ctxstore.Store
	coder *binary.Coder

	mu     sync.Mutex
	marked string // the entry that [MessageCodec.Mark] made
	until  time.Time
}

// New makes a codec of a book of shapes in a store, both of which stay the caller's.
func New(store ctxstore.Store, book *binary.Book) *MessageCodec {
	// What is remembered between messages, or told by their text, is nothing to a reader of one.
	opt := binary.Options{Refer: true, Without: wire.Memory | wire.Plain}
	return &MessageCodec{store: store, coder: book.Coder(opt)}
}

// hello is what both ends take for said before each message.
func hello() frame.Hello {
	return frame.Hello{Token: make([]byte, frame.TokenLen), Representation: frame.Binary,
		Stages: wire.Columns | wire.Zstd, Limits: frame.Limits{
			MaxFragment: frame.MaxPayload, MaxMessage: 1 << 40, MaxShapes: 1024, MaxShapeBytes: 4 << 20,
			Window: frame.MinWindow, Far: true,
		}}
}

// Pack writes a message, which may be any text. Shapes that are new go to the store before; where
// that cannot be, the message has itself as text in it.
func (c *MessageCodec) Pack(message []byte) ([]byte, error) {
	said := hello()
	enc := wire.NewEncoder(wire.EncoderConfig{Origin: frame.OriginOf(said), Word: said.Word, Peer: c.coder,
		Refer: true, Limits: said.Limits, Compression: c.coder.Compression(), SyncInterval: -1,
	}, len(said.AppendTo(nil)), time.Time{})
	out := wire.Outgoing{Key: frame.Key{Exchange: 1}, OneWay: true}
	cut := c.coder.Split(0, enc.MaxSegment(), func(_ bool, part wire.Part) error {
		if enc.Announce(out.Lane, &part, false, time.Time{}) != nil {
			return errors.New("a shape that is not referred to")
		}
		return enc.Data(&out, new(wire.Part), &part, part.Last, time.Time{})
	})
	defer cut.Free()
	if err := cut.All(message); err != nil {
		return nil, err
	}
	enc.Close(frame.CloseDone, "")
	return enc.Bytes(), nil
}

// Unpack reads a message of at most most bytes. Errors: Malformed, UnknownShape, TooLarge,
// StoreFailed.
func (c *MessageCodec) Unpack(packed []byte, most int) ([]byte, error) {
	shapes := readerShapes{Coder: c.coder}
	message, err := unpack(&shapes, packed, most)
	if err != nil && shapes.failed != nil {
		err = &Error{Code: StoreFailed, Err: shapes.failed}
	}
	return message, err
}

func unpack(shapes *readerShapes, packed []byte, most int) ([]byte, error) {
	d := wire.NewDecoder(wire.DecoderConfig{Shapes: shapes, MaxHeld: -1, MaxOpen: 1,
		Compression: shapes.Compression(), Scratch: true})
	if _, err := d.Next(hello().AppendTo(nil)); err != nil {
		return nil, err
	}
	r := contentReader{most: most}
	for !r.closed {
		f, err := d.Next(packed)
		if err == nil && f.Octets == 0 {
			err = fmt.Errorf("it ends after %d bytes of a frame", len(packed))
		}
		for i := 0; err == nil && i < len(f.Events); i++ {
			err = r.event(&f.Events[i])
		}
		var own *Error
		if err != nil && !errors.As(err, &own) {
			err = &Error{Code: Malformed, Err: err}
		}
		if err != nil {
			return nil, err
		}
		packed = packed[f.Octets:]
	}
	if len(packed) > 0 {
		return nil, &Error{Code: Malformed, Err: fmt.Errorf("%d bytes follow its end", len(packed))}
	}
	return r.message, nil
}

// readerShapes has shapes that a message brings itself stay out of the store: only their writer
// puts them there.
type readerShapes struct {
	*binary.Coder
	failed error // of the store, where that is not that it lacks the shape, or has it damaged
}

// Find implements [wire.Shapes].
func (r *readerShapes) Find(fp shape.Fingerprint) *program.Program {
	p, err := r.Look(fp)
	var failed *binary.Error
	if errors.As(err, &failed) && !errors.Is(err, ctxstore.NotFound) && !errors.Is(err, ctxstore.Corrupt) {
		r.failed = failed.Err
	}
	return p
}

// Keep implements [wire.Shapes].
func (*readerShapes) Keep(s *shape.Shape) *program.Program { return program.Compile(s) }

// contentReader joins one message.
type contentReader struct {
	most    int
	message []byte
	joiner  program.Joiner
	whole   bool
	closed  bool
}

func (r *contentReader) event(ev *wire.Event) error {
	switch ev.Kind {
	case wire.Fragment:
		if ev.Err != nil {
			return lacking(ev.Err)
		}
		if ev.First && r.message != nil || r.whole {
			return errors.New("a second message")
		}
		r.whole = ev.Last
		return r.join(&ev.Body)
	case wire.Synced:
		if !ev.Verdict.Right {
			return errors.New("a check does not agree")
		}
	case wire.Closed:
		if !ev.Verdict.Right || !r.whole || ev.Close.Code != frame.CloseDone || ev.Close.Text != "" {
			return errors.New("it is not whole, or its check does not agree")
		}
		r.closed = true
	case wire.Dropped, wire.Lacks:
		return &Error{Code: UnknownShape}
	default:
		return errors.New("a frame that does not belong to a message")
	}
	return nil
}

func lacking(err error) error {
	if errors.Is(err, &wire.Error{Code: wire.Lacking}) {
		return &Error{Code: UnknownShape, Err: errors.New(wire.LackingShape(err))}
	}
	return err
}

func (r *contentReader) join(part *wire.Part) (err error) {
	more := false
	if part.Program == nil {
		r.message = append(r.message, part.Content...)
	} else {
		if part.First {
			r.joiner.Reset(part.Program)
		}
		r.message, more, err = r.joiner.JoinSome(r.message, part.Content, part.Text, part.Last, r.most-len(r.message)+1)
	}
	if err == nil && (more || len(r.message) > r.most) {
		return &Error{Code: TooLarge, Err: fmt.Errorf("it has more than %d bytes", r.most)}
	}
	if r.message == nil {
		r.message = []byte{}
	}
	return err
}

const (
	// markPrefix begins the URIs of entries by which an end shows which store it has.
	markPrefix = "urn:hhfr:queue:"
	// markLife is how long such an entry is there, and halfway it is replaced.
	markLife = 24 * time.Hour
)

// Mark gives the URI of an entry that this end has put into the store, so that who finds it there
// knows that it has the same store.
func (c *MessageCodec) Mark(ctx context.Context) (uri string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.until.Before(now) {
		made := markPrefix + uuid.NewString()
		if _, err := c.store.Put(ctx, made, nil, ctxstore.PutOptions{TTL: markLife}); err != nil {
			return "", err
		}
		c.marked, c.until = made, now.Add(markLife/2)
	}
	return c.marked, nil
}

// Shares reports whether an entry that a peer has marked is in the store.
func (c *MessageCodec) Shares(ctx context.Context, uri string) (bool, error) {
	return ctxstore.Has(ctx, c.store, uri)
}
