package wsrm

import (
	"context"
	"time"

	"github.com/hhfr/hhfr/internal/bin"
)

// Store is what a [Durable] needs of a context store: one value under one name, replaced as a whole or not at all. Commit fails if the revision is not expect; 0: there is no value yet. It keeps no part of value.
type Store interface {
	Commit(ctx context.Context, uri string, expect uint64, value []byte) (revision uint64, err error)
}

// DeliveryHandler is an application whose effects are what it puts into a transaction.
type DeliveryHandler interface {
	// Deliver handles a message and gives its reply, nil for none. An error means that nothing happened: the message is not done, and may be delivered again. The slices are only good until Deliver returns, but
	// for the reply, which is the engine's from then on.
	Deliver(ctx context.Context, tx *Tx, message []byte) (reply []byte, err error)
}

// Tx is the transaction of one message.
type Tx struct{ value []byte }

// Value is what the last message left. It must not be changed.
func (tx *Tx) Value() []byte { return tx.value }

// Set is the effect of this message: the next one finds value. The slice is the transaction's from then on.
func (tx *Tx) Set(value []byte) { tx.value = value }

// Durable is an engine whose state is kept in a store, with the effects of the messages delivered to it (design, law 5): number, reply and effect of a message are stored as one value, so that
// after a crash all of them happened or none. Not safe for concurrent use.
//
// A handler with effects outside the store has no transaction: step [Begun], run it, step [Committed] with its reply, again after the next [Acknowledged] if that is Full. If it does not get that far the next life reports its message as [Unknown] and
// never delivers it again.
//
// After an error Unstored the engine is ahead of its store and is of no use; what the store has goes on with [RestoreDurable].
type Durable struct {
	engine   *Engine
	store    Store
	uri      string
	revision uint64
	effect   []byte
	scratch  []byte
	broken   error
}

// NewDurable makes an engine without a past, that will be kept under uri. Errors: BadConfig.
func NewDurable(cfg Config, store Store, uri string) (*Durable, error) {
	e, err := New(cfg)
	if err != nil {
		return nil, err
	}
	return &Durable{engine: e, store: store, uri: uri}, nil
}

// EffectOf is the effect in a stored value: what the last message that was handled left. It aliases value. Errors: BadState.
func EffectOf(value []byte) ([]byte, error) {
	r := bin.NewCursor(value, 0)
	effect := r.Bytes(uint64(len(value)))
	if err := r.Err(); err != nil {
		return nil, &Error{Code: BadState, Err: err}
	}
	return effect, nil
}

// RestoreDurable goes on from the value that the store has under uri, and its revision. Errors: BadConfig, BadState.
func RestoreDurable(cfg Config, store Store, uri string, value []byte, revision uint64) (*Durable, error) {
	r := bin.NewCursor(value, 0)
	effect := r.Bytes(uint64(len(value)))
	if err := r.Err(); err != nil {
		return nil, &Error{Code: BadState, Err: err}
	}
	e, err := Restore(cfg, r.Rest())
	if err != nil {
		return nil, err
	}
	return &Durable{engine: e, store: store, uri: uri, revision: revision, effect: append([]byte(nil), effect...)}, nil
}

// Engine is for looking: Codec, Last, Over, Stats. Its events go through [Durable.Step].
func (d *Durable) Engine() *Engine { return d.engine }

// Effect is what the last message that was handled left; it is stored when [Wake] is stepped next.
func (d *Durable) Effect() []byte { return d.effect }

// SetEffect puts an effect in the place of the one there is, without a message: for an end that
// handles none and has something of its own to keep with its state. It is stored when the state is
// stored next.
func (d *Durable) SetEffect(effect []byte) { d.effect = effect }

// Step is [Engine.Step], with the state stored where it must be. Errors: those of Engine.Step, and Unstored.
func (d *Durable) Step(ctx context.Context, now time.Time, ev Event) ([]Action, error) {
	if ev.Kind == Wake {
		if err := d.save(ctx); err != nil {
			return nil, err
		}
	}
	if d.broken != nil {
		return nil, d.broken
	}
	actions, err := d.engine.Step(now, ev)
	if ev.Kind == Begun || d.engine.cfg.lossy() {
		if err := d.save(ctx); err != nil {
			return nil, err
		}
	}
	return actions, err
}

// Begin steps [Begun] for messages delivered with these numbers, and stores the state once for all of them. Errors: those of Begun, for the first number that has one, and Unstored.
func (d *Durable) Begin(ctx context.Context, now time.Time, numbers ...uint64) ([]Action, error) {
	if d.broken != nil {
		return nil, d.broken
	}
	var all []Action
	for _, n := range numbers {
		actions, err := d.engine.Step(now, Event{Kind: Begun, Number: n})
		if err != nil {
			return all, err
		}
		all = append(all, actions...)
	}
	return all, d.save(ctx)
}

// save stores the state if it changed.
func (d *Durable) save(ctx context.Context) error {
	if d.broken != nil || !d.engine.Changed() {
		return d.broken
	}
	d.scratch = bin.AppendBytes(d.scratch[:0], d.effect)
	d.scratch = d.engine.AppendState(d.scratch)
	revision, err := d.store.Commit(ctx, d.uri, d.revision, d.scratch)
	if err != nil {
		d.broken = &Error{Code: Unstored, Err: err}
		return d.broken
	}
	d.revision = revision
	return nil
}

// Deliver has h handle the message of a [Deliver] action. Its number, its reply and its effect are stored as one value, with those of other messages handled meanwhile, when [Wake] is stepped next; nothing of them is seen outside before.
// Errors: that of h, with nothing changed; those of [Committed], likewise; Unstored.
func (d *Durable) Deliver(ctx context.Context, now time.Time, a Action, h DeliveryHandler) ([]Action, error) {
	if d.broken != nil {
		return nil, d.broken
	}
	tx := &Tx{value: d.effect}
	reply, err := h.Deliver(ctx, tx, a.Message)
	if err != nil {
		return nil, err
	}
	actions, err := d.engine.Step(now, Event{Kind: Committed, Number: a.Number, Message: reply})
	if err != nil {
		return actions, err
	}
	d.effect = tx.value
	return actions, nil
}
