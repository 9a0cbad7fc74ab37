package bolt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
)

// lockWait is how long to wait for a lock that another process holds. It is enough for a process
// that is just ending; waiting for a running one is of no use.
const lockWait = time.Second

// process holds the one handle per file of this process. Two handles would lock each other out. On
// Android, where the lock belongs to the process and not to the handle, they would not, and would
// destroy the file.
var process = fileRegistry{files: map[*sharedFile]struct{}{}}

type fileRegistry struct {
	mu    sync.Mutex
	files map[*sharedFile]struct{}
}

// sharedFile is an open file, shared by the stores on it.
type sharedFile struct {
	path     string
	readOnly bool
	info     os.FileInfo
	db       *bbolt.DB
	unlock   func()
	users    int // guarded by registry.mu

	holds   ctxstore.Holds
	changes engine.Changes

	mu      sync.Mutex
	use     uint64            // counts uses of shapes, to find the least recently used
	touched map[string]uint64 // uses that are not in the file yet
}

// open returns the file's handle to one more user.
func (r *fileRegistry) open(path string, readOnly bool) (*sharedFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fault("", path, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, &ctxstore.Error{
			Code: ctxstore.Invalid,
			At:   path,
			Err:  errors.New("a folder"),
			Hint: "a store in a folder is named without bolt:",
		}
	case err == nil:
		for f := range r.files {
			if !os.SameFile(f.info, info) {
				continue
			}
			if f.readOnly && !readOnly {
				return nil, &ctxstore.Error{
					Code: ctxstore.Permission,
					At:   path,
					Err:  errors.New("this process has it open for reading only"),
				}
			}
			f.users++
			return f, nil
		}
	case readOnly || !errors.Is(err, fs.ErrNotExist):
		return nil, fault("", path, err)
	}
	f, err := openFile(path, readOnly)
	if err != nil {
		return nil, err
	}
	r.files[f] = struct{}{}
	return f, nil
}

// close removes one user, and closes the file after the last.
func (r *fileRegistry) close(f *sharedFile) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.users--; f.users > 0 {
		return nil
	}
	delete(r.files, f)
	return f.close()
}

// errLocked: another process has the lock.
var errLocked = errors.New("another process holds it")

func openFile(path string, readOnly bool) (_ *sharedFile, err error) {
	f := &sharedFile{path: path, readOnly: readOnly, users: 1, unlock: func() {},
		touched: map[string]uint64{}}
	if !readOnly {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fault("", path, err)
		}
	}
	if runtime.GOOS == "android" {
		if f.unlock, err = lockBeside(path, readOnly, lockWait); err != nil {
			return nil, fault("", path, err)
		}
	}
	err = guard("", path, func() (err error) {
		if err := verify(path, os.OpenFile); err != nil {
			return err
		}
		f.db, err = bbolt.Open(path, 0o600,
			&bbolt.Options{Timeout: lockWait, ReadOnly: readOnly, FreelistType: bbolt.FreelistMapType})
		return err
	})
	if err != nil {
		f.unlock()
		return nil, err
	}
	if err := guard("", path, f.prepare); err != nil {
		_ = f.db.Close()
		f.unlock()
		return nil, err
	}
	return f, nil
}

// prepare makes the buckets of a new file, and refuses a file of another program.
func (f *sharedFile) prepare() (err error) {
	if f.info, err = os.Stat(f.path); err != nil {
		return err
	}
	check := func(t *bbolt.Tx) error {
		meta := t.Bucket(metaBucket)
		if meta == nil {
			return errors.New("no context store of hhfr")
		}
		if v := meta.Get(formatKey); len(v) != 1 || v[0] != format {
			return fmt.Errorf("format %x is not known", v)
		}
		f.use = number(meta, useKey)
		return nil
	}
	if f.readOnly {
		return f.db.View(check)
	}
	return f.db.Update(func(t *bbolt.Tx) error {
		if first, _ := t.Cursor().First(); first != nil {
			return check(t)
		}
		for _, name := range [][]byte{metaBucket, entriesBucket, usesBucket} {
			if _, err := t.CreateBucket(name); err != nil {
				return err
			}
		}
		return t.Bucket(metaBucket).Put(formatKey, []byte{format})
	})
}

func (f *sharedFile) close() error {
	var err error
	if !f.readOnly && len(f.touched) > 0 {
		err = f.transaction("", true, Config{}, func(*tx) error { return nil })
	}
	err = errors.Join(err, guard("", f.path, f.db.Close))
	f.unlock()
	return err
}

// transaction runs do on a consistent state of the file. With write, the changes of do are
// committed if it returns no error.
func (f *sharedFile) transaction(uri string, write bool, cfg Config, do func(*tx) error) error {
	err := guard(uri, f.path, func() error {
		run := f.db.View
		if write {
			run = f.db.Update
		}
		return run(func(t *bbolt.Tx) error {
			own := &tx{
				file:    f,
				cfg:     cfg,
				meta:    t.Bucket(metaBucket),
				entries: t.Bucket(entriesBucket),
				uses:    t.Bucket(usesBucket),
			}
			if own.meta == nil || own.entries == nil || own.uses == nil {
				return corrupt(uri, f.path, errors.New("a bucket is missing"))
			}
			if err := do(own); err != nil || !write {
				return err
			}
			return own.flush()
		})
	})
	if err == nil && write {
		f.changes.Tell()
	}
	return err
}

// guard turns errors of bbolt, and panics over a damaged page, into an error of ours. A damaged
// page may point to memory beyond the mapped file: that would end the process if it were not a
// panic, too.
func guard(uri, path string, do func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = corrupt(uri, path, fmt.Errorf("%v", p))
		}
	}()
	return fault(uri, path, do())
}

// fault translates an error; nil stays nil, and errors of ours and of contexts stay as they are.
func fault(uri, path string, err error) error {
	var own *ctxstore.Error
	if err == nil || errors.As(err, &own) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &ctxstore.Error{Code: ctxstore.Unavailable, URI: uri, At: path, Err: err}
	var p *fs.PathError
	if errors.As(err, &p) {
		e.Err = p.Err
	}
	switch {
	case errors.Is(err, bolterrors.ErrTimeout), errors.Is(err, errLocked):
		e.Err, e.Hint = errLocked, "end the other process, or name another file; a store in a folder can be shared"
	case errors.Is(err, fs.ErrNotExist):
		e.Code = ctxstore.NotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Code, e.Hint = ctxstore.Permission, "check owner and mode of file and folder, or name another"
	case isFull(err):
		e.Code, e.Hint = ctxstore.Full, "free space there, or name another file"
	case uri == "" && !errors.As(err, new(syscall.Errno)):
		// What remains of the errors of opening: bbolt found something other than its pages.
		return corrupt(uri, path, err)
	}
	return e
}

func corrupt(uri, path string, err error) error {
	return &ctxstore.Error{
		Code: ctxstore.Corrupt,
		URI:  uri,
		At:   path,
		Err:  err,
		Hint: "move the file away, or restore it from a copy",
	}
}

// touch records that a shape was used. The next write stores that in the file.
func (f *sharedFile) touch(uri string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.use++
	if !f.readOnly {
		f.touched[uri] = f.use
	}
}

// takeTouched returns what was recorded, and forgets it.
func (f *sharedFile) takeTouched() (touched map[string]uint64, use uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	touched = f.touched
	f.touched = map[string]uint64{}
	return touched, f.use
}

func number(b *bbolt.Bucket, key []byte) uint64 {
	if v := b.Get(key); len(v) == 8 {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}
