package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// lasting is a store that tests keep longer than the peers that use it.
type lasting struct{ ctxstore.Store }

func newLasting(t testing.TB) ctxstore.Store { return lasting{newStore(t)} }

// teller serves messages of sequences: those to /book by a transaction that counts, all others with
// effects of its own. It replies with the body and the path.
type teller struct {
	mu      sync.Mutex
	handled []string
	hold    chan struct{} // Handle waits for it; nil: it does not wait
	begun   chan struct{}
}

func (*teller) Transactional(path string) bool { return path == "/book" }

func (l *teller) Transact(
	ctx context.Context, path string, tx *wsrm.Tx, m *streamer.Message,
) (*streamer.Message, error) {
	if responder.FactsOf(ctx) == nil {
		return nil, errors.New("no facts")
	}
	body, err := m.ReadAll(1 << 20)
	if err != nil {
		return nil, err
	}
	tx.Set(append(append(slices.Clone(tx.Value()), body...), ' '))
	return streamer.NewMessage(nil, []byte(path+" "+string(body))), nil
}

func (l *teller) Handle(_ context.Context, path string, m *streamer.Message) *streamer.Message {
	body, _ := m.ReadAll(1 << 20)
	if l.hold != nil {
		l.begun <- struct{}{}
		<-l.hold
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handled = append(l.handled, string(body))
	return streamer.NewMessage(nil, []byte(path+" "+string(body)))
}

// bank is a mortal peer whose services come in sequences.
func newBank(t testing.TB, l *teller) *mortal {
	m := &mortal{t: t, store: newLasting(t), sequenced: l}
	m.serve = m.echo
	m.start()
	return m
}

// assured returns the configuration of a dialer that asks for more than at-most-once.
func assured(t testing.TB, a wsrm.Assurance, store ctxstore.Store) session.Config {
	cfg := config(t)
	cfg.Assurance, cfg.Ordered, cfg.Store = a, true, store
	cfg.Clock, cfg.Reconnect = quick{newLater()}, forEver
	return cfg
}

// effect returns what the store has of the one sequence in it.
func effect(t testing.TB, store ctxstore.Store) (effect string, sequences int) {
	for info, err := range store.List(t.Context(), ctxstore.SequencePrefix) {
		require.NoError(t, err)
		entry, err := store.Get(t.Context(), info.URI)
		require.NoError(t, err)
		e, err := wsrm.EffectOf(entry.Value)
		require.NoError(t, err)
		effect += string(e)
		sequences++
	}
	return effect, sequences
}

func TestAssurancesAreAgreed(t *testing.T) {
	for a := wsrm.AtMostOnce; a <= wsrm.ExactlyOnce; a++ {
		for _, path := range []string{"/book", "/other"} {
			t.Run(a.String()+path, func(t *testing.T) {
				l := &teller{}
				m := newBank(t, l)
				sess := dial(t, "http://"+m.http+path, assured(t, a, newLasting(t)))
				agreed := sess.Agreed()
				assert.Equal(t, negotiate.AssuranceURI(a, true), agreed.Facts.Assurance)
				assert.True(t, strings.HasSuffix(agreed.Facts.Assurance, ":in-order"))
				for n := range 3 {
					_, body := call(t, sess, "", strconv.Itoa(n))
					assert.Equal(t, path+" "+strconv.Itoa(n), body)
				}
				require.NoError(t, sess.Send(t.Context(), streamer.NewMessage(nil, []byte("3"))))
				posted, err := sess.Post(t.Context(),
					streamer.NewMessage([]byte("POST /book HTTP/1.1\r\n\r\n"), []byte("4")))
				require.NoError(t, err)
				pending, err := sess.Begin(t.Context(), streamer.NewMessage(nil, []byte("5")))
				require.NoError(t, err)
				reply, err := pending.Reply(t.Context())
				require.NoError(t, err)
				text, err := reply.ReadAll(100)
				require.NoError(t, err)
				assert.Equal(t, path+" 5", string(text))
				require.NoError(t, sess.Finish(t.Context()))
				require.NoError(t, posted.Err())
				status := sess.Sequence()
				assert.EqualValues(t, 6, status.Done)
				assert.True(t, status.Over)
				_, err = sess.Call(t.Context(), streamer.NewMessage(nil, []byte("late")))
				assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unsent}, "the sequence is over")
				require.NoError(t, sess.Close())
				got, _ := effect(t, m.store)
				if path == "/book" {
					assert.Equal(t, "0 1 2 3 4 5 ", got)
				} else {
					assert.Equal(t, "4 ", got, "a head may name another service")
					assert.Equal(t, []string{"0", "1", "2", "3", "5"}, l.handled)
				}
				assert.Empty(t, m.got(), "nothing went another way")
			})
		}
	}
}

func TestAssurancesRefused(t *testing.T) {
	at := func(url string, cfg session.Config) error {
		_, err := session.Dial(t.Context(), url, cfg)
		return err
	}
	volatile := startServices(t, func(c *responder.Config) { c.Sequenced = &teller{} })
	none := startServices(t, nil)
	plain := startServices(t, func(c *responder.Config) { c.Serves = func(string) bool { return false } })
	for name, tc := range map[string]struct {
		url  string
		code negotiate.Code
		says string
		edit func(*session.Config)
	}{
		"store here does not persist": {volatile.http.URL, negotiate.BadConfig, "a store that persists",
			func(c *session.Config) { c.Store = newStore(t) }},
		"store there does not persist": {volatile.http.URL, negotiate.NoHHFR,
			"none here; plain SOAP cannot promise exactly-once", nil},
		"no sequences there": {none.http.URL, negotiate.NoHHFR, "plain SOAP cannot promise exactly-once",
			nil},
		"no HHFR there": {plain.http.URL, negotiate.NoHHFR, "plain SOAP cannot promise exactly-once",
			nil},
		"at-most-once, no sequences": {none.http.URL, negotiate.NoHHFR,
			"plain SOAP cannot promise at-most-once:in-order", func(c *session.Config) { c.Assurance = 0 }},
		"no such assurance": {volatile.http.URL, negotiate.BadConfig, "assurance",
			func(c *session.Config) { c.Assurance = 9 }},
	} {
		cfg := assured(t, wsrm.ExactlyOnce, newLasting(t))
		if tc.edit != nil {
			tc.edit(&cfg)
		}
		err := at(tc.url+"/x", cfg)
		assert.ErrorIs(t, err, &negotiate.Error{Code: tc.code}, name)
		assert.ErrorContains(t, err, tc.says, name)
	}
	cfg := assured(t, wsrm.AtLeastOnce, newStore(t))
	sess := dial(t, volatile.http.URL+"/x", cfg)
	require.NoError(t, sess.Finish(t.Context()), "at-least-once needs no store that persists")

	// One sequence at a time: another assurance waits until that sequence is over.
	store := newLasting(t)
	first := dial(t, newBank(t, &teller{}).url("/book"), assured(t, wsrm.ExactlyOnce, store))
	_, body := call(t, first, "", "x")
	assert.Equal(t, "/book x", body)
	url := first.Agreed().Facts.Origin + "/book"
	require.NoError(t, first.Close())
	assert.ErrorContains(t, at(url, assured(t, wsrm.AtLeastOnce, store)), "not over")
}

// In order, at-most-once continues over streams that break: nothing is handled twice, and messages
// without an answer have an unknown fate. The initiator's store has nothing of it, so that sessions
// do not interfere.
func TestAtMostOnceInOrder(t *testing.T) {
	m := newBank(t, &teller{})
	store := newLasting(t)
	sess := dial(t, m.url("/book"), assured(t, wsrm.AtMostOnce, store))
	other := dial(t, m.url("/book"), assured(t, wsrm.AtMostOnce, store))
	assert.Equal(t, "urn:hhfr:assurance:at-most-once:in-order", sess.Agreed().Facts.Assurance)
	assert.NotEqual(t, sess.Agreed().Facts.Sequence, other.Agreed().Facts.Sequence)
	require.NoError(t, other.Finish(t.Context()))
	require.NoError(t, other.Close())
	answered := map[string]bool{}
	for n := range 40 {
		if n%7 == 3 {
			m.kill()
			m.start()
		}
		reply, err := sess.Call(t.Context(), streamer.NewMessage(nil, []byte(strconv.Itoa(n))))
		if err != nil {
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
			continue
		}
		_, err = reply.ReadAll(100)
		require.NoError(t, err)
		answered[strconv.Itoa(n)] = true
	}
	require.NoError(t, sess.Finish(t.Context()))
	require.NoError(t, sess.Close())
	got, _ := effect(t, m.store)
	last := -1
	for _, text := range strings.Fields(got) {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		require.Greater(t, n, last, "twice, or out of order")
		last = n
		delete(answered, text)
	}
	assert.Empty(t, answered, "answered and not done")
	for info, err := range store.List(t.Context(), "") {
		require.NoError(t, err)
		assert.NotContains(t, info.URI, "outbox")
		assert.NotContains(t, info.URI, ":sequence:")
	}
}

// A caller that does not wait for the reply gets the error that the fate is unknown: the message is
// in no store, and nobody reports its fate later.
func TestAtMostOnceNobodyWaits(t *testing.T) {
	l := &teller{hold: make(chan struct{}), begun: make(chan struct{}, 2)}
	m := newBank(t, l)
	sess := dial(t, m.url("/other"), assured(t, wsrm.AtMostOnce, newLasting(t)))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-l.begun
		cancel()
	}()
	_, err := sess.Call(ctx, streamer.NewMessage(nil, []byte("one")))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
	require.ErrorIs(t, err, context.Canceled)
	close(l.hold)
	require.NoError(t, sess.Finish(t.Context()))
	require.NoError(t, sess.Close())
	assert.Equal(t, []string{"one"}, l.handled)
}

// breaker breaks the stream of whatever it handles.
type breaker struct{ conns chan net.Conn }

func (breaker) Transactional(string) bool { return false }

func (breaker) Transact(context.Context, string, *wsrm.Tx, *streamer.Message) (*streamer.Message, error) {
	panic("not asked for")
}

func (b breaker) Handle(_ context.Context, _ string, m *streamer.Message) *streamer.Message {
	_ = (<-b.conns).Close()
	return m
}

// A peer that breaks each stream does not get one message after the other: messages that were lost
// with a stream are no progress.
func TestAtMostOnceFruitlessStreams(t *testing.T) {
	b := breaker{make(chan net.Conn, 100)}
	s := startServices(t, func(c *responder.Config) {
		c.OnSession = func(_ negotiate.Facts, conn net.Conn) { b.conns <- conn }
		c.Sequenced = b
	})
	sess := dial(t, s.http.URL+"/x", assured(t, wsrm.AtMostOnce, newLasting(t)))
	unknown := 0
	for {
		_, err := sess.Call(t.Context(), streamer.NewMessage(nil, []byte("one")))
		if errors.Is(err, &negotiate.Error{Code: negotiate.Unsent}) {
			break
		}
		require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
		unknown++
		require.Less(
			t,
			unknown,
			50,
		) // six, and those that were committed and lost only their replies, as the next stream reported
	}
	assert.GreaterOrEqual(t, unknown, 6)
}

// The peer dies repeatedly while messages are sent: each has its effect once, in order, and a
// reply.
func TestSequenceOverReconnections(t *testing.T) {
	m := newBank(t, &teller{})
	sess := dial(t, m.url("/book"), assured(t, wsrm.ExactlyOnce, newLasting(t)))
	want := ""
	for n := range 60 {
		if n%7 == 3 {
			m.kill()
			m.start()
		}
		_, body := call(t, sess, "", strconv.Itoa(n))
		assert.Equal(t, fmt.Sprintf("/book %d", n), body)
		want += strconv.Itoa(n) + " "
	}
	require.NoError(t, sess.Finish(t.Context()))
	require.NoError(t, sess.Close())
	got, sequences := effect(t, m.store)
	assert.Equal(t, want, got)
	assert.Equal(t, 1, sequences)
}

// A session ends before its messages are committed; the next one on the same store continues with
// them, and gets their replies.
func TestSequenceOutlivesSessions(t *testing.T) {
	m := newBank(t, &teller{})
	store := newLasting(t)
	cfg := assured(t, wsrm.ExactlyOnce, store)
	cfg.Reconnect = 0
	sess := dial(t, m.url("/book"), cfg)
	call(t, sess, "", "0")
	m.kill()
	var kept []*session.PostedMessage
	for n := 1; n <= 3; n++ {
		posted, err := sess.Post(t.Context(), streamer.NewMessage(nil, []byte(strconv.Itoa(n))))
		if err == nil {
			kept = append(kept, posted)
		}
	}
	require.Error(t, sess.Finish(t.Context()))
	_ = sess.Close() // the stream may be found broken by it
	status := sess.Sequence()
	accepted := status.Accepted
	assert.LessOrEqual(t, int(accepted), 1+len(kept))
	for i, p := range kept {
		code := negotiate.Kept
		if uint64(i)+1 >= accepted {
			code = negotiate.Unsent // it came when the session was over already
		}
		assert.ErrorIs(t, p.Err(), &negotiate.Error{Code: code}, "%d", i)
	}

	m.start()
	late := make(chan uint64, 10)
	cfg.Reconnect = forEver
	cfg.Resume, cfg.LateReply = true, func(number uint64, _ *streamer.Message, err error) {
		assert.NoError(t, err)
		late <- number
	}
	// goOn sends the messages up to last once more, as the first session did.
	goOn := func(last int) (leftOut uint64) {
		sess = dial(t, m.url("/book"), cfg)
		for n := 0; n <= last; n++ {
			message := streamer.NewMessage(nil, []byte(strconv.Itoa(n)))
			var err error
			if n == 0 {
				_, err = sess.Call(t.Context(), message)
			} else {
				err = sess.Send(t.Context(), message)
			}
			if err != nil {
				require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Accepted})
				leftOut++
			}
		}
		assert.Equal(t, session.Resumed{LeftOut: leftOut}, sess.Resumed())
		return leftOut
	}
	assert.Equal(t, accepted, goOn(3))
	require.NoError(t, sess.Finish(t.Context()))
	_ = sess.Close() // the peer may be quicker
	got, _ := effect(t, m.store)
	assert.Equal(t, "0 1 2 3 ", got)

	// Committed messages are not sent again, and new ones go into a sequence of their own.
	assert.EqualValues(t, 4, goOn(4))
	_ = sess.Close()
	assert.EqualValues(t, 5, goOn(4), "over both sequences of the run")
	require.NoError(t, sess.Finish(t.Context()))
	_ = sess.Close()
	require.NoError(t, sess.EndRun(t.Context()))
	cfg.Resume = false
	sess = dial(t, m.url("/book"), cfg)
	assert.Zero(t, sess.Resumed(), "another run")
	_ = sess.Close() // as soon as it was opened, the peer may be quicker
	_, sequences := effect(t, m.store)
	possible := []int{3}
	if accepted == 1 {
		possible = append(
			possible,
			4,
		// only the close frame of the first may have been missing, and then the next session had a
		// sequence of its own
		)
	}
	assert.Contains(t, possible, sequences)
}

// Two sessions, as of two processes, never have one sequence at a time: each would take the
// messages of the other for its own.
func TestOneSessionHasTheSequence(t *testing.T) {
	m := newBank(t, &teller{})
	folder := t.TempDir()
	open := func() ctxstore.Store {
		s, err := directory.Open(folder, directory.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		return s
	}
	one, other := assured(t, wsrm.ExactlyOnce, open()), assured(t, wsrm.ExactlyOnce, open())
	sess := dial(t, m.url("/book"), one)
	for range 2 {
		_, err := session.Dial(t.Context(), m.url("/book"), other)
		require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Held})
	}
	_, body := call(t, sess, "", "0")
	assert.Equal(t, "/book 0", body)
	elsewhere := dial(t, m.url("/other"), other)
	require.NoError(t, elsewhere.Close())
	_ = sess.Close()
	sess = dial(t, m.url("/book"), other)
	call(t, sess, "", "1")
	require.NoError(t, sess.Finish(t.Context()))
	got, sequences := effect(t, m.store)
	assert.Equal(t, "0 1 ", got)
	assert.Equal(t, 2, sequences, "that of the other service has no effect")
}

// The responder loses its store while messages are in flight: exactly-once reports those that it
// may have handled, at-least-once sends them again.
func TestResponderLosesTheSequence(t *testing.T) {
	for _, a := range []wsrm.Assurance{wsrm.AtLeastOnce, wsrm.ExactlyOnce} {
		t.Run(a.String(), func(t *testing.T) {
			l := &teller{hold: make(chan struct{}), begun: make(chan struct{}, 10)}
			m := newBank(t, l)
			sess := dial(t, m.url("/other"), assured(t, a, newLasting(t)))
			type outcome struct {
				body string
				err  error
			}
			outcomes := make(chan outcome, 1)
			go func() {
				reply, err := sess.Call(t.Context(), streamer.NewMessage(nil, []byte("0")))
				var o outcome
				if o.err = err; err == nil {
					b, _ := reply.ReadAll(100)
					o.body = string(b)
				}
				outcomes <- o
			}()
			<-l.begun
			m.store = newLasting(t) // of the next life
			go m.kill()
			close(l.hold)
			m.killed()
			m.start()
			o := <-outcomes
			switch {
			case a == wsrm.ExactlyOnce && o.err != nil:
				assert.ErrorIs(t, o.err, &negotiate.Error{Code: negotiate.FateUnknown})
			default: // the reply came before the connection broke, or it was handled again
				require.NoError(t, o.err)
				assert.Equal(t, "/other 0", o.body)
			}
			l.begun = make(chan struct{}, 100)
			for n, over := 1, false; !over; n++ {
				reply, err := sess.Call(t.Context(), streamer.NewMessage(nil, []byte(strconv.Itoa(n))))
				if over = err == nil; over {
					text, err := reply.ReadAll(100)
					require.NoError(t, err)
					assert.Equal(t, "/other "+strconv.Itoa(n), string(text), "another sequence goes on")
					continue
				}
				// It was written to a broken stream before that was noticed.
				require.Equal(t, wsrm.ExactlyOnce, a)
				require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
			}
			require.NoError(t, sess.Finish(t.Context()))
			require.NoError(t, sess.Close())
			slices.Sort(l.handled)
			if a == wsrm.ExactlyOnce {
				assert.Equal(t, slices.Compact(slices.Clone(l.handled)), l.handled, "nothing twice")
			}
			assert.Contains(t, l.handled, "0")
		})
	}
}

// Under a guarantee messages and replies may be long; a message that only has an order may not, and
// fails at once, and a reply becomes a status.
func TestLongMessagesInSequences(t *testing.T) {
	const length = 5 << 20
	m := newBank(t, &teller{})
	long := &longReplies{}
	m.kill()
	m.sequenced = long
	m.start()
	for _, a := range []wsrm.Assurance{wsrm.ExactlyOnce, wsrm.AtLeastOnce} {
		sess := dial(t, m.url("/"+a.String()), assured(t, a, newLasting(t)))
		long.got = 0
		reply, err := sess.Call(t.Context(), &streamer.Message{Body: io.LimitReader(zeros{}, length)})
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, reply.Body)
		require.NoError(t, err)
		assert.EqualValues(t, length, n)
		assert.EqualValues(t, length, long.got)
		require.NoError(t, sess.Finish(t.Context()))
		require.NoError(t, sess.Close())
	}
	sess := dial(t, m.url("/other"), assured(t, wsrm.AtMostOnce, newLasting(t)))
	_, err := sess.Call(t.Context(), &streamer.Message{Body: io.LimitReader(zeros{}, length)})
	assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unsent})
	head, body := call(t, sess, "", "x")
	assert.Contains(t, head, strconv.Itoa(http.StatusInternalServerError))
	assert.Contains(t, body, "its reply cannot be sent")
	require.NoError(t, sess.Finish(t.Context()))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type longReplies struct {
	teller
	got int64 // of the last request
}

func (l *longReplies) Handle(_ context.Context, _ string, m *streamer.Message) *streamer.Message {
	l.got, _ = io.Copy(io.Discard, m.Body)
	return &streamer.Message{Body: io.LimitReader(zeros{}, 5<<20)}
}

func TestSequencesInMessages(t *testing.T) {
	offer := fullOffer(t)
	answer := fullAnswer(t)
	require.NotEmpty(t, offer.Sequence)
	text, err := offer.Message(soap.V11)
	require.NoError(t, err)
	for name, as := range map[string]string{"short": "urn:hhfr:sequence:00",
		"upper case": strings.ToUpper(offer.Sequence), "another": "urn:uuid:" + strings.Repeat("0", 32)} {
		_, _, err := negotiate.ParseOffer([]byte(strings.Replace(string(text), offer.Sequence, as, 1)))
		assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed}, name)
	}
	text, err = answer.Message(soap.V11)
	require.NoError(t, err)
	_, err = negotiate.ParseAnswer([]byte(strings.Replace(string(text), `state="new"`, `state="odd"`, 1)))
	assert.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed})
}
