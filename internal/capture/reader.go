// Package capture finds sessions and messages in captures, recordings and raw stream bytes, and
// returns them as they were sent, while it reads: [Reader]. Its packet layer is package flow.
package capture

import (
	"errors"
	"io"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/spool"
	"github.com/hhfr/hhfr/internal/tlsrecord"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// DecodeConfig is what a [Reader] needs besides its input. The zero value works.
type DecodeConfig struct {
	// Store has shapes that the input lacks, and the contexts of sessions: which are known, and
	// what unchanging headers they have; nil: none.
	Store ctxstore.Store
	// Own returns the own shape of a name, of descriptions of the messages; nil: there are none.
	Own func(transit.OwnName) *shape.Shape
	// MaxMessage is the longest joined message, in bytes; 0 means 1 GiB.
	MaxMessage int64
	// Keys are the secrets of connections in TLS; those in the captures are added. nil: there are
	// no others.
	Keys *tlsrecord.KeyLog
	// Ports: packets from and to others are left out; empty: none are.
	Ports []uint
	// Limits are those of reassembly.
	Limits flow.Limits
	// Starts: only the first MiB of each body is needed.
	Starts bool
	// XML: bodies in Fast Infoset are given as XML text.
	XML bool
	// Frames: messages have their frames, and frames that belong to none are events.
	Frames bool
	// Carriage: [Decoded.Carriage] is wanted.
	Carriage bool
	// Octets, if given, is called with the bytes of the directions of hhfr streams, in order.
	// stream is the number of the stream, from 1. direction is 0 for the end that opened it.
	// Missing bytes leave a gap between two offsets.
	Octets func(stream, direction int, offset int64, b []byte) error
}

// Input is a capture, or, for [Reader.Streams], the bytes of one contiguous run of one direction of
// a stream, named by [RunName] or otherwise. An input that is an [io.Seeker] can be read twice.
type Input struct {
	Name   string
	Octets io.Reader
}

// Event is a result of a [Reader]: a message, a check, or, if they are wanted, a frame.
type Event struct {
	Message *Decoded
	Check   *Check
	Frame   *RawFrame
}

// Check is the result of a check of a stream, for messages that were given as [Unverified] before:
// those of one direction from index From on, up to To.
type Check struct {
	State             State // Verified or Withdrawn
	Session           [16]byte
	Stream, Direction int
	From, To          uint64
	// Messages are those messages, with their new states, without their bodies.
	Messages []*Decoded
}

// Reader decodes captures, or bytes of streams, as they come. Its memory does not grow with them.
// An input that can be read twice is read twice: its messages have their final state when they are
// given, and find shapes that come later. Where a long one has no stream, nothing later says
// anything of what was before, and it is read once; the first messages of any long one are given as
// soon as its beginning was read twice, if that has their final states. For any other input, a
// message is given when it is whole, and a [Check] when there is one. A reader is for one input.
type Reader struct {
	cfg      DecodeConfig
	store    *storeReader // nil: none
	shapes   *shapes
	contexts contexts
	bodies   *spool.Spool
	numbers  numbers
	summary  *Summary
	joiners  []*program.Joiner
	scratch  []byte

	compression wire.Compression

	passes
	survey  map[wayKey]*found
	raw     map[string]*found // by the names of files
	streams map[int]bool      // connections that were found to be streams before

	widest int // see Widest
	looks  int // bytes that may be frames, see frames
	open   openMessages

	collect bool // bodies stay with their messages
	yield   func(Event, error) bool
	stopped bool
	err     error
}

// wayKey names a direction of a connection.
type wayKey struct{ flow, dir int }

// Summary returns what was found so far.
func (r *Reader) Summary() *Summary { return r.summary }

// Twice reports whether the input can be read again: messages have their final states.
func (r *Reader) Twice() bool { return r.twice }

// Widest returns the length of the longest address of an end that sends messages, as text, as far
// as they are known.
func (r *Reader) Widest() int { return r.widest }

// met records addresses of ends that send messages.
func (r *Reader) met(f *flow.Flow) {
	if f.Src.IsValid() {
		r.widest = max(r.widest, len(f.Src.String()), len(f.Dst.String()))
	}
}

var errStopped = errors.New("nobody takes more")

// failed returns the reason why nothing more is to be read.
func (r *Reader) failed() error {
	if r.stopped || r.once && r.needed {
		return errStopped
	}
	return r.err
}

// tell passes an event to the caller.
func (r *Reader) tell(ev Event) {
	if r.surveying || r.stopped || r.once && r.needed {
		return
	}
	if r.told++; r.told > r.before {
		r.stopped = !r.yield(ev, nil)
	}
}

// give passes a message on.
func (r *Reader) give(d *Decoded) {
	r.summary.count(d)
	if !r.surveying {
		if d.Version != soap.None && d.Whole() {
			d.Reliable, d.faulted = reliable(d.Body, int64(len(d.Body)) == d.BodyOctets)
		}
		r.summary.sequences.note(d)
	}
	r.tell(Event{Message: d})
	d.content.Free()
	if !r.collect {
		d.content, d.Body, d.Frames = nil, nil, nil
	}
}

// found returns what a first pass finds out about a direction.
func (r *Reader) found(flow, dir int) *found {
	if !r.surveying && !r.twice {
		return new(found)
	}
	key := wayKey{flow, dir}
	if r.survey[key] == nil {
		r.survey[key] = new(found)
	}
	return r.survey[key]
}

// rawFound does the same for a direction in a file.
func (r *Reader) rawFound(name string) *found {
	if r.raw == nil {
		r.raw = map[string]*found{}
	}
	if r.raw[name] == nil || !r.twice {
		r.raw[name] = new(found)
	}
	return r.raw[name]
}
