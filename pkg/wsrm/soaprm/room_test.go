package soaprm_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// postFrom is post from the address of another client.
func (e *ends) postFrom(from string, octets []byte) *header.Blocks {
	e.t.Helper()
	r := httptest.NewRequest(http.MethodPost, where, bytes.NewReader(octets))
	r.RemoteAddr = from + ":1"
	w := httptest.NewRecorder()
	e.link.handler.ServeHTTP(w, r)
	answer, err := soap.Parse(w.Body.Bytes(), soap.Limits{})
	if !assert.NoError(e.t, err, "%s", w.Body) {
		return &header.Blocks{}
	}
	return header.Parse(answer)
}

// uses creates a sequence and sends a message in it.
func (k *talk) uses(from string) (id string) {
	b := k.postFrom(from, k.creates(func(*header.Terms) {}))
	require.Equal(k.t, "CreateSequenceResponse", b.Control, b.Fault)
	k.id = b.Sequence
	b = k.postFrom(from, k.message(1))
	require.Equal(k.t, [][2]uint64{{1, 1}}, b.Acknowledgements[0].Ranges)
	return k.id
}

// records counts the sequences in the store.
func (k *talk) records() (n int) {
	for _, err := range k.store.List(k.t.Context(), "urn:hhfr:wsrm:served:") {
		require.NoError(k.t, err)
		n++
	}
	return n
}

// A peer has its share of sequences, all peers have theirs, also over a restart. Those that were
// used give way to none, the others do: those of the peer first, or of the peer that has most.
func TestShares(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		const a, b, c = "192.0.2.1", "192.0.2.2", "192.0.2.3"
		k.cfg.MaxSequences = 6
		k.restart()
		creates := func(from string) *header.Blocks { return k.postFrom(from, k.creates(func(*header.Terms) {})) }
		first := k.uses(a)
		for range 5 {
			assert.Equal(t, "CreateSequenceResponse", creates(a).Control)
		}
		assert.Equal(t, 3, k.records(), "its share")
		waits := creates(b).Sequence
		k.restart()
		k.uses(a)
		k.uses(a)
		assert.Equal(t, "CreateSequenceRefused", creates(a).Fault, "its share, all of it in use")
		creates(c)
		creates(c)
		k.uses(c) // in the place of one that it did not use, and of nobody else's
		k.id = waits
		assert.NotEmpty(t, k.postFrom(b, k.message(1)).Acknowledgements, "it was not c's to take")
		k.uses("192.0.2.4") // in the place of the other one of c
		assert.Equal(t, "CreateSequenceRefused", creates("192.0.2.5").Fault)
		assert.Equal(t, 6, k.records())
		k.id = first
		k.postFrom(a, k.message(2))
		k.post(k.about("TerminateSequence", 2))
		assert.Equal(t, "CreateSequenceResponse", creates(a).Control)
		k.fault(k.message(3), "SequenceTerminated")
	})
}

// Of sequences that ended, as many are remembered, by the store as well; the effects of their
// messages stay.
func TestEndedSequencesAreBounded(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		for _, within := range []bool{true, false} {
			k := &talk{ends: newEnds(t, 1, 0), pairing: k.pairing}
			k.within, k.cfg.MaxSequences = within, 8
			k.restart()
			for range 20 {
				k.uses("192.0.2.1")
				k.post(k.about("TerminateSequence", 1))
			}
			k.restart()
			k.uses("192.0.2.1")
			assert.Equal(t, 5, k.records())
			states := 0
			for range k.store.List(t.Context(), ctxstore.SequencePrefix) {
				states++
			}
			if within {
				assert.Len(t, k.entries(), 21)
			} else {
				assert.Equal(t, 5, states)
			}
		}
	})
}

// unwritten is the connection of a client that went away.
type unwritten struct{ *httptest.ResponseRecorder }

func (unwritten) FlushError() error { return errors.New("broken pipe") }

// A sequence whose identifier could not be written to its client is nobody's: it leaves nothing,
// and the same CreateSequence has its Offer.
func TestTheAnswerToCreateSequenceIsLost(t *testing.T) {
	eachPairing(t, func(t *testing.T, k *talk) {
		octets := k.creates(func(t *header.Terms) {
			t.Offer = &header.OfferedSequence{Sequence: offered, Endpoint: addressing.Anonymous(k.space())}
		})
		r := httptest.NewRequest(http.MethodPost, where, bytes.NewReader(octets))
		k.link.handler.ServeHTTP(unwritten{httptest.NewRecorder()}, r)
		assert.Zero(t, k.records())
		_, _, b := k.post(octets)
		assert.NotEmpty(t, b.Terms.AcksTo)
		assert.Equal(t, 1, k.records())
	})
}

// slowStore is a store that takes its time for the first record of a sequence.
type slowStore struct {
	ctxstore.Store
	begun, goOn chan struct{}
	puts        chan struct{} // one: the next is slow
}

func (s *slowStore) Put(ctx context.Context, uri string, value []byte, o ctxstore.PutOptions) (uint64, error) {
	select {
	case <-s.puts:
		close(s.begun)
		<-s.goOn
	default:
	}
	return s.Store.Put(ctx, uri, value, o)
}

// A store that is slow with a sequence holds nobody else up; what comes again meanwhile has a
// sequence of its own.
func TestASlowStoreHoldsUpNobodyElse(t *testing.T) {
	e := newEnds(t, 1, 0)
	slow := &slowStore{e.store, make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)}
	slow.puts <- struct{}{}
	e.store = slow
	e.restart()
	k := &talk{ends: e, pairing: pairing{soaprm.V11, addressing.V200508, soap.V12}}
	octets := k.creates(func(*header.Terms) {})
	var wait sync.WaitGroup
	var one, two string
	wait.Go(func() { one = k.postFrom("192.0.2.1", octets).Sequence })
	<-slow.begun
	other := k.uses("192.0.2.2")
	wait.Go(func() { two = k.postFrom("192.0.2.1", octets).Sequence })
	close(slow.goOn)
	wait.Wait()
	ids := map[string]bool{one: true, two: true, other: true}
	assert.Len(t, ids, 3)
	for id := range ids {
		k.id = id
		assert.NotEmpty(t, k.postFrom("192.0.2.1", k.message(1)).Acknowledgements)
	}
	assert.Equal(t, 3, k.records())
}

// The answer to a CreateSequence that was sent again may come late: its sequence is there, after a
// restart if not many came since.
func TestTheAnswerToCreateSequenceIsLate(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		eachPairing(t, func(t *testing.T, k *talk) {
			octets := k.creates(func(t *header.Terms) {
				t.Offer = &header.OfferedSequence{Sequence: offered, Endpoint: addressing.Anonymous(k.space())}
			})
			var ids []string
			for range 20 {
				ids = append(ids, k.postFrom("192.0.2.1", octets).Sequence)
			}
			assert.Equal(t, 9, k.records())
			if restarts {
				k.restart()
			}
			for i, id := range ids {
				k.id = id
				b := k.postFrom("192.0.2.1", k.message(1))
				assert.Equal(t, !restarts || i >= 11, len(b.Acknowledgements) > 0, i)
			}
		})
	}
}
