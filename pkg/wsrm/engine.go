package wsrm

import (
	"bytes"
	"context"
	"time"

	"github.com/hhfr/hhfr/internal/bin"
)

// Store is what an [Engine] needs of a context store: one value under one name, replaced as a whole
// or not at all. Commit fails if the revision is not expect; 0: there is no value yet. It keeps no
// part of value.
type Store interface {
	Commit(ctx context.Context, uri string, expect uint64, value []byte) (revision uint64, err error)
}

// Handler is an application whose effects are what it puts into a transaction.
type Handler interface {
	// Deliver handles a message and gives its reply, nil for none. An error means that nothing
	// happened: the message is not done, and may be delivered again. The slices are only good until
	// Deliver returns, but for the reply, which is the engine's from then on.
	Deliver(ctx context.Context, tx *Tx, message []byte) (reply []byte, err error)
}

// Tx is the transaction of one message.
type Tx struct{ value []byte }

// Value is what the last message left. It must not be changed.
func (tx *Tx) Value() []byte { return tx.value }

// Set is the effect of this message: the next one finds value. The slice is the transaction's from
// then on.
func (tx *Tx) Set(value []byte) { tx.value = value }

// Engine is one end of a pair of sequences, with its state in a store. It is not safe for
// concurrent use.
//
// A handler with effects outside the store has no transaction: [Engine.Begin], run it, step
// [Committed] with its reply, again after the next [Acknowledged] if that is Full. If it does not
// get that far the next life reports its message as [Unknown] and never delivers it again.
//
// After an error Unstored the engine is ahead of its store and is of no use; what the store has
// goes on with [Restore].
type Engine struct {
	*machine
	store    Store
	uri      string
	revision uint64
	effect   []byte
	scratch  []byte
	broken   error
}

// New makes an engine without a past, that will be kept under uri. Errors: BadConfig.
func New(cfg Config, store Store, uri string) (*Engine, error) {
	m, err := newMachine(cfg)
	if err != nil {
		return nil, err
	}
	return &Engine{machine: m, store: store, uri: uri}, nil
}

// EffectOf is the effect in a stored value: what the last message that was handled left. It aliases
// value. Errors: BadState.
func EffectOf(value []byte) ([]byte, error) {
	effect, _, err := cut(value)
	return effect, err
}

// cut returns the effect in a stored value, and the state behind it.
func cut(value []byte) (effect, state []byte, err error) {
	r := bin.NewCursor(value, 0)
	effect = r.Bytes(uint64(len(value)))
	if err := r.Err(); err != nil {
		return nil, nil, &Error{Code: BadState, Err: err}
	}
	return effect, r.Rest(), nil
}

// Restore goes on from the value that the store has under uri, and its revision. What was under way
// is sent again, but for at-most-once, where it is reported as [Lost] in the first step; messages
// begun and not committed are reported as [Unknown]. Errors: BadConfig, BadState.
func Restore(cfg Config, store Store, uri string, value []byte, revision uint64) (*Engine, error) {
	effect, state, err := cut(value)
	if err != nil {
		return nil, err
	}
	m, err := restoreMachine(cfg, state)
	if err != nil {
		return nil, err
	}
	return &Engine{machine: m, store: store, uri: uri, revision: revision, effect: bytes.Clone(effect)}, nil
}

// Effect is what the last message that was handled left; it is stored when [Wake] is stepped next.
func (e *Engine) Effect() []byte { return e.effect }

// SetEffect puts an effect in the place of the one there is, without a message: for an end that
// handles none and has something of its own to keep with its state. It is stored when the state is
// stored next.
func (e *Engine) SetEffect(effect []byte) { e.effect = effect }

// Step lets ev happen at the moment now, with the state stored where it must be; moments that go
// backwards count as no time passed. The actions, and all they point to, hold until the next Step.
// An error Full or Refused says that ev changed nothing; the actions of refused events still count.
// Errors: Full, Refused, Unstored.
func (e *Engine) Step(ctx context.Context, now time.Time, ev Event) ([]Action, error) {
	if ev.Kind == Wake {
		if err := e.save(ctx); err != nil {
			return nil, err
		}
	}
	if e.broken != nil {
		return nil, e.broken
	}
	return e.step(now, ev)
}

// Fence stores the state though nothing changed, so that nobody else who has it open can store
// theirs.
func (e *Engine) Fence(ctx context.Context) error {
	e.changed = true
	return e.save(ctx)
}

// Begin notes that the handlers of messages delivered with these numbers are about to run, and have
// effects that no transaction covers, and stores the state once for all of them. After a crash
// those messages are [Unknown] and not delivered again. Errors: Refused, for the first number that
// is none of those, and Unstored.
func (e *Engine) Begin(ctx context.Context, now time.Time, numbers ...uint64) ([]Action, error) {
	if e.broken != nil {
		return nil, e.broken
	}
	var all []Action
	for _, n := range numbers {
		actions, err := e.begin(now, n)
		if err != nil {
			return all, err
		}
		all = append(all, actions...)
	}
	return all, e.save(ctx)
}

// save stores the state if it changed.
func (e *Engine) save(ctx context.Context) error {
	if e.broken != nil || !e.hasChanged() {
		return e.broken
	}
	e.scratch = bin.AppendBytes(e.scratch[:0], e.effect)
	e.scratch = e.appendState(e.scratch)
	revision, err := e.store.Commit(ctx, e.uri, e.revision, e.scratch)
	if err != nil {
		e.broken = &Error{Code: Unstored, Err: err}
		return e.broken
	}
	e.revision = revision
	return nil
}

// Deliver has h handle the message of a [Deliver] action. Its number, its reply and its effect are
// stored as one value, with those of other messages handled meanwhile, when [Wake] is stepped next;
// nothing of them is seen outside before. Errors: that of h, with nothing changed; those of
// [Committed], likewise; Unstored.
func (e *Engine) Deliver(ctx context.Context, now time.Time, a Action, h Handler) ([]Action, error) {
	if e.broken != nil {
		return nil, e.broken
	}
	tx := &Tx{value: e.effect}
	reply, err := h.Deliver(ctx, tx, a.Message)
	if err != nil {
		return nil, err
	}
	actions, err := e.step(now, Event{Kind: Committed, Number: a.Number, Message: reply})
	if err != nil {
		return actions, err
	}
	e.effect = tx.value
	return actions, nil
}
