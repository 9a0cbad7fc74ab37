package directory

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// fault translates an error of the file system; nil stays nil.
func fault(uri, path string, err error) error {
	if err == nil {
		return nil
	}
	e := &ctxstore.Error{Code: ctxstore.Unavailable, URI: uri, At: path, Err: cause(err)}
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(fs.ErrNotExist):
		e.Code = ctxstore.NotFound
	case is(syscall.ENOTDIR):
		e.Code, e.Hint = ctxstore.Invalid,
			"a file stands where a folder should be: name another path, or move the file away"
	case is(fs.ErrPermission), is(syscall.EROFS):
		e.Code, e.Hint = ctxstore.Permission, "check owner and mode of the folder, or name another"
	case slices.ContainsFunc(fullErrors, is):
		e.Code, e.Hint = ctxstore.Full, "free space there, or name another folder"
	}
	return e
}

func corrupt(uri, path string, err error) error {
	return &ctxstore.Error{
		Code: ctxstore.Corrupt,
		URI:  uri,
		At:   path,
		Err:  err,
		Hint: "delete the file, or restore it from a copy",
	}
}

// cause removes what package os says about path and operation: an Error says it itself.
func cause(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}
