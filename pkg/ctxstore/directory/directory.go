// Package directory is the context store in a folder, shared by all processes of a user:
//
//	shapes/HEX      one serialization per fingerprint, immutable, checked when it is read
//	sessions/HEX    one session each, under SHA-256 of its URI, with a header line that names it
//	contexts/HEX    everything else, likewise
//	holds/HEX       empty; locked by the holder of the entry with that name
//	lock            locked while something is written; contains the last revision given, the space
//	                taken, and the writes until that is counted again
//
// Files are written under another name and renamed, with mode 0600. So a reader needs no lock and
// sees the old value or the new one, also after a crash. A copy of the folder is a store as well.
package directory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
)

// Config of a store. The zero value works.
type Config struct {
	// ReadOnly opens a folder that must exist, and writes nothing in it; Put, Commit and Delete
	// fail with [ctxstore.Permission].
	ReadOnly bool
	// MaxBytes is the space for all files together, in bytes; 0 means [ctxstore.DefaultMaxBytes].
	// Beyond it the least recently used shapes are dropped; when there are none left, Put fails
	// with [ctxstore.Full]. The space is known from what was written, and counted again only now
	// and then.
	MaxBytes int64
	// Clock is the clock for times to live and polling; nil means the machine's.
	Clock clock.Clock
	// Poll is the interval at which a watch reads the folder; 0 means a second.
	Poll time.Duration
}

type inFolder = engine.Store

// Store implements [ctxstore.Store]. Its watches read the folder every Config.Poll.
type Store struct {
	*inFolder
	storage *folderStorage
}

var (
	_ ctxstore.Store  = (*Store)(nil)
	_ ctxstore.Holder = (*Store)(nil)
)

// Open opens the store in dir, and makes the folder (mode 0700) if it is missing. Errors:
// [ctxstore.Invalid] if something other than a folder is there, [ctxstore.Permission] if it cannot
// be written, [ctxstore.NotFound] if it is missing and cfg.ReadOnly.
func Open(dir string, cfg Config) (*Store, error) {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = ctxstore.DefaultMaxBytes
	}
	if cfg.Clock == nil {
		cfg.Clock = clock.Real()
	}
	if cfg.Poll <= 0 {
		cfg.Poll = time.Second
	}
	if dir == "" {
		return nil, &ctxstore.Error{Code: ctxstore.Invalid, Err: errors.New("no folder named")}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fault("", dir, err)
	}
	m := &folderStorage{Access: engine.NewAccess(dir), dir: dir, cfg: cfg, writer: make(chan struct{}, 1)}
	if cfg.ReadOnly {
		m.Locked = engine.ForReading
	}
	if err := m.prepare(); err != nil {
		return nil, err
	}
	return &Store{engine.New(m.Access, m, engine.Config{Clock: cfg.Clock, Poll: cfg.Poll}), m}, nil
}

// folderStorage implements [engine.Storage].
type folderStorage struct {
	*engine.Access
	dir    string
	cfg    Config
	writer chan struct{} // one in this process; the lock file keeps the other processes out
}

// prepare finds out at opening, and not with the first message, what will not work.
func (s *folderStorage) prepare() error {
	info, err := os.Stat(s.dir)
	switch {
	case err == nil && !info.IsDir():
		return &ctxstore.Error{Code: ctxstore.Invalid, At: s.dir, Err: errors.New("not a folder"),
			Hint: "a store is a folder: name another path, or move the file away"}
	case err != nil && (s.cfg.ReadOnly || !errors.Is(err, os.ErrNotExist)):
		return fault("", s.dir, err)
	case s.cfg.ReadOnly:
		_, err := os.ReadDir(s.dir)
		return fault("", s.dir, err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fault("", s.dir, err)
	}
	f, err := s.tryLock()
	if errors.Is(err, errHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	return fault("", f.Name(), f.Close())
}

func (s *folderStorage) Get(uri string) (ctxstore.Entry, error) {
	if fp, shape := ctxstore.ParseShapeURI(uri); shape {
		value, err := s.readShape(uri, fp)
		return ctxstore.Entry{Value: value, Revision: 1}, err
	}
	h, value, err := s.read(uri)
	return ctxstore.Entry{Value: value, Revision: h.Revision, Expires: h.Expires}, err
}

func (s *folderStorage) Find(uri string) (ctxstore.Info, error) {
	if fp, shape := ctxstore.ParseShapeURI(uri); shape {
		_, err := os.Stat(s.shapePath(fp))
		if errors.Is(err, fs.ErrNotExist) {
			return ctxstore.Info{}, nil
		}
		return ctxstore.Info{URI: uri, Revision: 1}, fault(uri, s.shapePath(fp), err)
	}
	h, err := readHeader(s.entryPath(uri))
	if errors.Is(err, ctxstore.NotFound) {
		return ctxstore.Info{}, nil
	}
	return h.info(), err
}

// Close implements [engine.Storage]. There is nothing open.
func (s *folderStorage) Close() error { return nil }
