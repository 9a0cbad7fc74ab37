package input

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
)

// WriteWhole writes a file that appears when it is complete; until then one of that name stays as
// it is, and it does so if writing fails. The file has the mode of the one that it replaces, or the
// mode perm, before umask. What is no regular file is written to directly; - is stdout.
func WriteWhole(g *command.Global, name string, perm fs.FileMode, write func(io.Writer) error) (err error) {
	if name == "-" {
		return write(g.Out)
	}
	info, err := os.Stat(name) // nil: there is none
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	to := name
	if info != nil {
		if err := writable(name); err != nil {
			return err
		}
		if to, err = filepath.EvalSymlinks(name); err != nil { // a link stays one
			return err
		}
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+"."+rand.Text()),
		os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			at.Path = name
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err = write(f); err == nil && info != nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), to)
}

// writable fails if a file may not be written; replacing it would only need the folder's consent.
func writable(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
