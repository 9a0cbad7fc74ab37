package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// keeper is a peer whose services come in sequences, and which keeps few of them.
type keeper struct {
	*mortal
	*teller
	clients int
}

func newKeeper(t testing.TB, sessions, perPeer int) *keeper {
	l := &teller{}
	m := &mortal{t: t, store: newLasting(t), sequenced: l,
		change: func(c *responder.Config) { c.MaxSessions, c.MaxPerPeer = sessions, perPeer }}
	m.serve = m.echo
	m.start()
	return &keeper{mortal: m, teller: l}
}

// way is what a client does with its sequence: it sends a message, after which the sequence goes
// on, or ends; or it sends nothing.
type way int

const (
	goesOn way = iota
	ends
	saysNothing
)

// visit is a session of a client with a store; from is where its streams come from.
func (c *keeper) visit(store ctxstore.Store, w way, from streamer.Transport) error {
	cfg := config(c.t)
	cfg.Assurance, cfg.Store = wsrm.ExactlyOnce, store
	cfg.Transports = map[string]streamer.Transport{"tcp": from}
	ctx, cancel := context.WithTimeout(c.t.Context(), eventually)
	defer cancel()
	s, err := session.Dial(ctx, "http://"+c.http+"/other", cfg)
	if err != nil {
		return err
	}
	if w != saysNothing {
		c.clients++
		_, body := call(c.t, s, "", fmt.Sprint("call ", c.clients))
		assert.Equal(c.t, fmt.Sprint("/other call ", c.clients), body)
	}
	if w == ends {
		require.NoError(c.t, s.Finish(ctx))
	}
	return s.Close()
}

// visits has so many new clients come, each once there is a slot for it.
func (c *keeper) visits(n int, w way, from streamer.Transport) {
	for range n {
		store := newLasting(c.t)
		require.Eventually(c.t, func() bool { return c.visit(store, w, from) == nil }, eventually, tick)
	}
}

// keeps requires that the store has no more than so many sequences.
func (c *keeper) keeps(most int) {
	c.t.Helper()
	n := 0
	require.Eventually(c.t, func() bool {
		_, n = effect(c.t, c.store)
		return n <= most
	}, eventually, tick, "%d sequences", n)
}

// What sequences of new clients leave behind is bounded for each peer and in all, also over a
// restart, whether they ended, or nothing was sent in them. A sequence that goes on loses nothing
// by that.
func TestSequencesThatNobodyNeedsAreBounded(t *testing.T) {
	c := newKeeper(t, 8, 4)
	faithful := newLasting(t)
	require.NoError(t, c.visit(faithful, goesOn, new(loopback)))
	for round, w := range []way{ends, saysNothing, ends} {
		c.visits(12, w, new(loopback))
		c.keeps(8 + 2) // the one that goes on, and one that just ended
		if round == 0 {
			c.keeps(4 + 2)
		}
		c.visits(2, w, fromNine{})
		require.Eventually(t, func() bool { return c.visit(faithful, goesOn, new(loopback)) == nil }, eventually, tick)
		c.kill()
		<-c.gone
		c.start()
	}
	want := make([]string, c.clients)
	for i := range want {
		want[i] = fmt.Sprint("call ", i+1)
	}
	assert.Equal(t, want, c.handled)
}

// One peer cannot have all sequences that are kept: beyond its share it is told so, and the others
// have theirs.
func TestSequencesInUseAreBounded(t *testing.T) {
	c := newKeeper(t, 8, 1)
	c.visits(16, goesOn, new(loopback))
	c.keeps(16)
	require.Eventually(t, func() bool { // once there is a slot for its session
		err := c.visit(newLasting(t), goesOn, new(loopback))
		return assert.Error(t, err) && strings.Contains(err.Error(), "too many sequences are kept here")
	}, eventually, tick)
	c.visits(1, goesOn, fromNine{})
	c.keeps(17)
}
