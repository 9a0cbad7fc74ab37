package ctxstore

import "sync"

// Holder is a [Store] that several users may have open at a time, each of which can have an entry
// for itself. Engines are; a store that hides them has no entries to hold.
type Holder interface {
	// Hold is [Hold].
	Hold(uri string) (release func(), err error)
}

// Hold keeps an entry, which need not exist, for the caller until release is called, or its process
// ends in whatever way: [Held] for all others meanwhile, of this process too. Only who holds
// entries respects that.
func Hold(s Store, uri string) (release func(), err error) {
	if h, ok := s.(Holder); ok {
		return h.Hold(uri)
	}
	return func() {}, nil
}

// Holds are the entries of a store that users in one process hold. The zero value is ready; all
// methods are safe for concurrent use.
type Holds struct {
	mu   sync.Mutex
	uris map[string]bool
}

// Hold is [Holder].Hold for the store at a place.
func (h *Holds) Hold(at, uri string) (release func(), err error) {
	if err := CheckURI(uri); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uris[uri] {
		return nil, &Error{Code: Held, URI: uri, At: at}
	}
	if h.uris == nil {
		h.uris = map[string]bool{}
	}
	h.uris[uri] = true
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.uris, uri)
	}), nil
}
