// Package capture finds sessions and messages in captures, recordings and raw stream bytes, and
// returns them as they were sent, while it reads: [Reader]. Its packet layer is package flow.
package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
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

// NewReader returns a reader.
func NewReader(ctx context.Context, cfg DecodeConfig) *Reader {
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = defaultMaxMessage
	}
	if cfg.Keys == nil {
		cfg.Keys = new(tlsrecord.KeyLog)
	}
	r := &Reader{
		cfg:     cfg,
		survey:  map[wayKey]*found{},
		streams: map[int]bool{},
		summary: newSummary(),
	}
	r.shapes = newShapes(ctx, nil)
	if cfg.Store != nil {
		r.store = &storeReader{Store: cfg.Store}
		r.shapes.store = r.store
	}
	r.shapes.own, r.contexts = cfg.Own, newContexts(r.store)
	return r
}

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

// keeps reports whether the bytes of a connection that is no stream yet may be needed.
func (r *Reader) keeps(c *capturedConn) bool {
	return r.cfg.Octets != nil && !r.surveying && (!r.twice || r.streams[c.flow.ID])
}

// run reads inputs with a function, twice if they can be.
func (r *Reader) run(inputs []Input, read func() error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r.yield = yield
		err := r.both(inputs, read)
		if err != nil && !errors.Is(err, errStopped) {
			yield(Event{}, err)
		}
	}
}

func (r *Reader) both(inputs []Input, read func() error) error {
	var seekers []io.Seeker
	var from []int64
	for _, in := range inputs {
		s, ok := in.Octets.(io.Seeker)
		if !ok {
			return r.pass(read)
		}
		at, err := s.Seek(0, io.SeekCurrent)
		if err != nil {
			return r.pass(read)
		}
		seekers, from = append(seekers, s), append(from, at)
	}
	back := func() error {
		for i, s := range seekers {
			if _, err := s.Seek(from[i], io.SeekStart); err != nil {
				return err
			}
		}
		return nil
	}
	if r.cfg.Octets == nil && !r.files {
		if all, err := r.whole(seekers, read, back); all || err != nil {
			return err
		}
	}
	for n := 1; ; n++ {
		shapes := r.shapes.count()
		r.surveying, r.blind = true, false
		clear(r.survey)
		if err := r.pass(read); err != nil {
			return err
		}
		if err := back(); err != nil {
			return err
		}
		if n == maxSurveys || !r.blind || shapes == r.shapes.count() {
			break
		}
	}
	r.surveying, r.twice = false, true
	return r.pass(read)
}

// whole gives the messages of long inputs while it reads them, until something needs to be surveyed
// before. all reports that nothing did. What the beginnings show, as how long addresses are, is
// known before the first message.
func (r *Reader) whole(inputs []io.Seeker, read, back func() error) (all bool, err error) {
	short := true
	for _, in := range inputs {
		end, err := in.Seek(0, io.SeekEnd)
		if err != nil {
			return false, err
		}
		short = short && end <= lengthOfBeginning
	}
	if err = back(); short || err != nil {
		return false, err
	}
	r.surveying, r.beginning = true, true
	err = errors.Join(r.pass(read), back())
	r.surveying, r.beginning, r.past, r.packets = false, false, false, r.summary.Stats.Packets
	if r.needed || err != nil {
		return false, err
	}
	r.twice, r.once = true, true
	err = r.pass(read)
	r.once = false
	if !r.needed {
		return true, err
	}
	if r.twice = false; err != nil && !errors.Is(err, errStopped) {
		return false, err
	}
	r.before = r.told
	return false, back()
}

// pass reads the inputs once.
func (r *Reader) pass(read func() error) error {
	r.told = 0
	r.summary, r.numbers, r.open = newSummary(), numbers{}, openMessages{}
	r.bodies = new(spool.Spool)
	if r.cfg.Starts || r.surveying {
		r.bodies.Short = r.wanted
	}
	err := errors.Join(read(), r.bodies.Close())
	r.serve()
	r.summary.StoreFailure = r.store.failure("")
	return err
}

// wanted is how much is needed of a body of which only the beginning is: to know how long its text
// is, all of one in Fast Infoset.
func (r *Reader) wanted(start []byte) int64 {
	if r.cfg.XML && !r.surveying && fastinfoset.Begins(start) {
		return maxInfoset
	}
	return spool.Kept
}

// Captures decodes captures: the messages of hhfr streams, found by content, and plain SOAP in
// HTTP. Several captures are merged in the order of the times of their packets. A capture that is
// cut off or lacks packets is no error; [Summary.Partial] reports it. Errors are [flow.Error],
// those of the store's context, and those of [DecodeConfig.Octets].
func (r *Reader) Captures(ctx context.Context, inputs ...Input) iter.Seq2[Event, error] {
	return r.run(inputs, func() error { return r.captures(ctx, inputs) })
}

func (r *Reader) captures(ctx context.Context, inputs []Input) (err error) {
	files := make([]*flow.File, len(inputs))
	for i, in := range inputs {
		octets := in.Octets
		if r.beginning {
			octets = &beginningOf{io.LimitedReader{R: octets, N: lengthOfBeginning}, &r.past}
		}
		if files[i], err = flow.Open(octets); err != nil {
			if in.Name != "" {
				err = fmt.Errorf("%s: %w", in.Name, err)
			}
			return err
		}
	}
	grams := newDatagrams(r, r.cfg.Limits)
	r.summary.Stats, err = flow.Read(
		flow.Config{Limits: r.cfg.Limits, Keys: r.cfg.Keys, Secured: r.need, Ports: r.cfg.Ports, Datagram: grams.take,
			Flow: func(f *flow.Flow) flow.Receiver {
				c := r.conn(f)
				c.http = newHTTPReader(c)
				return c
			}},
		files...)
	if err != nil {
		return err
	}
	if err := grams.close(&r.summary.Stats, r.summary.Others); err != nil {
		return err
	}
	return ctx.Err()
}

// Decode reads a whole capture, as [Reader.Captures] does, and keeps all messages.
func Decode(ctx context.Context, in io.Reader, cfg DecodeConfig) (*Result, error) {
	r := NewReader(ctx, cfg)
	return r.collected(r.Captures(ctx, Input{Octets: in}))
}

// collected keeps all messages.
func (r *Reader) collected(events iter.Seq2[Event, error]) (*Result, error) {
	r.collect = true
	var all []*Decoded
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		m := ev.Message
		if m == nil {
			continue
		}
		all = append(all, m)
		if int64(len(m.Body)) < m.BodyOctets && !r.cfg.Starts {
			var b bytes.Buffer
			b.Grow(int(m.BodyOctets))
			if err := m.WriteBody(&b); err != nil {
				return nil, err
			}
			m.Body = b.Bytes()
		}
	}
	slices.SortStableFunc(all, func(a, b *Decoded) int { return a.First.Compare(b.First) })
	return &Result{Summary: *r.summary, Messages: all}, nil
}
