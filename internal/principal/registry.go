package principal

import (
	"container/list"
	"net/netip"
	"time"
)

// MaxAddresses is how many addresses a registry knows something of: beyond it the one that was
// silent longest is forgotten.
const MaxAddresses = 1024

// Registry judges the requests of the clients of one upstream, and knows what their addresses have
// shown. It is used by one goroutine at a time.
type Registry struct {
	mode     Mode
	key      [32]byte
	proposed bool
	of       map[netip.Addr]*list.Element
	order    list.List // of *address; the one with the latest request first
}

// NewRegistry makes one. The key is random, and nobody else's: digests of secrets are made with it.
func NewRegistry(mode Mode, key [32]byte) *Registry {
	return &Registry{mode: mode, key: key, of: map[netip.Addr]*list.Element{}}
}

// address is what is known of one.
type address struct {
	addr      netip.Addr
	seen      time.Time
	proof     proof     // that it has shown
	changed   time.Time // when it last showed another one; zero: never
	strangers int       // connections without a proof
}

// entry is the one of an address that sends a request now.
func (r *Registry) entry(addr netip.Addr, now time.Time) *address {
	at := r.of[addr]
	if at == nil {
		if r.order.Len() >= MaxAddresses {
			delete(r.of, r.order.Remove(r.order.Back()).(*address).addr)
		}
		at = r.order.PushFront(&address{addr: addr})
		r.of[addr] = at
	}
	r.order.MoveToFront(at)
	e := at.Value.(*address)
	if now.Sub(e.seen) >= Lifetime {
		*e = address{addr: addr}
	}
	e.seen = now
	return e
}

// shows notes a proof of the address. It reports whether that is a second one.
func (e *address) shows(p proof, now time.Time) (second bool) {
	if e.proof != (proof{}) && !e.proof.isOf(p) {
		e.proof, e.changed = p, now
		return true
	}
	for i := range p {
		if p[i] != (digest{}) {
			e.proof[i] = p[i]
		}
	}
	return false
}

// isOne reports whether the address has shown one proof alone for long.
func (e *address) isOne(now time.Time) bool {
	return e.changed.IsZero() || now.Sub(e.changed) >= Lifetime
}

// Keeps reports whether a memory of a key may outlive the connections that have it.
func (r *Registry) Keeps(k Key, now time.Time) bool {
	if r.mode == ByAddress || !k.IsShared() {
		return k.IsShared()
	}
	at := r.of[k.addr]
	return at != nil && at.Value.(*address).isOne(now)
}
