package wsrm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

var _ wsrm.Store = ctxstore.Store(nil)

var errPower = errors.New("power cut")

// disk is a store whose power fails at one commit: before it is written, or after.
type disk struct {
	values    map[string][]byte
	revisions map[string]uint64
	commits   int
	failAt    int
	written   bool
}

func newDisk() *disk {
	return &disk{values: map[string][]byte{}, revisions: map[string]uint64{}, failAt: -1}
}

func (d *disk) Commit(_ context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	fails := d.commits == d.failAt
	d.commits++
	if fails && !d.written {
		return 0, errPower
	}
	if d.revisions[uri] != expect {
		return 0, fmt.Errorf("revision %d, not %d", d.revisions[uri], expect)
	}
	d.revisions[uri]++
	d.values[uri] = append([]byte(nil), value...)
	if fails {
		return 0, errPower
	}
	return d.revisions[uri], nil
}

// ledger counts messages in its transaction, and replies with the count.
type ledger struct{}

func (ledger) Deliver(_ context.Context, tx *wsrm.Tx, message []byte) ([]byte, error) {
	tx.Set(append(append([]byte(nil), tx.Value()...), message...))
	return binary.AppendUvarint(nil, uint64(len(tx.Value())/8)), nil
}

// office is a client and a ledger on a perfect line, which only a crash of either cuts.
type office struct {
	t       *testing.T
	disk    *disk
	now     time.Time
	ends    [2]*wsrm.Engine
	crashes int
	wire    [2][]wsrm.Event // on their way to that end
	cut     bool            // the line, by a crash
	sent    uint64
	replies []uint64
}

func (o *office) config() wsrm.Config {
	return wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: true, Window: 64}
}

func uri(end int) string { return fmt.Sprintf("urn:test:sequence:%d", end) }

// restart is a new life of an end, from what the disk has.
func (o *office) restart(end int) {
	var err error
	if value, ok := o.disk.values[uri(end)]; ok {
		o.ends[end], err = wsrm.Restore(o.config(), o.disk, uri(end), value, o.disk.revisions[uri(end)])
	} else {
		o.ends[end], err = wsrm.New(o.config(), o.disk, uri(end))
	}
	require.NoError(o.t, err)
	o.cut = true
	if end == 0 {
		o.sent = o.ends[0].Last()
		// The client's effect is the list of replies it has seen.
		o.replies = o.replies[:len(o.ends[0].Effect())]
	}
}

// survived reports whether an end is still alive; if not it has a new life.
func (o *office) survived(end int, err error) bool {
	if err == nil {
		return true
	}
	require.ErrorIs(o.t, err, &wsrm.Error{Code: wsrm.Unstored})
	require.ErrorIs(o.t, err, errPower)
	_, again := o.ends[end].Step(o.t.Context(), o.now, wsrm.Event{Kind: wsrm.Wake})
	require.ErrorIs(o.t, again, &wsrm.Error{Code: wsrm.Unstored}, "an engine ahead of its store does nothing more")
	o.crashes++
	o.restart(end)
	return false
}

// collect is the client's handler.
type collect struct{ o *office }

func (c collect) Deliver(_ context.Context, tx *wsrm.Tx, message []byte) ([]byte, error) {
	n, _ := binary.Uvarint(message)
	c.o.replies = append(c.o.replies, n)
	tx.Set(append(append([]byte(nil), tx.Value()...), 1))
	return nil, nil
}

func (o *office) do(end int, actions []wsrm.Action) bool {
	handlers := [2]wsrm.Handler{collect{o}, ledger{}}
	var deliveries []wsrm.Action
	for _, a := range actions {
		switch a.Kind {
		case wsrm.Transmit:
			arrived := wsrm.Event{Kind: wsrm.Arrived, Number: a.Number, Message: bytes.Clone(a.Message)}
			o.wire[1-end] = append(o.wire[1-end], arrived)
		case wsrm.Say:
			o.wire[1-end] = append(o.wire[1-end], wsrm.Event{Kind: wsrm.Heard, Message: a.Message})
		case wsrm.Deliver:
			a.Message = append([]byte(nil), a.Message...)
			deliveries = append(deliveries, a)
		default:
		}
	}
	for _, a := range deliveries {
		more, err := o.ends[end].Deliver(o.t.Context(), o.now, a, handlers[end])
		if !o.survived(end, err) || !o.do(end, more) {
			return false
		}
	}
	return true
}

// connect gives both ends a new line, if there is none.
func (o *office) connect() {
	if !o.cut {
		return
	}
	o.cut = false
	o.wire = [2][]wsrm.Event{}
	for end := range o.ends {
		for _, kind := range []wsrm.EventKind{wsrm.Disconnected, wsrm.Connected} {
			_, err := o.ends[end].Step(o.t.Context(), o.now, wsrm.Event{Kind: kind})
			require.NoError(o.t, err)
		}
	}
}

func (o *office) run(messages uint64) {
	for range 20_000 {
		if len(o.replies) == int(messages) {
			return
		}
		o.now = o.now.Add(20 * time.Millisecond)
		o.connect()
		for end := range o.ends {
			if end == 0 && o.sent < messages {
				o.sent++
				_, err := o.ends[0].Step(o.t.Context(), o.now,
					wsrm.Event{Kind: wsrm.Send, Message: binary.BigEndian.AppendUint64(nil, o.sent)})
				require.NoError(o.t, err)
			}
			arrived := o.wire[end]
			o.wire[end] = nil
			for _, ev := range arrived {
				actions, err := o.ends[end].Step(o.t.Context(), o.now, ev)
				require.NoError(o.t, err)
				if !o.do(end, actions) {
					break
				}
			}
			actions, err := o.ends[end].Step(o.t.Context(), o.now, wsrm.Event{Kind: wsrm.Wake})
			if o.survived(end, err) {
				o.do(end, actions)
			}
		}
	}
	o.t.Fatal("it does not end")
}

// The power fails at each commit in turn, before or after it is written: number, reply and effect
// of each message are one.
func TestDeliveryIsOneCommit(t *testing.T) {
	const messages = 12
	count := 0
	for failAt := 0; count == 2*failAt; failAt++ {
		for _, written := range []bool{false, true} {
			o := &office{t: t, now: start, disk: newDisk()}
			o.disk.failAt, o.disk.written = failAt, written
			o.restart(0)
			o.restart(1)
			o.run(messages)
			count += o.crashes
			effect := o.ends[1].Effect()
			require.Len(t, effect, messages*8)
			for i := range uint64(messages) {
				assert.Equal(t, i+1, binary.BigEndian.Uint64(effect[i*8:]),
					"commit %d fails: effects are once each and in order", failAt)
				assert.Equal(t, i+1, o.replies[i], "so are replies")
			}
		}
	}
	assert.Greater(t, count, 40, "the last runs were those with fewer commits")
}

// A handler that refuses leaves nothing behind, and is asked again.
func TestDeliveryRefused(t *testing.T) {
	refuse := errors.New("not now")
	d, err := wsrm.New(wsrm.Config{Assurance: wsrm.ExactlyOnce}, newDisk(), uri(0))
	require.NoError(t, err)
	actions, err := d.Step(t.Context(), start, arrived(1, "x"))
	require.NoError(t, err)
	a := find(t, actions, wsrm.Deliver)
	_, err = d.Deliver(t.Context(), start, a, handlerFunc(func(tx *wsrm.Tx) ([]byte, error) {
		tx.Set([]byte("half"))
		return []byte("reply"), refuse
	}))
	require.ErrorIs(t, err, refuse)
	assert.Empty(t, d.Effect())
	assert.Zero(t, d.Last(), "no reply is sent")
	_, err = d.Deliver(t.Context(), start, a, handlerFunc(func(tx *wsrm.Tx) ([]byte, error) {
		tx.Set([]byte("whole"))
		return make([]byte, 2<<20), nil
	}))
	require.ErrorIs(t, err, &window.Error{Code: window.TooLarge},
		"a reply that cannot be sent takes the effect with it")
	assert.Empty(t, d.Effect())
	_, err = d.Deliver(t.Context(), start, a, handlerFunc(func(tx *wsrm.Tx) ([]byte, error) {
		tx.Set([]byte("whole"))
		return nil, nil
	}))
	require.NoError(t, err)
	assert.Equal(t, "whole", string(d.Effect()))
	_, err = wsrm.Restore(wsrm.Config{Assurance: wsrm.ExactlyOnce}, newDisk(), uri(0), []byte{5, 1}, 1)
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadState})
}

type handlerFunc func(tx *wsrm.Tx) ([]byte, error)

func (f handlerFunc) Deliver(_ context.Context, tx *wsrm.Tx, _ []byte) ([]byte, error) { return f(tx) }

// A handler without a transaction that a crash interrupts: its message is reported, and not
// repeated.
func TestBegunAndNotCommittedIsUnknown(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: ordered}
		store := newDisk()
		e, err := wsrm.New(cfg, store, uri(0))
		require.NoError(t, err)
		for number := uint64(1); number <= 2; number++ {
			actions, err := e.Step(t.Context(), start, arrived(number, "m"))
			require.NoError(t, err)
			assert.Equal(t, number, find(t, actions, wsrm.Deliver).Number)
		}
		_, err = e.Begin(t.Context(), start, 1)
		require.NoError(t, err)
		_, err = e.Begin(t.Context(), start, 1)
		assert.ErrorIs(t, err, &window.Error{Code: window.Misuse})

		e, err = wsrm.Restore(cfg, store, uri(0), store.values[uri(0)], store.revisions[uri(0)])
		require.NoError(t, err)
		actions, err := e.Step(t.Context(), start, arrived(1, "m"))
		require.NoError(t, err)
		unknown := find(t, actions, wsrm.Unknown)
		assert.True(t, unknown.Remote)
		assert.Equal(t, [2]uint64{1, 1}, [2]uint64{unknown.Number, unknown.Count})
		assert.Empty(t, kinds(actions, wsrm.Deliver), "what was begun is not delivered again")
		actions, err = e.Step(t.Context(), start, arrived(2, "m"))
		require.NoError(t, err)
		assert.EqualValues(t, 2, find(t, actions, wsrm.Deliver).Number, "the other is")
		_, err = e.Step(t.Context(), start, wsrm.Event{Kind: wsrm.Committed, Number: 1})
		assert.ErrorIs(t, err, &window.Error{Code: window.Misuse})
	}
}

// In order, what was begun before a crash keeps nothing after it waiting.
func TestOrderPassesOverWhatIsUnknown(t *testing.T) {
	cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: true}
	m := machine(t, cfg)
	step(t, m, start, arrived(1, "a"))
	step(t, m, start, arrived(2, "b"))
	_, err := m.Begin(start, 2)
	require.NoError(t, err)
	m, err = wsrm.RestoreMachine(cfg, m.AppendState(nil))
	require.NoError(t, err)
	var delivered []uint64
	for number := uint64(1); number <= 3; number++ {
		for _, a := range kinds(step(t, m, start, arrived(number, "m")), wsrm.Deliver) {
			delivered = append(delivered, a.Number)
		}
	}
	assert.Equal(t, []uint64{1, 3}, delivered)
}

// Nothing of a message is seen outside before it is stored.
func TestStoredBeforeSent(t *testing.T) {
	for _, fails := range []bool{false, true} {
		store := newDisk()
		if fails {
			store.failAt = 0
		}
		d, err := wsrm.New(wsrm.Config{Assurance: wsrm.AtLeastOnce}, store, uri(0))
		require.NoError(t, err)
		for _, ev := range []wsrm.Event{{Kind: wsrm.Connected}, {Kind: wsrm.Send, Message: []byte("m")}} {
			_, err = d.Step(t.Context(), start, ev)
			require.NoError(t, err)
		}
		actions, err := d.Step(t.Context(), start, wsrm.Event{Kind: wsrm.Wake})
		assert.Equal(t, 1, store.commits)
		if fails {
			assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.Unstored})
			assert.Empty(t, actions)
			continue
		}
		require.NoError(t, err)
		assert.EqualValues(t, 1, find(t, actions, wsrm.Transmit).Number)
		again, err := wsrm.Restore(wsrm.Config{Assurance: wsrm.AtLeastOnce}, store, uri(0), store.values[uri(0)],
			store.revisions[uri(0)])
		require.NoError(t, err)
		assert.EqualValues(t, 1, again.Last())
	}
}

// Several messages begin with one commit, and what a value holds can be looked at without its
// engine.
func TestBeginStoresOnce(t *testing.T) {
	store := newDisk()
	d, err := wsrm.New(wsrm.Config{Assurance: wsrm.ExactlyOnce}, store, uri(0))
	require.NoError(t, err)
	var a wsrm.Action
	for number := uint64(3); number > 0; number-- {
		actions, err := d.Step(t.Context(), start, arrived(number, "m"))
		require.NoError(t, err)
		a = find(t, actions, wsrm.Deliver)
	}
	_, err = d.Deliver(t.Context(), start, a, handlerFunc(func(tx *wsrm.Tx) ([]byte, error) {
		tx.Set([]byte("effect"))
		return nil, nil
	}))
	require.NoError(t, err)
	_, err = d.Begin(t.Context(), start, 2, 3)
	require.NoError(t, err)
	assert.Equal(t, 1, store.commits)
	effect, err := wsrm.EffectOf(store.values[uri(0)])
	require.NoError(t, err)
	assert.Equal(t, "effect", string(effect))
	_, err = d.Begin(t.Context(), start, 1)
	assert.ErrorIs(t, err, &window.Error{Code: window.Misuse}, "it is done")
	_, err = wsrm.EffectOf([]byte{9})
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadState})
}

// What is restored writes the same state again, but for its life; a cut state, or one of another
// configuration, is none.
func TestStateComesBack(t *testing.T) {
	for seed := range uint64(30) {
		p := randomPlan(seed)
		w := newWorld(p)
		for turn := 1; turn < 20; turn++ {
			w.run(time.Duration(turn)*5*time.Second, func() bool { return false })
			for _, e := range w.ends {
				if e.machine != nil {
					checkState(t, p.cfg, e.machine.AppendState(nil))
				}
			}
		}
	}
}

func checkState(t *testing.T, cfg wsrm.Config, state []byte) {
	t.Helper()
	lengths := []int{}
	for again := state; len(lengths) < 3; {
		m, err := wsrm.RestoreMachine(cfg, again)
		require.NoError(t, err)
		again = m.AppendState(nil)
		lengths = append(lengths, len(again))
	}
	assert.InDelta(t, lengths[0], lengths[2], 8)
	for n := range min(len(state), 40) {
		_, err := wsrm.RestoreMachine(cfg, state[:n])
		assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadState}, "%d bytes", n)
	}
	other := cfg
	if other.Assurance = wsrm.ExactlyOnce; cfg.Assurance == wsrm.ExactlyOnce {
		other.Ordered = !cfg.Ordered
	}
	_, err := wsrm.RestoreMachine(other, state)
	assert.ErrorIs(t, err, &wsrm.Error{Code: wsrm.BadState})
}

// States that were stored by earlier versions are read: what is stored stays as it was.
func TestStoredStates(t *testing.T) {
	cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: true}
	m := machine(t, cfg)
	require.NoError(t, send(m, []byte("one")))
	require.NoError(t, send(m, []byte("two")))
	step(t, m, start, arrived(1, "x"))
	step(t, m, start, arrived(2, "y"))
	step(t, m, start, wsrm.Event{Kind: wsrm.Committed, Number: 1})
	_, err := m.Begin(start, 2)
	require.NoError(t, err)
	want := "010301ffffffffffffffff7f000200000000000001020203036f6e65030374776f0200"
	state := m.AppendState(nil)
	assert.Equal(t, want, hex.EncodeToString(state))
	_, err = wsrm.RestoreMachine(cfg, state)
	assert.NoError(t, err)
}
