package accept

import (
	"cmp"
	"slices"
)

// Thing is one of the things that peers keep at a server, as sequences are.
type Thing[K any] struct {
	Key  K
	Peer string // see [Peer]; empty: of nobody in particular
	// Spare: it may go for another one; the one of the lowest Rank first.
	Spare bool
	Rank  int64
}

// MakeRoom finds which things have to go before a peer may have one more, if there may be most in
// all and perPeer of one peer: spare ones of that peer, or of the peer that has most spare ones.
// full: there is no room, and nothing is to go for that.
func MakeRoom[K any](peer string, most, perPeer int, all []Thing[K]) (gone []K, full bool) {
	has, spare := map[string]int{}, map[string]int{}
	for _, t := range all {
		has[t.Peer]++
		if t.Spare {
			spare[t.Peer]++
		}
	}
	for {
		share := peer != "" && has[peer] >= perPeer // it has all of its own
		if !share && len(all) < most {
			return gone, false
		}
		at := -1
		for i, t := range all {
			if !t.Spare || share && t.Peer != peer {
				continue
			}
			if at >= 0 { // compared with the best so far
				best := all[at]
				if cmp.Or(cmp.Compare(spare[best.Peer], spare[t.Peer]), cmp.Compare(t.Rank, best.Rank)) >= 0 {
					continue
				}
			}
			at = i
		}
		if at < 0 {
			return nil, true
		}
		gone = append(gone, all[at].Key)
		has[all[at].Peer]--
		spare[all[at].Peer]--
		all = slices.Delete(all, at, at+1)
	}
}
