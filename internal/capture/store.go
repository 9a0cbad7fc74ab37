package capture

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// storeReader is a store that is read, and remembers what could not be: that is not missing in it.
type storeReader struct {
	ctxstore.Store
	first  error            // the first failure
	failed map[string]error // by the URI, or the beginning of those that were listed
}

// maxFailures bounds the URIs whose failures are known one by one.
const maxFailures = 1024

// Get implements [ctxstore.Store].
func (s *storeReader) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	e, err := s.Store.Get(ctx, uri)
	s.note(ctx, uri, err)
	return e, err
}

// List implements [ctxstore.Store].
func (s *storeReader) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			s.note(ctx, about(err, prefix), err)
			if !yield(info, err) {
				return
			}
		}
	}
}

// about returns the URI of the entry that an error of a list is about; prefix: it may be about any
// that begins so.
func about(err error, prefix string) string {
	var failed *ctxstore.Error
	if errors.As(err, &failed) && strings.HasPrefix(failed.URI, prefix) {
		return failed.URI
	}
	return prefix
}

// note records an error, unless it is that there is no such entry, or that nobody waits any more.
func (s *storeReader) note(ctx context.Context, uri string, err error) {
	if err == nil || errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) ||
		errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	s.first = cmp.Or(s.first, err)
	if s.failed == nil {
		s.failed = map[string]error{}
	}
	if _, known := s.failed[uri]; !known && len(s.failed) < maxFailures {
		s.failed[uri] = err
	}
}

// failure returns why the store did not give an entry; nil if it has none. uri may be the beginning
// of one; empty: any.
func (s *storeReader) failure(uri string) error {
	if s == nil || s.first == nil {
		return nil
	}
	switch err := s.failed[uri]; {
	case err != nil:
		return err
	case uri == "" || len(s.failed) >= maxFailures:
		return s.first
	}
	for of, err := range s.failed {
		if strings.HasPrefix(of, uri) || strings.HasPrefix(uri, of) {
			return err
		}
	}
	return nil
}

// failureOf returns an error of a store, other than that it lacks an entry; nil for any other.
func failureOf(err error) error {
	var failed *ctxstore.Error
	if errors.As(err, &failed) && failed.Code != ctxstore.NotFound {
		return err
	}
	return nil
}

// couldNotRead says of a message which lacks something that the store failed; nil: it did not.
func (d *Decoded) couldNotRead(failure error) {
	if failure != nil {
		d.Unread, d.LacksContract, d.Why = true, false, "it needs what could not be read: "+failure.Error()
	}
}
