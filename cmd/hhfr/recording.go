package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/recordings"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// recordOptions are the flags of a recording.
type recordOptions struct {
	name  string
	size  size
	age   time.Duration
	files int
}

func (o *recordOptions) flags(f *pflag.FlagSet, usage string) {
	f.StringVar(&o.name, "record", "", usage)
	f.Var(&o.size, "record-size", "size from which on the recording goes on in another file; each can be decoded alone")
	f.DurationVar(&o.age, "record-age", 0, "age of a file from which on the recording goes on in another")
	f.IntVar(&o.files, "record-files", 0, "how many complete files to keep, the latest; 0: all")
}

// minRecordSize keeps files longer than what they repeat of a few quiet streams.
const minRecordSize = 64 << 10

func (o *recordOptions) check() error {
	switch {
	case o.name == "" && (o.size > 0 || o.age != 0 || o.files != 0):
		return usage(errors.New("--record-size, --record-age and --record-files are for --record"), "")
	case o.size > 0 && o.size < minRecordSize:
		return usage(errors.New("--record-size is at least 64KiB"), "")
	case o.age < 0 || o.files < 0:
		return usage(errors.New("--record-age and --record-files are 0 or more"), "")
	case o.files > 0 && o.size == 0 && o.age == 0:
		return usage(errors.New("--record-files without --record-size or --record-age: there is one file"), "")
	}
	return nil
}

// recording is what --record asks for; the zero value records nothing.
type recording struct {
	name string
	file *recordings.FileSet
}

// open begins the recording. store has the shapes that its files define.
func (o *recordOptions) open(store ctxstore.Store, log *slog.Logger) (*recording, error) {
	if err := o.check(); err != nil || o.name == "" {
		return &recording{}, err
	}
	file, err := recordings.Open(recordings.Config{
		Name: o.name, Size: int64(o.size), Age: o.age, Files: o.files, Store: store, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return &recording{o.name, file}, nil
}

// dialed and accepted wrap a connection; nil if nothing is recorded.
func (r *recording) dialed() func(net.Conn) net.Conn {
	if r.file == nil {
		return nil
	}
	return r.dial
}

// dial records a connection that was opened here, if anything is recorded.
func (r *recording) dial(c net.Conn) net.Conn {
	if r.file == nil {
		return c
	}
	return r.file.Conn(c)
}

// over returns a dial function whose connections are recorded.
func (r *recording) over(open pcapng.DialFunc) pcapng.DialFunc {
	if r.file == nil {
		return open
	}
	return r.file.DialContext(open)
}

func (r *recording) accepted() func(net.Conn) net.Conn {
	if r.file == nil {
		return nil
	}
	return func(c net.Conn) net.Conn { return r.file.Accepted(c) }
}

// facts notes what was agreed on a session next to its hello, or after it on a connection that was
// upgraded.
func (r *recording) facts(f negotiate.Facts, c net.Conn) {
	conn, ok := netconn.As[*pcapng.RecordedConn](c)
	if !ok {
		return
	}
	for range 2 {
		b, err := json.Marshal(f)
		if err != nil || conn.Comment(string(b)) == nil {
			return
		}
		f.Headers = nil // a comment that is too long is left out
	}
}

// close ends the recording. Its error says that it is not complete.
func (r *recording) close() error {
	if r.file == nil {
		return nil
	}
	if err := r.file.Close(); err != nil {
		return failure(exitPartial, fmt.Errorf("the recording %s is not complete: %w", r.name, err), "")
	}
	return nil
}
