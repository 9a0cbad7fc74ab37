package recordings

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// joiner finds the places in a direction at which decoders join: syncs (docs/wire-format.md,
// section 6).
type joiner struct {
	look []byte // in which a sync may begin
	tail []byte // in which a hello may begin
	is   bool   // a stream was found
}

// Write implements [pcapng.EntryFinder].
func (j *joiner) Write(b []byte) (before int, stream bool) {
	if before = -1; !j.is {
		j.tail = append(j.tail, b...)
		j.is = frame.FindHello(j.tail) >= 0
		j.tail = append([]byte(nil), j.tail[max(0, len(j.tail)-frame.MarkLen+1):]...)
	}
	j.look = append(j.look, b...)
	for {
		at, _, ok := frame.FindSync(j.look, 0)
		if !ok {
			break
		}
		before, j.is = len(j.look)-at, true
		j.look = j.look[at+1:]
	}
	j.look = append([]byte(nil), j.look[frame.SyncFree(j.look, 0):]...)
	return before, j.is
}

const (
	// perStream is how many shapes one stream defines, well below what decoders take.
	perStream = 512
	// bytesPerStream bounds their serializations.
	bytesPerStream = 1 << 20
)

// definitions has the shapes that streams refer to.
type definitions struct{ store ctxstore.Store }

// of returns streams without messages, which define what the continued ones refer to: the shapes
// that a sync lists or a frame names, and those on which others are packed.
func (d definitions) of(repeated [][]byte) (streams [][]byte) {
	wanted := map[[32]byte][]byte{}
	for _, b := range repeated {
		d.collect(wanted, b)
	}
	var b []byte
	n, size := 0, 0
	byName := func(a, b [32]byte) int { return slices.Compare(a[:], b[:]) }
	for _, fp := range slices.SortedFunc(maps.Keys(wanted), byName) {
		if b == nil {
			b = hello()
		}
		n++
		size += len(wanted[fp])
		b = appendShape(b, uint64(n), wanted[fp])
		if n == perStream || size > bytesPerStream {
			streams, b, n, size = append(streams, frame.Close{}.AppendTo(b)), nil, 0, 0
		}
	}
	if b != nil {
		streams = append(streams, frame.Close{}.AppendTo(b))
	}
	return streams
}

func hello() []byte {
	h := frame.Hello{Representation: frame.Binary, Limits: frame.EarlyLimits}
	h.Limits.MaxShapes, h.Limits.MaxShapeBytes = perStream, 2*bytesPerStream
	_, _ = rand.Read(h.Session[:]) // it never fails
	_, _ = rand.Read(h.Word[:])
	return h.AppendTo(nil)
}

func appendShape(b []byte, number uint64, serialization []byte) []byte {
	packed := transit.Pack(nil, serialization, nil)
	for at := 0; at < len(packed); at += frame.MaxPayload {
		b = frame.Shape{Number: number, Form: frame.Full, Total: uint64(len(packed)), Offset: uint64(at),
			Piece: packed[at:min(at+frame.MaxPayload, len(packed))]}.AppendTo(b)
	}
	return b
}

// collect adds the shapes that the bytes of a direction need.
func (d definitions) collect(wanted map[[32]byte][]byte, b []byte) {
	pieces := frame.Pieces{MaxShapes: 1 << 13, MaxBytes: 16 << 20}
	for at := beginning(b); at < len(b); {
		f, n, err := frame.Parse(b[at:], int64(at), 0)
		if err != nil || n == 0 {
			return // the rest of a frame is in what follows
		}
		switch f := f.(type) {
		case frame.Sync:
			for _, s := range f.Shapes {
				d.named(wanted, s.Name[:])
			}
		case frame.Shape:
			if f.Form == frame.Reference {
				d.stored(wanted, f.Fingerprint)
			}
			if packed, err := pieces.Add(f, int64(at)); f.Form == frame.Full && err == nil && packed != nil {
				_, _ = transit.Unpack(packed, needs{d, wanted})
			}
		default:
		}
		at += n
	}
}

// beginning is where the frames of a stream begin; len(b) if there are none.
func beginning(b []byte) int {
	if at := frame.FindHello(b); at >= 0 {
		return at
	}
	if at, _, ok := frame.FindSync(b, 0); ok {
		return at
	}
	return len(b)
}

// needs adds the bases of a packed shape to those that are wanted. It implements
// [transit.BaseFinder].
type needs struct {
	definitions
	wanted map[[32]byte][]byte
}

// Base implements [transit.BaseFinder].
func (n needs) Base(name transit.Name) []byte { return n.named(n.wanted, name[:]) }

// Styled implements [transit.BaseFinder]. The style stands in the packed shape.
func (n needs) Styled(name transit.OwnName, _ string) []byte {
	n.named(n.wanted, name[:])
	return nil
}

// named adds the shapes whose fingerprints begin so, and returns one.
func (d definitions) named(wanted map[[32]byte][]byte, name []byte) (octets []byte) {
	for info, err := range d.store.List(context.Background(), fmt.Sprintf("%s%x", ctxstore.ShapePrefix, name)) {
		if err != nil {
			return octets
		}
		if fp, ok := ctxstore.ParseShapeURI(info.URI); ok {
			octets = d.stored(wanted, fp)
		}
	}
	return octets
}

func (d definitions) stored(wanted map[[32]byte][]byte, fp [32]byte) []byte {
	if octets, err := (ctxstore.Shapes{Store: d.store}).Get(context.Background(), fp); err == nil && wanted[fp] == nil {
		wanted[fp] = octets
	}
	return wanted[fp]
}
