// Package capture finds sessions and messages in captures, recordings and raw stream bytes, and
// gives them back as they were sent, while it reads: [Reader]. Its packet layer is package flow.
package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/hhfr/hhfr/internal/spool"
	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// DecodeConfig is what a [Reader] needs beside its input. The zero value works.
type DecodeConfig struct {
	// Store has shapes that the input lacks, and the contexts of sessions: which are known, and
	// what unchanging headers they have; nil: none.
	Store ctxstore.Store
	// MaxMessage is the longest joined message, in bytes; 0 means 1 GiB.
	MaxMessage int64
	// Limits are those of reassembly.
	Limits flow.Limits
	// Starts: of bodies no more than the first MiB is of use.
	Starts bool
	// Bytes, if given, is told what the directions of hhfr streams are made of, in order, with the
	// number of the stream, from 1, and 0 for the direction of who opened it. Bytes that are
	// missing leave a gap between two offsets.
	Octets func(stream, direction int, offset int64, b []byte) error
}

// Input is a capture, or, for [Reader.Streams], the bytes of one contiguous run of one direction
// of a stream, as [RunName] names it or with any name. One that is an [io.Seeker] can be read
// twice.
type Input struct {
	Name   string
	Octets io.Reader
}

// Event is something that a [Reader] gives: a message or a check.
type Event struct {
	Message *Decoded
	Check   *Check
}

// Check is what a check of a stream says of messages that were given as [Unverified] before: those
// of one direction from index From on, up to To.
type Check struct {
	State             State // Verified or Withdrawn
	Session           [16]byte
	Stream, Direction int
	From, To          uint64
	// Messages are those, with their new states, without their bodies.
	Messages []*Decoded
}

// Reader decodes captures, or bytes of streams, as they come. What it keeps does not grow with
// them. An input that can be read twice is: its messages have their final state when they are
// given, and find shapes that come later. Of any other input a message is given when it is whole,
// and a [Check] when one says more of it. A reader is for one input.
type Reader struct {
	cfg      DecodeConfig
	shapes   *shapes
	contexts contexts
	bodies   *spool.Spool
	numbers  numbers
	summary  *Summary
	joiners  []*shape.Joiner
	scratch  []byte

	compression wire.Compression

	surveying bool // messages are not given: the input is read for what is to be known before
	twice     bool // it was
	blind     bool // there was a check that could not be told
	survey    map[wayKey]*found
	raw       map[string]*found // of files
	streams   map[int]bool      // connections that are streams, as was found before

	widest int // see Widest
	looks  int // bytes that may be frames, see frames

	collect bool // bodies stay with their messages
	yield   func(Event, error) bool
	stopped bool
	err     error
}

// wayKey names a direction of a connection.
type wayKey struct{ flow, dir int }

// NewReader makes a reader.
func NewReader(ctx context.Context, cfg DecodeConfig) *Reader {
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = defaultMaxMessage
	}
	return &Reader{
		cfg:      cfg,
		shapes:   newShapes(ctx, cfg.Store),
		contexts: newContexts(cfg.Store),
		survey:   map[wayKey]*found{},
		streams:  map[int]bool{},
		summary:  newSummary(),
	}
}

// Summary is what was found so far.
func (r *Reader) Summary() *Summary { return r.summary }

// Twice reports whether the input is read again: messages have their final states.
func (r *Reader) Twice() bool { return r.twice }

// Widest is how long the addresses of those who send messages are, as text, as far as they are
// known.
func (r *Reader) Widest() int { return r.widest }

// met notes addresses of those who send messages.
func (r *Reader) met(f *flow.Flow) {
	if f.Src.IsValid() {
		r.widest = max(r.widest, len(f.Src.String()), len(f.Dst.String()))
	}
}

var errStopped = errors.New("nobody takes more")

// failed is why nothing more is to be read.
func (r *Reader) failed() error {
	if r.stopped {
		return errStopped
	}
	return r.err
}

// tell gives an event to who reads.
func (r *Reader) tell(ev Event) {
	if r.surveying || r.stopped {
		return
	}
	r.stopped = !r.yield(ev, nil)
}

// give gives a message out.
func (r *Reader) give(d *Decoded) {
	r.summary.count(d)
	r.tell(Event{Message: d})
	d.content.Free()
	if !r.collect {
		d.content, d.Body = nil, nil
	}
}

// found is what a first pass finds out of a direction.
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

// rawFound is the same of a direction in a file.
func (r *Reader) rawFound(name string) *found {
	if r.raw == nil {
		r.raw = map[string]*found{}
	}
	if r.raw[name] == nil || !r.twice {
		r.raw[name] = new(found)
	}
	return r.raw[name]
}

// keeps reports whether the bytes of a connection may be wanted that is no stream yet.
func (r *Reader) keeps(c *conn) bool {
	return r.cfg.Octets != nil && !r.surveying && (!r.twice || r.streams[c.flow.ID])
}

// run reads inputs by way of a function, twice if they can be.
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
	for n := 1; ; n++ {
		shapes := r.shapes.count()
		r.surveying, r.blind = true, false
		clear(r.survey)
		if err := r.pass(read); err != nil {
			return err
		}
		for i, s := range seekers {
			if _, err := s.Seek(from[i], io.SeekStart); err != nil {
				return err
			}
		}
		if n == maxSurveys || !r.blind || shapes == r.shapes.count() {
			break
		}
	}
	r.surveying, r.twice = false, true
	return r.pass(read)
}

// pass reads the inputs once.
func (r *Reader) pass(read func() error) error {
	r.summary, r.numbers = newSummary(), numbers{}
	r.bodies = &spool.Spool{Short: r.cfg.Starts || r.surveying}
	err := errors.Join(read(), r.bodies.Close())
	r.serve()
	return err
}

// Captures decodes captures: the messages of hhfr streams, found by content, and plain SOAP in
// HTTP. Several are put together in the order of the times of their packets. A capture that is cut
// off or lacks packets is no error; [Summary.Partial] tells. Errors are [flow.Error], those of the
// store's context, and those of [DecodeConfig.Octets].
func (r *Reader) Captures(ctx context.Context, inputs ...Input) iter.Seq2[Event, error] {
	return r.run(inputs, func() error { return r.captures(ctx, inputs) })
}

func (r *Reader) captures(ctx context.Context, inputs []Input) (err error) {
	files := make([]*flow.File, len(inputs))
	for i, in := range inputs {
		if files[i], err = flow.Open(in.Octets); err != nil {
			if in.Name != "" {
				err = fmt.Errorf("%s: %w", in.Name, err)
			}
			return err
		}
	}
	grams := newDatagrams(r, r.cfg.Limits)
	r.summary.Stats, err = flow.Read(
		flow.Config{Limits: r.cfg.Limits, Datagram: grams.take, Flow: func(f *flow.Flow) flow.Receiver {
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
