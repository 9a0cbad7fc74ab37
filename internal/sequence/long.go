package sequence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// arrivals are the long messages of the peer that are not done, by their numbers.
type arrivals struct {
	in pieces.Bodies
	mu sync.Mutex
	by map[uint64]*arrival
}

// arrival is a long message that came in part, or as a whole. Each stream goes on with it where the
// one before ended.
type arrival struct {
	mu   sync.Mutex
	size int64             // in the store, from the beginning on
	on   *streamer.Message // that it comes by; what comes by an earlier one does not count
}

// openPieces finds what an earlier process has of long messages, and drops what nobody needs.
func (q *Sequence) openPieces(ctx context.Context) error {
	of := q.cfg.Long
	if of == "" {
		of = q.cfg.URI
	}
	q.sent = pieces.Of(q.cfg.Store, of, "sent", 0)
	q.parts.in = pieces.Of(q.cfg.Store, q.cfg.URI, "arrived", q.cfg.Life)
	q.parts.by = map[uint64]*arrival{}
	if q.cfg.Collect {
		if err := q.collect(ctx); err != nil {
			return err
		}
	}
	if !q.takesLong() {
		return nil
	}
	all, err := q.parts.in.List(ctx, "")
	if err != nil {
		return err
	}
	for name, list := range all {
		number, err := numberOf(name)
		if err != nil {
			continue // none of ours
		}
		if q.engine.RemoteEnded() || q.engine.IsDone(number) {
			if err := q.parts.in.Drop(ctx, name); err != nil {
				return err
			}
			continue
		}
		q.parts.by[number] = &arrival{size: pieces.Length(list)}
	}
	return nil
}

// takesLong reports whether this end takes long messages: one that keeps what it has.
func (q *Sequence) takesLong() bool { return q.cfg.Assurance > wsrm.AtMostOnce }

// kept says what is here of long messages.
func (a *arrivals) kept() (list []streamer.KeptPart) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for number, m := range a.by {
		m.mu.Lock()
		if m.size > 0 {
			list = append(list, streamer.KeptPart{Number: number, Octets: uint64(m.size)})
		}
		m.mu.Unlock()
	}
	return list[:min(len(list), streamer.MaxKept)]
}

// arrivedLong takes a long message, or what is left of one.
func (q *Sequence) arrivedLong(ctx context.Context, m *streamer.Message) error {
	place := m.Place
	done := q.Status().Received
	if place.Number <= done {
		return nil // it came twice
	}
	if !q.takesLong() || place.Length > MaxLong || place.Number > done+window {
		q.do(func() { q.abort(streamer.CloseLimits, "a message that is too long for the sequence") })
		return tooLarge(int64(place.Length), MaxLong)
	}
	if err := q.admit(ctx, longWeight); err != nil {
		return err
	}
	defer q.free(longWeight)
	a := q.parts.of(place.Number, m)
	if err := q.keep(a, m); err != nil {
		if errors.Is(err, errSuperseded) {
			return nil
		}
		return err
	}
	m.Place.Length, m.Place.From = 0, 0
	body := &LongBody{in: q.parts.in, name: nameOf(place.Number), length: int64(place.Length)}
	payload := encode(Stored{Head: m.Head, Long: body}, m.Place)
	weight := len(payload) + perMessage
	if err := q.admit(ctx, weight); err != nil {
		return err
	}
	arrived := func() {
		q.arrived(place.Number, payload, weight)
		if q.engine.IsDone(place.Number) { // it came twice, and nobody drops it otherwise
			q.dropArrived(place.Number)
		}
	}
	if !q.do(arrived) {
		q.free(weight)
		return q.Err()
	}
	return nil
}

// of begins with a message, or goes on with it.
func (a *arrivals) of(number uint64, m *streamer.Message) *arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.by[number]
	if one == nil {
		one = &arrival{}
		a.by[number] = one
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.on = m
	return one
}

var errSuperseded = errors.New("the message comes by another stream")

// keep stores the body of a message as it comes.
func (q *Sequence) keep(a *arrival, m *streamer.Message) error {
	a.mu.Lock()
	skip := a.size - int64(m.Place.From)
	a.mu.Unlock()
	if skip < 0 {
		q.do(func() { q.abort(streamer.CloseProtocol, "a long message goes on behind what is here of it") })
		return fmt.Errorf("%d bytes are missing", -skip)
	}
	body := m.Body
	if body == nil {
		body = io.MultiReader()
	}
	if _, err := io.CopyN(io.Discard, body, skip); err != nil {
		return err
	}
	buffer := make([]byte, q.cfg.Piece)
	for {
		n, err := io.ReadFull(body, buffer)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		size, failed := q.store(a, m, buffer[:n])
		switch {
		case failed != nil:
			return failed
		case err != nil && !ended:
			return err // what came until then is kept
		case uint64(size) > m.Place.Length, ended && uint64(size) != m.Place.Length:
			q.do(func() { q.abort(streamer.CloseProtocol, "a long message of another length than was said") })
			return fmt.Errorf("%d bytes of %d", size, m.Place.Length)
		case ended:
			return nil
		}
	}
}

// store adds a piece to what is kept of a message.
func (q *Sequence) store(a *arrival, m *streamer.Message, piece []byte) (size int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.on != m:
		return a.size, errSuperseded
	case len(piece) > 0 && a.size+int64(len(piece)) <= int64(m.Place.Length):
		err := q.parts.in.Put(context.WithoutCancel(q.ctx), nameOf(m.Place.Number), a.size, piece)
		if err != nil {
			q.cfg.Log.Error("piece of a long message not stored", "uri", q.cfg.URI, "number", m.Place.Number,
				"length", m.Place.Length, "err", err)
			code, why := streamer.CloseInternal, storeFailed
			if errors.Is(err, ctxstore.Full) {
				code, why = streamer.CloseLimits, noSpace(m.Place.Length)
				q.yield(a, m.Place.Number)
			}
			q.do(func() { q.abort(code, why) })
			return a.size, err
		}
	}
	a.size += int64(len(piece))
	return a.size, nil
}

// noSpace tells the peer that its message does not fit into the store, and what to do.
func noSpace(length uint64) string {
	return fmt.Sprintf("the context store here has no space for a message of %d bytes: give it more (--store-size)",
		length)
}

// yield gives back the space of a message that the store has no room for as a whole: others need
// it, and the message comes again. a is locked.
func (q *Sequence) yield(a *arrival, number uint64) {
	a.size = 0
	if err := q.parts.in.Drop(context.WithoutCancel(q.ctx), nameOf(number)); err != nil {
		q.cfg.Log.Warn("body of a long message not dropped", "uri", q.cfg.URI, "number", number, "err", err)
	}
}

// delivered reads a message that was delivered.
func (q *Sequence) delivered(d deliveredMessage) (Stored, streamer.Place, error) {
	m, p, err := decode(d.payload)
	if m.Long != nil {
		m.Long.in = q.parts.in
	}
	return m, p, err
}

// handOver has the body of a reply dropped when it is read: the reply is done, and stored as such.
func (q *Sequence) handOver(number uint64, m Stored) {
	if m.Long == nil {
		return
	}
	m.Long.read = sync.OnceFunc(func() {
		if err := m.Long.in.Drop(context.WithoutCancel(q.ctx), m.Long.name); err != nil {
			q.cfg.Log.Debug("body of a reply not dropped", "uri", q.cfg.URI, "number", number, "err", err)
		}
	})
}

func (a *arrivals) forget(number uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.by, number)
}

// dropArrived drops what is kept of a message that is done, once that is stored.
func (q *Sequence) dropArrived(number uint64) {
	q.parts.mu.Lock()
	_, here := q.parts.by[number]
	q.parts.mu.Unlock()
	if !here {
		return
	}
	q.loop.after = append(q.loop.after, func() {
		q.parts.forget(number)
		q.drop(q.parts.in, nameOf(number))
	})
}

// dropSent drops the body of a message that is over: of one that was accepted, once that is stored.
func (q *Sequence) dropSent(s *Sending, accepted bool) {
	if !isLong(s.payload) {
		return
	}
	m, _, _ := decode(s.payload) // what was encoded here
	drop := func() { q.drop(q.sent, m.Long.name) }
	if accepted {
		q.loop.after = append(q.loop.after, drop)
		return
	}
	drop()
}

// drop removes a body, beside the driver. What is left if that fails, or the process dies, the next
// one finds.
func (q *Sequence) drop(from pieces.Bodies, name string) {
	q.wait.Go(func() {
		if err := from.Drop(context.WithoutCancel(q.ctx), name); err != nil {
			q.cfg.Log.Warn("body of a long message not dropped", "uri", q.cfg.URI, "err", err)
		}
	})
}

// Prepare makes of a head and a body what [Sequence.Send] takes. A body that is too long for the
// state of the sequence is stored meanwhile; what is not sent then is to be discarded. Errors: that
// of the body, TooLarge, and Unsent if the store takes no more.
func (q *Sequence) Prepare(ctx context.Context, head []byte, body io.Reader) (Stored, error) {
	return q.prepare(ctx, q.sent, head, body)
}

// Measure is Prepare without storing anything: what it gives tells messages apart, and cannot be
// sent if it is long.
func (q *Sequence) Measure(ctx context.Context, head []byte, body io.Reader) (Stored, error) {
	return q.prepare(ctx, pieces.Bodies{}, head, body)
}

func (q *Sequence) prepare(ctx context.Context, in pieces.Bodies, head []byte, body io.Reader) (Stored, error) {
	if body == nil {
		return Stored{Head: head}, nil
	}
	room := q.cfg.Short - min(len(head), q.cfg.Short)
	begin, err := io.ReadAll(io.LimitReader(body, int64(room)+1))
	if err != nil || len(begin) <= room {
		return Stored{Head: head, Body: begin}, err
	}
	if q.cfg.Assurance == wsrm.AtMostOnce {
		return Stored{}, &Error{Code: TooLarge, Err: fmt.Errorf("%d bytes or more, %d go in order alone; under "+
			"at-least-once or exactly-once %d", len(head)+len(begin), MaxMessage, MaxLong)}
	}
	w := newPieceWriter(in, q.cfg.Piece)
	m := Stored{Head: head, Long: w.to}
	if err := w.from(ctx, io.MultiReader(bytes.NewReader(begin), body), MaxLong-int64(len(head))); err != nil {
		q.Discard(m)
		return Stored{}, err
	}
	return m, nil
}

// prepareReply makes of what a handler returns what the engine sends. It reads that to its end:
// until then the handler may not be done.
func (q *Sequence) prepareReply(ctx context.Context, m Stored, wanted bool) (reply Stored, err error) {
	switch {
	case m.Rest == nil && (!wanted || len(m.Head)+len(m.Body) <= q.cfg.Short):
		return m, nil
	case m.Rest == nil:
		m.Rest = io.MultiReader()
	}
	if wanted {
		reply, err = q.prepare(ctx, q.sent, m.Head, io.MultiReader(bytes.NewReader(m.Body), m.Rest))
	}
	if _, broken := io.Copy(io.Discard, m.Rest); err == nil {
		err = broken
	}
	if c, ok := m.Rest.(io.Closer); ok {
		_ = c.Close()
	}
	if err == nil && q.refusesLong(reply) || errors.Is(err, &Error{Code: TooLarge}) {
		q.Discard(reply)
		return q.cfg.Broken, nil
	}
	return reply, err
}

// sentReply notes where the body of a reply lies that the engine has taken, or drops it.
func (q *Sequence) sentReply(m Stored, refused error) {
	switch {
	case m.Long == nil:
	case refused != nil:
		q.drop(q.sent, m.Long.name)
	default:
		q.loop.bodies[q.engine.Last()] = m.Long.name
	}
}

// dropReplies drops the bodies of replies that the peer has, up to a number, once that is stored.
func (q *Sequence) dropReplies(to uint64) {
	for number, name := range q.loop.bodies {
		if number <= to {
			delete(q.loop.bodies, number)
			q.loop.after = append(q.loop.after, func() { q.drop(q.sent, name) })
		}
	}
}

// Discard drops what was prepared and is not sent.
func (q *Sequence) Discard(m Stored) {
	if m.Long == nil || m.Long.in.IsZero() {
		return
	}
	if err := m.Long.in.Drop(context.Background(), m.Long.name); err != nil {
		q.cfg.Log.Warn("body of a message that was not sent not dropped", "uri", q.cfg.URI, "err", err)
	}
}

// collect drops bodies that processes which died have prepared and not sent. If one of them lives
// after all, it is told that its state is not stored.
func (q *Sequence) collect(ctx context.Context) error {
	all, err := q.sent.List(ctx, "")
	if err != nil {
		return err
	}
	q.engine.Undone(func(_ uint64, payload []byte, _ bool) bool {
		if m, _, err := decode(payload); err == nil && m.Long != nil {
			delete(all, m.Long.name)
		}
		return true
	})
	if len(all) == 0 {
		return nil
	}
	if err := q.engine.Fence(ctx); err != nil {
		return err
	}
	for name := range all {
		if err := q.sent.Drop(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
