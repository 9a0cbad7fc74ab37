package httpmsg

import "sync"

const (
	// recentHeads is how many heads are remembered. The messages of a session have few different
	// ones, mostly one in each direction.
	recentHeads = 4
	// maxRecent is the longest head that is remembered, in bytes.
	maxRecent = 2 << 10
)

// recent remembers what was made of the last few heads of a session, by their bytes. The zero value
// is empty. It is safe for concurrent use; what it returns is shared, and must not be changed.
type recent[T any] struct {
	mu    sync.Mutex
	heads [recentHeads]rememberedHead[T]
	next  int // the place of the next one
}

type rememberedHead[T any] struct {
	lane uint64
	head string
	made *T
}

// get returns what was made of a head; nil if that is not known. A head is only known on its lane:
// how long an answer takes must not tell one client what another one has sent.
func (r *recent[T]) get(lane uint64, head []byte) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.heads {
		if h := &r.heads[i]; h.lane == lane && h.head == string(head) {
			return h.made
		}
	}
	return nil
}

// put remembers what was made of a head, instead of the oldest one.
func (r *recent[T]) put(lane uint64, head []byte, made *T) {
	if len(head) == 0 || len(head) > maxRecent {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heads[r.next] = rememberedHead[T]{lane, string(head), made}
	r.next = (r.next + 1) % recentHeads
}
