// Package recording is --record: what goes over the connections of a command, in a file.
package recording

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/recordings"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// RecordOptions are the flags of a recording.
type RecordOptions struct {
	Name  string
	Keys  bool // those of TLS are recorded, too
	size  flags.Size
	age   time.Duration
	files int
}

// Flags declares --record, which has this help, and how large its files get.
func (o *RecordOptions) Flags(f *pflag.FlagSet, usage string) {
	f.StringVar(&o.Name, "record", "", usage)
	f.Var(&o.size, "record-size", "size from which on the recording goes on in another file; each can be decoded alone")
	f.DurationVar(&o.age, "record-age", 0, "age of a file from which on the recording goes on in another")
	f.BoolVar(&o.Keys, "record-keys", false, "write the keys of connections in TLS into the recording, too: they "+
		"decrypt what others capture of them")
	f.IntVar(&o.files, "record-files", 0, "how many complete files to keep, the latest; 0: all")
}

// minRecordSize keeps files longer than what they repeat of a few quiet streams.
const minRecordSize = 64 << 10

// Check returns why the flags are invalid; nil if they are valid.
func (o *RecordOptions) Check() error {
	switch {
	case o.Name == "" && (o.size > 0 || o.age != 0 || o.files != 0 || o.Keys):
		return exit.Usagef("", "--record-size, --record-age, --record-files and --record-keys are for --record")
	case o.size > 0 && o.size < minRecordSize:
		return exit.Usagef("", "--record-size is at least 64KiB")
	case o.age < 0 || o.files < 0:
		return exit.Usagef("", "--record-age and --record-files are 0 or more")
	case o.files > 0 && o.size == 0 && o.age == 0:
		return exit.Usagef("", "--record-files without --record-size or --record-age: there is one file")
	}
	return nil
}

// TrafficRecording is what --record asks for, and who listens; the zero value records nothing.
type TrafficRecording struct {
	name string
	file *recordings.FileSet
	tap  *pcapng.Tap // nil: nobody listens
}

// Tapped has connections recorded for those who listen, too; tap may be nil.
func (r *TrafficRecording) Tapped(tap *pcapng.Tap) { r.tap = tap }

// Open begins the recording. store has the shapes that its files define.
func (o *RecordOptions) Open(store ctxstore.Store, log *slog.Logger) (*TrafficRecording, error) {
	if err := o.Check(); err != nil || o.Name == "" {
		return &TrafficRecording{}, err
	}
	file, err := recordings.Open(recordings.Config{
		Name: o.Name, Size: int64(o.size), Age: o.age, Files: o.files, Store: store, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return &TrafficRecording{name: o.Name, file: file}, nil
}

// Dialed and accepted wrap a connection; nil if nothing is recorded.
func (r *TrafficRecording) Dialed() func(net.Conn) net.Conn {
	if r.file == nil && r.tap == nil {
		return nil
	}
	return r.Dial
}

// Dial records a connection that was opened here, if anything is recorded.
func (r *TrafficRecording) Dial(c net.Conn) net.Conn {
	if r.file != nil {
		c = r.file.Conn(c)
	}
	if r.tap != nil {
		c = r.tap.Conn(c)
	}
	return c
}

// Over returns a dial function whose connections are recorded.
func (r *TrafficRecording) Over(open pcapng.DialFunc) pcapng.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := open(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return r.Dial(c), nil
	}
}

// Accepted records connections that were accepted; nil: nothing is recorded.
func (r *TrafficRecording) Accepted() func(net.Conn) net.Conn {
	if r.file == nil && r.tap == nil {
		return nil
	}
	return func(c net.Conn) net.Conn {
		if r.file != nil {
			c = r.file.Accepted(c)
		}
		if r.tap != nil {
			c = r.tap.Accepted(c)
		}
		return c
	}
}

// Facts notes what was agreed on a session next to its hello, or after it on a connection that was
// upgraded.
func (r *TrafficRecording) Facts(f negotiate.Facts, c net.Conn) {
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

// Secrets takes the keys of connections in TLS; nil: nothing is recorded.
func (r *TrafficRecording) Secrets() io.Writer {
	if r.file == nil {
		return nil
	}
	return r.file.Secrets()
}

// Close ends the recording. Its error says that it is not complete.
func (r *TrafficRecording) Close() error {
	if r.file == nil {
		return nil
	}
	if err := r.file.Close(); err != nil {
		return exit.Withf(exit.Partial, "", "the recording %s is not complete: %w", r.name, err)
	}
	return nil
}
