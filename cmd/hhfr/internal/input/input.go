// Package input reads the files that a command line names, and stdin.
package input

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// Open opens a file, or stdin for -; what describes its content. When ctx ends before the
// input does, reading fails with the cause, even if it waits for bytes that do not arrive.
func Open(ctx context.Context, g *command.Global, name, what string) (io.ReadCloser, error) {
	if name == "-" {
		return openStdin(ctx, g, what), nil
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, exit.Usagef("name a file in it, or - for stdin", "%s is a folder", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &inputFile{interruptible(ctx, bufio.NewReaderSize(f, 1<<16)), f}, nil
}

// openStdin is [Open] for stdin. On a terminal it says what it waits for.
func openStdin(ctx context.Context, g *command.Global, what string) io.ReadCloser {
	if terminal.Is(g.In) {
		g.Note("reading %s from the terminal; end with Ctrl-D", what)
	}
	return interruptible(ctx, g.In)
}

// Documents reads the messages of stdin, one XML document after another. No document at all is an
// error: a pipe that broke before anything arrived is no success.
func Documents(ctx context.Context, g *command.Global) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := 0
		for doc, err := range xmltext.Documents(openStdin(ctx, g, "a message"), MaxMessage) {
			if err != nil {
				yield(nil, fmt.Errorf("stdin: %w", err))
				return
			}
			if n++; !yield(bytes.Clone(doc), nil) {
				return
			}
		}
		if n == 0 {
			err := errors.New("stdin: no message in it")
			yield(nil, exit.With(exit.Malformed, err, "- takes XML documents, one after another"))
		}
	}
}

// Once rejects a second - among files: stdin is read to its end.
func Once(files []string) error {
	if i := slices.Index(files, "-"); i >= 0 && slices.Contains(files[i+1:], "-") {
		return exit.Usagef("name it once, or name files", "- can be read once only")
	}
	return nil
}

// inputFile is a file that is read through a pipe.
type inputFile struct {
	io.ReadCloser
	file *os.File
}

// Close closes pipe and file.
func (i *inputFile) Close() error {
	_ = i.ReadCloser.Close()
	return i.file.Close()
}

// ReadMessage reads a file as one message, of at most [MaxMessage] bytes. When ctx ends before the
// file does, it fails with the cause.
func ReadMessage(ctx context.Context, name string) ([]byte, error) {
	type result struct {
		body []byte
		err  error
	}
	came := make(chan result, 1)
	go func() {
		body, err := readShorter(name, MaxMessage)
		came <- result{body, err}
	}()
	select {
	case r := <-came:
		return r.body, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Whole is [ReadMessage], and for - all of stdin, whatever it is.
func Whole(ctx context.Context, g *command.Global, name string) ([]byte, error) {
	if name != "-" {
		return ReadMessage(ctx, name)
	}
	body, err := io.ReadAll(io.LimitReader(openStdin(ctx, g, "a message"), MaxMessage+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("stdin: %w", err)
	case len(body) > MaxMessage:
		return nil, TooLong("stdin", MaxMessage)
	}
	return body, nil
}

// readShorter reads a file of at most so many bytes.
func readShorter(name string, most int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var b bytes.Buffer
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		b.Grow(int(min(info.Size(), int64(most))) + bytes.MinRead)
	}
	switch n, err := b.ReadFrom(io.LimitReader(f, int64(most)+1)); {
	case err != nil:
		return nil, err
	case n > int64(most):
		return nil, TooLong(name, most)
	}
	return b.Bytes(), nil
}

// TooLong is the error for a message of more than so many bytes.
func TooLong(name string, most int) error {
	return fmt.Errorf("%s is longer than a message may be, %d bytes", name, most)
}

// ReadBeginning reads the first bytes of a file.
func ReadBeginning(name string, n int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, n))
}

// interruptible reads r until ctx ends. A goroutine that still reads r is abandoned; it ends with
// r, or with the process.
func interruptible(ctx context.Context, r io.Reader) io.ReadCloser {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = in.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer stop()
		_, err := io.Copy(in, r)
		_ = in.CloseWithError(err)
	}()
	return out
}

// endingWith reads r until its end or the end of ctx.
type endingWith struct {
	ctx context.Context
	r   io.Reader
}

func (e endingWith) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && e.ctx.Err() != nil {
		err = io.EOF
	}
	return n, err
}

// endingFile is a file that can be read again. At the end of ctx it ends where it was read up to,
// and there too when it is read again: what was read so far is still wanted.
type endingFile struct {
	ctx   context.Context
	file  *os.File
	at    int64
	ended bool
	end   int64 // if ended
}

func (e *endingFile) Read(p []byte) (int, error) {
	if !e.ended && e.ctx.Err() != nil {
		e.ended, e.end = true, e.at
	}
	if e.ended {
		if p = p[:max(0, min(int64(len(p)), e.end-e.at))]; len(p) == 0 {
			return 0, io.EOF
		}
	}
	n, err := e.file.Read(p)
	e.at += int64(n)
	return n, err
}

// Seek implements [io.Seeker].
func (e *endingFile) Seek(offset int64, whence int) (int64, error) {
	at, err := e.file.Seek(offset, whence)
	if err == nil {
		e.at = at
	}
	return at, err
}

// Sources are the inputs of a command, to be read concurrently.
type Sources struct {
	List    []capture.Input // regular files can be read again
	closers []io.Closer
}

// OpenSources opens files, or stdin for -; what describes their content. again: all must be
// readable twice, so that what comes through a pipe is first copied to a file.
func OpenSources(ctx context.Context, g *command.Global, names []string, what string, again bool) (s *Sources,
	err error) {
	if err := Once(names); err != nil {
		return nil, err
	}
	s = &Sources{}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	for _, name := range names {
		if info, err := os.Stat(name); name != "-" && err == nil && info.Mode().IsRegular() {
			f, err := os.Open(name)
			if err != nil {
				return s, err
			}
			s.List = append(s.List, capture.Input{Name: name, Octets: &endingFile{ctx: ctx, file: f}})
			s.closers = append(s.closers, f)
			continue
		}
		in, err := Open(ctx, g, name, what)
		if err != nil {
			return s, err
		}
		s.closers = append(s.closers, in)
		if !again {
			s.List = append(s.List, capture.Input{Name: name, Octets: endingWith{ctx, in}})
			continue
		}
		f, err := copied(endingWith{ctx, in})
		if err != nil {
			return s, err
		}
		s.List, s.closers = append(s.List, capture.Input{Name: name, Octets: f}), append(s.closers, f)
	}
	return s, nil
}

// Of is an input that is open already, and is read once, until the end of ctx.
func Of(ctx context.Context, name string, r io.ReadCloser) *Sources {
	return &Sources{List: []capture.Input{{Name: name, Octets: endingWith{ctx, r}}}, closers: []io.Closer{r}}
}

func (s *Sources) Close() (err error) {
	for _, c := range s.closers {
		err = errors.Join(err, c.Close())
	}
	return err
}

// copied copies r to a file of its own.
func copied(r io.Reader) (*copiedFile, error) {
	f, err := os.CreateTemp("", "hhfr-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // not possible on every system while it is open
	c := &copiedFile{f}
	if _, err = io.Copy(f, r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// copiedFile is removed when it is closed.
type copiedFile struct{ *os.File }

// Close closes and removes it.
func (c *copiedFile) Close() error {
	err := c.File.Close()
	if removed := os.Remove(c.Name()); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// MaxMessage bounds one message from stdin or a file, in bytes.
const MaxMessage = 1 << 30
