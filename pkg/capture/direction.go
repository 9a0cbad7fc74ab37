// Package capture finds sessions and messages in captures, recordings and raw stream octets, and gives them back as they were sent: [Decode], [DecodeStreams]. Its packet layer is package flow.
package capture

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/transit"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// State says how far a message of a stream can be trusted (wire-format section 6).
type State uint8

const (
	// Unverified: whole, but no checked sync or close covers it.
	Unverified State = iota + 1
	// Verified: a sync or close with a right check covers it.
	Verified
	// Withdrawn: the check of the sync or close that covers it is wrong.
	Withdrawn
	// Incomplete: fragments of it are missing.
	Incomplete
	// Cancelled: its sender gave it up.
	Cancelled
	// Undecodable: whole, but its shape is missing or does not fit its content.
	Undecodable
	// Unchecked: whole plain SOAP, of which nothing in the capture says whether it is what was sent.
	Unchecked
)

var stateNames = map[State]string{Unverified: "unverified", Verified: "verified", Withdrawn: "withdrawn", Incomplete: "incomplete", Cancelled: "cancelled", Undecodable: "undecodable", Unchecked: "unchecked"}

func (s State) String() string { return stateNames[s] }

// direction decodes the frames of one direction of a stream, run by run.
type direction struct {
	shapes map[[32]byte][]byte       // serializations seen in full, shared by all directions
	find   func(transit.Name) []byte // finds what a packed shape stands on

	known  bool // word, origin and base are trusted
	word   [8]byte
	origin frame.Origin
	base   int64 // where offset 0 of the stream lies in the direction
	hello  *frame.Hello

	epoch     int  // syncs so far
	following bool // every octet since the last hello or sync was read
	numbering frame.Numbering
	checks    frame.Checks
	pieces    frame.Pieces
	table     map[uint64]named
	open      map[frame.Key]*gathered
	uncovered []*gathered // whole since the last sync

	messages []*gathered
	refused  []frame.Cancel // messages of the other direction that this end did not take
	problems []string
	octets   StreamOctets
	closed   bool

	left int // octets at the end of the last run that are no whole frame
}

// StreamOctets are the octets of a direction by what they were for. Data counts the frames of messages, payload and framing.
type StreamOctets struct{ Data, Shape, Sync, Other int64 }

// gathered is a message before it is joined.
type gathered struct {
	key         frame.Key
	oneWay      bool
	place       frame.Place
	alone       bool   // in one frame
	stages      uint64 // of its direction
	epoch       int
	state       State
	why         string
	head, body  part
	wire        int64
	first, last flow.Mark
	offset      int64
}

// part is the content of a head or body.
type part struct {
	there, bad bool
	number     uint64
	shape      named
	segments   []segment
}

// named is what a number stands for. A decoder that joins at a sync knows but the name: the first octets of the fingerprint.
type named struct {
	name        transit.Name
	fingerprint [32]byte
	whole       bool // the fingerprint is known
}

func nameOf(fp [32]byte) named { return named{transit.NameOf(fp), fp, true} }

func (n named) uri() string {
	if n.whole {
		return ctxstore.ShapeURI(n.fingerprint)
	}
	return fmt.Sprintf("%s%s", shape.URIPrefix, n.name)
}

type segment struct {
	text   bool
	octets []byte
}

func (j *joiner) direction(ctx context.Context) *direction {
	return &direction{shapes: j.seen, find: func(n transit.Name) []byte { return j.base(ctx, n) }, open: map[frame.Key]*gathered{}, table: map[uint64]named{},
		pieces: frame.Pieces{MaxShapes: maxShapes, MaxBytes: maxShapeOctets}}
}

func (d *direction) problem(at int64, format string, args ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, fmt.Sprintf("offset %d: %s", at, fmt.Sprintf(format, args...)))
	}
}

// run decodes one run.
func (d *direction) run(r *flow.Run) {
	at := 0
	if h, ok := frame.Opening(r.Data); ok && !d.known {
		d.known, d.following, d.base = true, true, r.Offset
		d.hello, d.word, d.origin, d.checks = &h, h.Word, h.Origin(), frame.NewChecks(h.Origin())
	} else {
		at = d.resync(r, 0)
	}
	for at < len(r.Data) && !d.closed {
		offset := r.Offset + int64(at) - d.base
		f, n, err := frame.Parse(r.Data[at:], offset, 0)
		if err == nil && n == 0 {
			break
		}
		if err == nil {
			err = d.frame(f, n, offset, r, at)
		}
		if err != nil {
			d.problem(offset, "%v", err)
			d.lose("damaged stream")
			at = d.resync(r, at+1)
			continue
		}
		at += n
	}
	d.left = len(r.Data) - at
	d.lose("octets missing")
}

func (d *direction) frame(f frame.Frame, n int, offset int64, r *flow.Run, at int) error {
	switch f := f.(type) {
	case frame.Data:
		d.octets.Data += int64(n)
		return d.data(f, n, offset, r, at)
	case frame.Hello:
		d.octets.Other += int64(n)
		if offset != 0 {
			return fmt.Errorf("a second hello")
		}
		return supported(f.Stages)
	case frame.Shape:
		d.octets.Shape += int64(n)
		return d.shape(f, offset)
	case frame.Sync:
		d.octets.Sync += int64(n)
		if err := supported(f.Stages); err != nil {
			return err
		}
		return d.sync(f, offset)
	case frame.Cancel:
		d.octets.Other += int64(n)
		d.cancel(f)
	case frame.Close:
		d.octets.Other += int64(n)
		d.closed = true
		right, known := d.checks.AgreeClose(f)
		d.cover(right, known, offset)
		if f.Code != frame.CloseDone && f.Code != frame.CloseGoingAway {
			d.problem(offset, "closed: %s %s", f.Code, f.Text)
		}
	default:
		d.octets.Other += int64(n)
	}
	return nil
}

func supported(stages uint64) error {
	if stages&^(binary.Columns|binary.Memory|binary.Zstd|frame.Headers) != 0 {
		return fmt.Errorf("optional stages %#x, which this version does not know", stages)
	}
	return nil
}

func (d *direction) shape(f frame.Shape, offset int64) error {
	switch f.Form {
	case frame.Reference:
		d.table[f.Number] = nameOf(f.Fingerprint)
	case frame.Full:
		packed, err := d.pieces.Add(f, offset)
		if err != nil || packed == nil {
			return err
		}
		octets, err := transit.Unpack(packed, d.find)
		if errors.Is(err, &transit.Error{Code: transit.NoBase}) {
			d.problem(offset, "shape number %d: %v", f.Number, err)
			delete(d.table, f.Number)
			return nil
		}
		if err != nil {
			return err
		}
		fp := sha256.Sum256(octets)
		d.shapes[fp] = octets
		d.table[f.Number] = nameOf(fp)
	}
	return nil
}

func (d *direction) cancel(f frame.Cancel) {
	d.checks.Cancel(f)
	if f.Refused {
		d.refused = append(d.refused, f)
		return
	}
	if g := d.open[f.Message]; g != nil {
		g.state, g.why = Cancelled, f.Code.String()
		if f.Text != "" {
			g.why += ": " + f.Text
		}
		delete(d.open, f.Message)
	}
}

func (d *direction) data(f frame.Data, n int, offset int64, r *flow.Run, at int) error {
	if !d.following {
		return fmt.Errorf("data before hello or sync")
	}
	if err := d.numbering.Resolve(&f, offset); err != nil {
		return err
	}
	parts, err := d.checks.Cut(&f, offset, offset+int64(n-len(f.Payload)))
	if err != nil {
		return err
	}
	d.checks.Add(&f, &parts, d.nameOf)
	key := f.Key()
	g := d.open[key]
	if f.First {
		g = &gathered{key: key, oneWay: f.OneWay, place: f.Place, alone: f.Last, stages: d.origin.Stages, epoch: d.epoch, first: r.MarkAt(at), offset: offset}
		d.open[key] = g
		d.messages = append(d.messages, g)
	}
	if g == nil {
		return nil // begun before the sync this decoder joined at
	}
	g.wire += int64(n)
	g.last = r.MarkAt(at + n - 1)
	g.add(&parts, d.table)
	if f.Last {
		g.state = Unverified
		delete(d.open, key)
		d.uncovered = append(d.uncovered, g)
	}
	return nil
}

// nameOf is how a sync names the shape behind a number.
func (d *direction) nameOf(number uint64) (name [8]byte, known bool) {
	n, known := d.table[number]
	return n.name, known
}

// add takes what a fragment has of head and body.
func (g *gathered) add(parts *frame.Parts, table map[uint64]named) {
	if parts.HasHead {
		g.head.add(parts.Head, table)
	}
	if parts.HasBody {
		g.body.add(parts.Body, table)
	}
}

func (p *part) add(f frame.Part, table map[uint64]named) {
	if f.First {
		p.there, p.number = true, f.Shape
		var announced bool
		p.shape, announced = table[f.Shape]
		p.bad = f.Shape != 0 && !announced
	}
	p.segments = append(p.segments, segment{f.Text, f.Segment})
}
