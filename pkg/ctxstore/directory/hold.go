package directory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Hold implements [ctxstore.Holder] by a lock of the system on a file of its own, which ends with
// the process. The file stays.
func (s *Store) Hold(uri string) (release func(), err error) {
	if err := s.Writable(context.Background(), uri); err != nil {
		return nil, err
	}
	path := s.storage.holdPath(uri)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fault(uri, path, err)
	}
	f, err := lockedFile(path)
	if errors.Is(err, errHeld) {
		return nil, &ctxstore.Error{Code: ctxstore.Held, URI: uri, At: s.At}
	}
	if err != nil {
		return nil, fault(uri, path, err)
	}
	return sync.OnceFunc(func() { _ = f.Close() }), nil
}
