package engines

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Check returns what is wrong with the name of a store, as far as that shows without opening it:
// an engine that hhfr does not have, a URL that is none, a folder where a file is to be, or the
// reverse. The store need not exist. Errors: [ctxstore.Invalid].
func Check(spec string) error {
	if err := checkEngine(spec); err != nil {
		return err
	}
	e, rest := engineOf(spec)
	wrong := func(err error) error { return &ctxstore.Error{Code: ctxstore.Invalid, At: spec, Err: err} }
	switch {
	case e.prefix == "mem:":
		_, err := openMemory(context.Background(), rest, Options{})
		return err
	case e.paths == nil:
		if u, err := url.Parse(spec); err != nil || u.Host == "" {
			return wrong(errors.New("it is no URL of a store"))
		}
		return nil
	case rest == "":
		return wrong(errors.New("it names no file or folder"))
	}
	path, isDir := rest, e.prefix == ""
	info, err := os.Stat(path)
	for errors.Is(err, os.ErrNotExist) && path != filepath.Dir(path) {
		path, isDir = filepath.Dir(path), true // in which it would be made
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return wrong(err)
	case info.IsDir() == isDir:
		return nil
	case isDir:
		return wrong(fmt.Errorf("%s is no folder", path))
	}
	return wrong(fmt.Errorf("%s is a folder", path))
}
