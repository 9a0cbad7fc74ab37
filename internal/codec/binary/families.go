package binary

import (
	"sync"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
)

const (
	// maxFamilies bounds the kinds of messages that are widened; beyond, the one learned from
	// longest ago starts anew.
	maxFamilies = 256
	// maxBranches bounds the families of one kind that have too little in common to be one.
	maxBranches = 4
	// maxWidened bounds the serialization of a shape that is widened, in bytes: beyond it a kind
	// has no order worth describing.
	maxWidened = 64 << 10
	// familyBytes bounds what all families take in memory, in bytes: beyond, kinds learned from
	// longest ago are forgotten. One that would take more than a sixteenth is not kept.
	familyBytes = 16 << 20
)

// families are what was learned from messages of each kind. They are one end's, over all its
// streams.
type families struct {
	mu    sync.Mutex
	kinds map[string]*messageKind
	turn  uint64
	bytes int // what all branches take
}

type messageKind struct {
	branches []branch
	used     uint64
}

type branch struct {
	family *learn.Family
	shape  *shape.Shape
	bytes  int
}

// learn learns from a message that fits no shape known, and what is declared of it: it widens what
// was learned from others of its kind, if that fits, else begins a new branch. old is the shape
// that the new one takes the place of, nil if none.
func (f *families) learn(message []byte, whole bool, d *Described) (s, old *shape.Shape, err error) {
	one, err := learn.NewFamily(message, whole)
	if err != nil {
		return nil, nil, err
	}
	d.declare(one)
	if s, err = one.Shape(); err != nil || !whole {
		return s, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.kind(one.Key())
	for i := range k.branches {
		b := &k.branches[i]
		wide := b.family.Widen(one)
		if wide == nil {
			continue
		}
		wider, err := wide.Shape()
		if err != nil || len(wider.Octets()) > maxWidened {
			break
		}
		old = b.shape
		f.bytes -= b.bytes
		k.branches = append(k.branches[:i], k.branches[i+1:]...)
		f.keep(k, wide, wider)
		return wider, old, nil
	}
	f.keep(k, one, s)
	return s, nil, nil
}

// keep adds a branch to a kind, which is the one used last.
func (f *families) keep(k *messageKind, family *learn.Family, s *shape.Shape) {
	b := branch{family, s, family.Size()}
	if b.bytes > familyBytes/16 {
		return
	}
	if len(k.branches) == maxBranches {
		f.bytes -= k.branches[0].bytes
		k.branches = append(k.branches[:0], k.branches[1:]...)
	}
	k.branches = append(k.branches, b)
	for f.bytes += b.bytes; f.bytes > familyBytes; {
		f.forget()
	}
}

// kind gives what is known of a kind.
func (f *families) kind(key string) *messageKind {
	if f.kinds == nil {
		f.kinds = map[string]*messageKind{}
	}
	f.turn++
	k := f.kinds[key]
	if k == nil {
		if len(f.kinds) == maxFamilies {
			f.forget()
		}
		k = &messageKind{}
		f.kinds[key] = k
	}
	k.used = f.turn
	return k
}

func (f *families) forget() {
	oldest, least := "", ^uint64(0)
	for key, k := range f.kinds {
		if k.used < least {
			oldest, least = key, k.used
		}
	}
	for _, b := range f.kinds[oldest].branches {
		f.bytes -= b.bytes
	}
	delete(f.kinds, oldest)
}
