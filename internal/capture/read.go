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
	"github.com/hhfr/hhfr/internal/spool"
	"github.com/hhfr/hhfr/internal/tlsrecord"
)

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

// serve gives streams without a known service that of another stream of their session.
func (r *Reader) serve() {
	for _, s := range r.summary.Streams {
		if seen := r.contexts.agreed[s.Session]; seen != nil && s.Service.Path == "" {
			s.Service = seen.service
		}
	}
}
