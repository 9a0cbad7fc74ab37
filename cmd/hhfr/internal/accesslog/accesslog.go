// Package accesslog is --access-log: a line for each call that a server has answered.
package accesslog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/meter"
)

const (
	// accessLogHeld is how much of an access log is held until it is written, in bytes, and
	// accessLogTime how long.
	accessLogHeld = 64 << 10
	accessLogTime = time.Second
	// A reply may leave after its call is over. Its line waits for that, but no longer than
	// accessLogLate, and no more than maxLate lines do.
	accessLogLate = 10 * time.Second
	maxLate       = 4096
)

// AccessLogOptions are the flags of an access log.
type AccessLogOptions struct{ File, format string }

// Flags declares them.
func (o *AccessLogOptions) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.File, "access-log", "",
		"write a line for each call to this file, which is appended to and opened again on SIGHUP; - is stdout")
	f.StringVar(&o.format, "access-log-format", "text", "form of these lines: text, or json with one object per line")
}

// Check returns why the flags are invalid; nil if they are valid.
func (o *AccessLogOptions) Check() error {
	if o.format != "text" && o.format != "json" {
		return exit.Usagef("", "--access-log-format is text or json, not %s", o.format)
	}
	return nil
}

// AccessLog writes a line for each call. A nil one writes none.
type AccessLog struct {
	name string // empty: stdout
	log  *slog.Logger

	mu      sync.Mutex
	to      io.Writer
	file    *os.File // nil: stdout
	held    bytes.Buffer
	handler slog.Handler    // writes to held
	late    []*meter.Record // whose replies have not left
	failed  bool            // the last write did
	stop    func()
}

// Open opens the log, and has m tell it of each call.
func (o *AccessLogOptions) Open(g *command.Global, m *meter.Meter, log *slog.Logger) (*AccessLog, error) {
	if err := o.Check(); err != nil || o.File == "" {
		return nil, err
	}
	a := &AccessLog{log: log, to: g.Out}
	if o.File != "-" {
		a.name = o.File
		if err := a.openFile(); err != nil {
			return nil, fmt.Errorf("--access-log: %w", err)
		}
	}
	opts := &slog.HandlerOptions{ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
		if attr.Key == slog.LevelKey || attr.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return attr
	}}
	a.handler = slog.NewTextHandler(&a.held, opts)
	if o.format == "json" {
		a.handler = slog.NewJSONHandler(&a.held, opts)
	}
	over := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(accessLogTime)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				a.flush(false)
			case <-over:
				return
			}
		}
	})
	a.stop = func() { close(over); ticking.Wait() }
	m.Each(a.add)
	return a, nil
}

// openFile opens the file, of the present name.
func (a *AccessLog) openFile() error {
	f, err := os.OpenFile(a.name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		a.to, a.file = f, f
	}
	return err
}

// add writes a line about a call that is over.
func (a *AccessLog) add(r *meter.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !r.IsSettled() && len(a.late) < maxLate {
		a.late = append(a.late, r)
		return
	}
	a.lineLocked(r)
	if a.held.Len() >= accessLogHeld {
		a.writeLocked()
	}
}

func (a *AccessLog) lineLocked(r *meter.Record) {
	t := r.Told()
	way, fault := "stream", t.Fault
	if t.Reason != "" {
		way = "plain"
	}
	if t.IsFault && fault == "" {
		fault = "-"
	}
	line := slog.NewRecord(t.Began.UTC(), slog.LevelInfo, "", 0)
	line.AddAttrs(slog.String("client", t.Client), slog.String("role", t.Role),
		slog.String("upstream", printing.Printable(t.Upstream)), slog.String("operation",
			printing.Printable(t.Operation)),
		slog.String("way", way), slog.Int("status", t.Status), slog.Bool("ok", t.OK))
	if t.IsFault {
		line.AddAttrs(slog.String("fault", printing.Printable(fault)))
	}
	line.AddAttrs(slog.Int64("request_bytes", t.Request), slog.Int64("reply_bytes", t.Reply))
	if t.Reason != "" {
		line.AddAttrs(slog.String("reason", t.Reason))
	} else {
		line.AddAttrs(slog.Int64("sent_bytes", t.Sent), slog.Int64("received_bytes", t.Received))
	}
	line.AddAttrs(slog.Float64("seconds", t.Took.Seconds()))
	if t.Added > 0 {
		line.AddAttrs(slog.Float64("added_seconds", t.Added.Seconds()))
	}
	_ = a.handler.Handle(context.Background(), line) // it writes to memory
}

// flush writes what is held, and what is late no longer; all: it waits for nothing.
func (a *AccessLog) flush(all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.late = slices.DeleteFunc(a.late, func(r *meter.Record) bool {
		ended := r.Told()
		writes := all || r.IsSettled() || now.Sub(ended.Began.Add(ended.Took)) > accessLogLate
		if writes {
			a.lineLocked(r)
		}
		return writes
	})
	a.writeLocked()
}

// writeLocked writes what is held. What cannot be written is lost, which is told once until it
// works again; the call goes on.
func (a *AccessLog) writeLocked() {
	if a.held.Len() == 0 {
		return
	}
	defer a.held.Reset()
	text := a.held.Bytes()
	if a.failed { // in the middle of a line, perhaps
		text = append([]byte{'\n'}, text...)
	}
	_, err := a.to.Write(text)
	switch {
	case err != nil && !a.failed:
		a.log.Warn("lines of the access log are lost", "err", err)
	case err == nil && a.failed:
		a.log.Warn("the access log is written again")
	}
	a.failed = err != nil
}

// Reloads returns what SIGHUP calls: the file is opened anew, since it may have been renamed, and
// then load is called, which may be nil.
func (a *AccessLog) Reloads(load func()) func() {
	if a == nil || a.file == nil {
		return load
	}
	return func() {
		a.flush(false)
		a.mu.Lock()
		before := a.file
		if err := a.openFile(); err != nil {
			a.log.Warn("the access log stays where it was", "err", err)
		} else {
			_ = before.Close()
		}
		a.mu.Unlock()
		if load != nil {
			load()
		}
	}
}

// Close writes the last lines.
func (a *AccessLog) Close() error {
	if a == nil {
		return nil
	}
	a.stop()
	a.flush(true)
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}
