package ctxstore

import (
	"context"
	"crypto/sha256"
)

// Shapes finds shapes in a store by their fingerprints. It has no state of its own.
type Shapes struct{ Store Store }

// Get returns the serialization of the shape with this fingerprint, checked against it; [NotFound]
// if there is none.
func (s Shapes) Get(ctx context.Context, fp [32]byte) ([]byte, error) {
	uri := ShapeURI(fp)
	e, err := s.Store.Get(ctx, uri)
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(e.Value) != fp {
		return nil, &Error{Code: Corrupt, URI: uri}
	}
	return e.Value, nil
}

// Put stores a shape's serialization and returns its fingerprint.
func (s Shapes) Put(ctx context.Context, serialization []byte) (fp [32]byte, err error) {
	fp = sha256.Sum256(serialization)
	_, err = s.Store.Put(ctx, ShapeURI(fp), serialization, PutOptions{})
	return fp, err
}
