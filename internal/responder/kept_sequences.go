package responder

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// keptSequence is a sequence whose state is in the store until it expires. The store knows no
// peers: what an earlier process left is nobody's until it is opened again.
type keptSequence struct {
	peer    string
	spare   bool  // nobody needs it
	expires int64 // in nanoseconds of Unix, once nobody has it open
}

// reserve counts a sequence that is about to be opened, and takes out of the store what has
// to go for it. Errors: a refusal, if there are too many; those of the store.
func (s *sequences) reserve(ctx context.Context, uri, peer string) error {
	known, err := s.knows(ctx, uri)
	if err == nil {
		err = s.list(ctx)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	var gone []string
	full := false
	if !known {
		gone, full = s.crowdedLocked(peer)
	}
	if !full {
		s.kept[uri] = &keptSequence{peer: peer}
	}
	held := make([]*opened, len(gone))
	for i, u := range gone {
		held[i] = &opened{users: 1}
		held[i].mu.Lock() // who opens it waits
		s.open[u] = held[i]
	}
	s.mu.Unlock()
	for i, o := range held {
		if err := sequence.Forget(ctx, s.cfg.Store, gone[i]); err != nil {
			s.cfg.Log.Warn("sequence not taken out of the store", "sequence", gone[i], "err", err)
		}
		o.mu.Unlock()
		s.leave(gone[i], o)
	}
	if full {
		return &streamer.Refusal{CloseCode: streamer.CloseLimits, Text: "too many sequences are kept here"}
	}
	return nil
}

// crowdedLocked finds what has to go before a peer has another sequence, and counts it no longer:
// if those that nobody needs are too many, then if all are. full: there is no room.
func (s *sequences) crowdedLocked(peer string) (gone []string, full bool) {
	now := s.cfg.Clock.Now().UnixNano()
	for _, times := range []int{1, keptSequences} {
		var all []accept.Thing[string]
		for uri, k := range s.kept {
			left := s.open[uri] == nil
			if left && k.expires < now {
				delete(s.kept, uri)
			} else if spare := left && k.spare; spare || times > 1 {
				all = append(all, accept.Thing[string]{Key: uri, Peer: k.peer, Spare: spare, Rank: k.expires})
			}
		}
		some, full := accept.MakeRoom(peer, times*s.cfg.MaxSessions, times*s.cfg.MaxPerPeer, all)
		if full {
			return gone, true
		}
		for _, uri := range some {
			delete(s.kept, uri)
		}
		gone = append(gone, some...)
	}
	return gone, false
}

// leftLocked notes how long the state of a sequence is kept that nobody has open any more; 0: for
// good, since its service wants that.
func (s *sequences) leftLocked(uri string, lasts time.Duration) {
	if k := s.kept[uri]; lasts == 0 {
		delete(s.kept, uri)
	} else if k != nil {
		k.spare, k.expires = lasts <= sequence.SpareLife, s.cfg.Clock.Now().Add(lasts).UnixNano()
	}
}

// list finds the sequences in the store, once.
func (s *sequences) list(ctx context.Context) error {
	s.listing.Lock()
	defer s.listing.Unlock()
	if s.kept != nil {
		return nil
	}
	kept, soon := map[string]*keptSequence{}, s.cfg.Clock.Now().Add(sequence.SpareLife)
	for info, err := range s.cfg.Store.List(ctx, ctxstore.SequencePrefix) {
		if ctx.Err() != nil || errors.Is(err, ctxstore.Unavailable) {
			return errors.Join(err, context.Cause(ctx))
		}
		name := strings.TrimPrefix(info.URI, ctxstore.SequencePrefix)
		if err != nil || info.Expires.IsZero() || strings.Contains(name, ":") { // it stays, or is of no stream
			continue
		}
		kept[info.URI] = &keptSequence{spare: info.Expires.Before(soon), expires: info.Expires.UnixNano()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = kept
	return nil
}
