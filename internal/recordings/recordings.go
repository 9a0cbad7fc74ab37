// Package recordings keeps a recording in several files, each of which can be decoded without the
// others: the current one has the recording's name, the complete ones have the time of their end in
// theirs.
package recordings

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Config says how a recording is kept.
type Config struct {
	// Name is the file's name. Required.
	Name string
	// Size and Age are those of a file from which on the recording goes on in another, in bytes and
	// since its first packet; 0: any. If both are 0 there is one file.
	Size int64
	Age  time.Duration
	// Files is how many complete files are kept beside the current one, the latest; 0: all.
	Files int
	// Store has the shapes that files define. Required unless there is one file.
	Store ctxstore.Store
	// Log receives what cannot be written; nil: nothing is logged.
	Log *slog.Logger
	// Now is the time; nil means time.Now.
	Now func() time.Time

	rename func(from, to string) error // for tests; nil: os.Rename
}

// FileSet is an open recording, in one file or several.
type FileSet struct {
	*pcapng.Recorder
	cfg  Config
	file *renamedFile // the current one
	next *renamedFile // opened, but not yet current
	told bool         // that it cannot be written
}

// renamedFile is a file that changes its name while it is written. It is closed meanwhile: Windows
// renames no open file.
type renamedFile struct{ *os.File }

func (f *renamedFile) to(name string, rename func(from, to string) error) error {
	from := f.Name()
	closed, renamed := f.Close(), rename(from, name)
	if renamed != nil {
		name = from
	}
	again, err := os.OpenFile(name, os.O_RDWR, 0)
	if err == nil {
		f.File = again
		_, err = again.Seek(0, io.SeekEnd)
	}
	return errors.Join(closed, renamed, err)
}

// errRegular is what several files need.
var errRegular = errors.New("a recording in several files needs a file, not a pipe or device")

// Open begins a recording. A file of that name that has something in it is put aside: it gets the
// name of a complete one, by the time at which it was last written. The recording has mode 0600. A
// pipe or device, and a file that is this process's stdout or stderr, is written as it is; several
// files need a regular one.
func Open(cfg Config) (*FileSet, error) {
	cfg.Now, cfg.Log = orNow(cfg.Now), cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.rename == nil {
		cfg.rename = os.Rename
	}
	f := &FileSet{cfg: cfg}
	several := cfg.Size > 0 || cfg.Age > 0
	special, err := isSpecial(cfg.Name)
	switch {
	case err != nil:
		return nil, err
	case special && several:
		return nil, fmt.Errorf("%s: %w", cfg.Name, errRegular)
	case special:
		f.file, err = openSpecial(cfg.Name)
	default:
		if err := f.putAside(); err != nil {
			return nil, err
		}
		f.file, err = create(f.cfg.Name)
	}
	if err != nil {
		return nil, err
	}
	f.Recorder = pcapng.NewRecorder(f.file, cfg.Now)
	f.OnFailure = f.failed
	if several {
		f.Rotate(f.file, pcapng.Rotation{
			Size: cfg.Size, Age: cfg.Age, Join: func() pcapng.EntryFinder { return &joiner{} },
			Open: f.open, Definitions: definitions{cfg.Store}.of, Opened: f.opened,
		})
	}
	return f, nil
}

func orNow(now func() time.Time) func() time.Time {
	if now == nil {
		return time.Now
	}
	return now
}

// isSpecial reports whether a name is that of something that must be neither renamed nor changed in
// mode: what is no regular file, and one that this process writes to already, as /dev/stdout may
// be.
func isSpecial(name string) (bool, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return true, nil
	}
	for _, own := range []*os.File{os.Stdout, os.Stderr} {
		if open, err := own.Stat(); err == nil && os.SameFile(info, open) {
			return true, nil
		}
	}
	return false, nil
}

// openSpecial opens what exists, to be written after what it has.
func openSpecial(name string) (*renamedFile, error) {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	return &renamedFile{file}, err
}

// create makes an empty file that nobody else can read, even if there was an empty one that others
// could.
func create(name string) (*renamedFile, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&^0o600 != 0 {
		err = file.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &renamedFile{file}, nil
}

// putAside makes the file of an earlier run a complete one. A link stays one: what it leads to is
// put aside, and the recording has its place.
func (f *FileSet) putAside() error {
	info, err := os.Stat(f.cfg.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if f.cfg.Name, err = filepath.EvalSymlinks(f.cfg.Name); err != nil || info.Size() == 0 {
		return err
	}
	if err := f.complete(info.ModTime()); err != nil {
		return fmt.Errorf("the file that is there cannot be put aside; move it, or name another one: %w", err)
	}
	return f.prune()
}

// failed reports, once, that the recording cannot be written. Connections continue.
func (f *FileSet) failed(err error) {
	if !f.told {
		f.cfg.Log.Warn("the recording cannot be written: calls go on unrecorded", "file", f.cfg.Name, "err", err)
	}
	f.told = true
}

// unfinished is the suffix of a file that does not have its beginning yet.
const unfinished = ".new"

func (f *FileSet) open() (pcapng.Medium, error) {
	next, err := create(f.cfg.Name + unfinished)
	if err != nil {
		return nil, err
	}
	if f.next != nil {
		_ = f.next.Close() // it never had its beginning
	}
	f.next = next
	return next, nil
}

// opened makes the next file the current one. At any time all files can be read. Once more it is
// tried after a failure, with another next file.
func (f *FileSet) opened() error {
	err := f.file.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	if err = errors.Join(err, f.complete(f.cfg.Now())); err != nil {
		return err
	}
	if err := f.next.to(f.cfg.Name, f.cfg.rename); err != nil {
		return err
	}
	f.file, f.next = f.next, nil
	if err := f.prune(); err != nil {
		f.cfg.Log.Warn("old files of the recording stay", "file", f.cfg.Name, "err", err)
	}
	if f.told {
		f.cfg.Log.Warn("the recording goes on", "file", f.cfg.Name)
		f.told = false
	}
	return nil
}

// stamp is the form of the time in a name; it sorts by time.
const stamp = "20060102T150405.000Z"

var stampForm = regexp.MustCompile(`^\d{8}T\d{6}\.\d{3}Z(-\d+)?$`)

// complete gives the current file, if there is one, the name of a complete one.
func (f *FileSet) complete(end time.Time) error {
	if _, err := os.Lstat(f.cfg.Name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	stem, ext := f.stem()
	name := stem + "-" + end.UTC().Format(stamp)
	for n := 1; ; n++ {
		to := name + ext
		if n > 1 {
			to = fmt.Sprintf("%s-%d%s", name, n, ext)
		}
		switch _, err := os.Lstat(to); {
		case errors.Is(err, fs.ErrNotExist):
			return f.cfg.rename(f.cfg.Name, to)
		case err != nil:
			return err
		}
	}
}

func (f *FileSet) stem() (stem, ext string) {
	ext = filepath.Ext(f.cfg.Name)
	return strings.TrimSuffix(f.cfg.Name, ext), ext
}

// prune removes the oldest of too many complete files.
func (f *FileSet) prune() error {
	if f.cfg.Files == 0 {
		return nil
	}
	stem, ext := f.stem()
	entries, err := os.ReadDir(filepath.Dir(f.cfg.Name))
	if err != nil {
		return err
	}
	var complete []string
	for _, e := range entries {
		middle, ok := strings.CutPrefix(e.Name(), filepath.Base(stem)+"-")
		middle, is := strings.CutSuffix(middle, ext)
		if ok && is && e.Type().IsRegular() && stampForm.MatchString(middle) {
			complete = append(complete, filepath.Join(filepath.Dir(f.cfg.Name), e.Name()))
		}
	}
	slices.Sort(complete)
	for len(complete) > f.cfg.Files {
		err = errors.Join(err, os.Remove(complete[0]))
		complete = complete[1:]
	}
	return err
}

// Close ends the recording. Its error says that something is missing in it.
func (f *FileSet) Close() error {
	err := f.Recorder.Close()
	if f.next != nil {
		_ = f.next.Close()
	}
	if closed := f.file.Close(); err == nil && !errors.Is(closed, os.ErrClosed) {
		err = closed
	}
	return err
}
