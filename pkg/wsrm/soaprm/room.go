package soaprm

import (
	"cmp"
	"context"
	"slices"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// maxLate is how many pairs of one CreateSequence that were not used stay in the store, before the
// latest.
const maxLate = 8

// reserve takes a place for a pair before it is stored, so that what comes at once finds it. gone
// are to be discarded. why: there is no place.
//
// The same CreateSequence may be of another client: devices that were cloned send the same bytes.
// So each has a pair of its own. Those before that were not used leave their Offer, and are still
// known, as their answers may be under way: a few over a restart, too, the others leave the store.
func (e *SequenceDestination) reserve(s *servedPair) (gone []*servedPair, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	by, peer := s.record.CreatedBy, s.record.Peer
	gone = e.sweepLocked(peer)
	var before []*servedPair
	for _, o := range e.byID {
		if by != "" && o.record.CreatedBy == by && o.record.Peer == peer && !o.used && !o.replaced {
			e.freeOfferLocked(o)
			before = append(before, o)
		}
	}
	if len(before) > maxLate {
		slices.SortFunc(before, func(a, b *servedPair) int { return cmp.Compare(b.forget.Load(), a.forget.Load()) })
		for _, o := range before[maxLate:] {
			o.replaced = true
			gone = append(gone, o)
		}
	}
	if holder := e.byOffer[s.record.Offered]; holder != nil {
		if by == "" || holder.record.CreatedBy != by {
			return gone, "the sequence offered is in use already"
		}
		s.record.Offered = "" // its replies are in no sequence
	}
	places, full := accept.MakeRoom(peer, e.cfg.MaxSequences, e.cfg.MaxPerPeer, e.thingsLocked(false))
	if full {
		return gone, "there are too many sequences"
	}
	e.removeLocked(places...)
	e.byID[s.record.Identifier] = s
	if s.record.Offered != "" {
		e.byOffer[s.record.Offered] = s
	}
	return append(gone, places...), ""
}

// sweepLocked takes out what ended long ago, and the oldest that ended if they are too many before
// a peer has another pair.
func (e *SequenceDestination) sweepLocked(peer string) (gone []*servedPair) {
	now := e.cfg.Clock.Now().UnixNano()
	for _, s := range e.byID {
		if s.forget.Load() < now {
			gone = append(gone, s)
		}
	}
	e.removeLocked(gone...)
	ended, _ := accept.MakeRoom(peer, e.cfg.MaxSequences+1, e.cfg.MaxPerPeer+1, e.thingsLocked(true))
	e.removeLocked(ended...)
	return append(gone, ended...)
}

// thingsLocked are the pairs that ended, or the others, of which those are spare that were not
// used.
func (e *SequenceDestination) thingsLocked(ended bool) (list []accept.Thing[*servedPair]) {
	for _, s := range e.byID {
		if (s.ended.Load() || s.isExpired()) != ended {
			continue
		}
		t := accept.Thing[*servedPair]{Key: s, Peer: s.record.Peer, Spare: ended || !s.used, Rank: s.forget.Load()}
		if s.replaced {
			t.Rank = 0
		}
		list = append(list, t)
	}
	return list
}

func (e *SequenceDestination) removeLocked(list ...*servedPair) {
	for _, s := range list {
		delete(e.byID, s.record.Identifier)
		e.freeOfferLocked(s)
		s.forget.Store(0) // nothing more is sent
	}
}

func (e *SequenceDestination) freeOfferLocked(s *servedPair) {
	if e.byOffer[s.record.Offered] == s {
		delete(e.byOffer, s.record.Offered)
	}
}

// drop gives up a pair whose identifier no client has.
func (e *SequenceDestination) drop(ctx context.Context, s *servedPair) {
	e.mu.Lock()
	e.removeLocked(s)
	e.mu.Unlock()
	e.discard(ctx, s)
}

// discard takes pairs out of the store, but for those that a client has begun to use.
func (e *SequenceDestination) discard(ctx context.Context, list ...*servedPair) {
	for _, s := range list {
		if err := s.discard(context.WithoutCancel(ctx)); err != nil {
			e.cfg.Log.Warn("sequence not taken out of the store", "sequence", s.record.Identifier, "err", err)
		}
	}
}

func (s *servedPair) discard(ctx context.Context) error {
	s.mu.Lock() // it may not be stored yet
	defer s.mu.Unlock()
	e := s.endpoint
	e.mu.Lock()
	needed := e.byID[s.record.Identifier] == s && s.used
	e.mu.Unlock()
	if needed {
		return nil
	}
	uris := []string{s.uri}
	if entry, err := e.cfg.Store.Get(ctx, s.record.State); err == nil {
		if effect, err := wsrm.EffectOf(entry.Value); err == nil && len(effect) == 0 { // else it is the service's
			uris = append(uris, s.record.State)
		}
	}
	return remove(ctx, e.cfg.Store, uris...)
}

// begin is called before a client uses a pair. Of those with one Offer, the first that is used has
// it; one that was replaced is stored again. Errors: Unstored.
func (s *servedPair) begin(ctx context.Context) error {
	if s.begun.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, after := s.endpoint, s.record
	e.mu.Lock()
	if holder := e.byOffer[after.Offered]; after.Offered != "" && holder != s {
		if holder == nil || !holder.used {
			e.byOffer[after.Offered] = s
		} else {
			after.Offered = ""
		}
	}
	changed := s.replaced || after.Offered != s.record.Offered
	e.mu.Unlock()
	if changed {
		if err := after.put(ctx, e.cfg.Store, s.uri, max(s.record.Expires.Sub(s.now()), 0)+tombstone); err != nil {
			return err
		}
	}
	e.mu.Lock()
	s.record.Offered, s.replaced = after.Offered, false
	e.mu.Unlock()
	s.begun.Store(true)
	return nil
}
