package ctxstore

import "sync"

// Holder is a [Store] that several users may have open at a time, each of which can hold an entry
// exclusively. The engines are Holders; a wrapper that hides them has no entries to hold.
type Holder interface {
	// Hold is [Hold].
	Hold(uri string) (release func(), err error)
}

// Hold reserves an entry, which need not exist, for the caller until release is called, or its
// process ends in any way. Meanwhile it fails with [Held] for all others, in this process too. Only
// users that call Hold respect it.
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

// Hold is [Holder].Hold for the store at a path.
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
