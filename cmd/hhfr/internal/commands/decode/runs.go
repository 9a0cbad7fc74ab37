package decode

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/hhfr/hhfr/internal/capture"
)

// runFiles writes the bytes of streams, one file per contiguous run.
type runFiles struct {
	dir  string
	runs map[[2]int]*runFile // the last of each, by stream and direction
	open int
}

// runFile is a file that may be open.
type runFile struct {
	name string
	file *os.File
	end  int64 // in the direction
}

// mostRunFiles bounds the files that are open at once.
const mostRunFiles = 64

func (r *runFiles) write(stream, direction int, offset int64, b []byte) error {
	way, flags := [2]int{stream, direction}, os.O_APPEND
	f := r.runs[way]
	if f == nil || f.end != offset {
		if f != nil && f.file != nil {
			r.open--
			if err := f.file.Close(); err != nil {
				return err
			}
		}
		f, flags = &runFile{name: filepath.Join(r.dir, capture.RunName(stream, direction, offset))},
			os.O_TRUNC|os.O_CREATE
		if r.runs == nil {
			r.runs = map[[2]int]*runFile{}
		}
		r.runs[way] = f
	}
	if f.file == nil {
		if err := r.reopen(f, flags); err != nil {
			return err
		}
	}
	f.end = offset + int64(len(b))
	_, err := f.file.Write(b)
	return err
}

func (r *runFiles) reopen(f *runFile, flags int) (err error) {
	if r.open >= mostRunFiles {
		if err := r.close(); err != nil {
			return err
		}
	}
	r.open++
	f.file, err = os.OpenFile(f.name, os.O_WRONLY|flags, 0o600)
	return err
}

func (r *runFiles) close() (err error) {
	for _, f := range r.runs {
		if f.file != nil {
			err = errors.Join(err, f.file.Close())
			f.file = nil
		}
	}
	r.open = 0
	return err
}
