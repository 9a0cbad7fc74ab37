// Package spool stores bodies of messages of any length: short ones in memory. Of long ones, or of
// too many together, all but the beginning is in one private file.
package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	// Kept is the number of bytes of a body that are available in one slice.
	Kept = 1 << 20
	// budget is the maximum number of bytes of all bodies in memory.
	budget = 8 << 20
	// sniffed is how many bytes of a long body its Spool.Short is sure to get.
	sniffed = 512
)

// Spool stores bodies. Not safe for concurrent use.
type Spool struct {
	// Short is how many bytes are wanted of a long body that begins so, at least its start: what
	// comes after them is only counted. nil: all.
	Short func(start []byte) int64

	memory int64 // in use by bodies
	file   *os.File
	blocks blocks
}

// extent is a part of the file, in so many blocks.
type extent struct{ at, length, blocks int64 }

// room is how many bytes more it has space for.
func (e *extent) room() int64 { return e.blocks*block - e.length }

// end is the block behind it.
func (e *extent) end() int64 { return e.at/block + e.blocks }

// Spooled is one body. The zero value is invalid; [Spool.Body] creates them.
type Spooled struct {
	spool   *Spool
	memory  []byte // the end of what was written that is not in the file
	extents []extent
	size    int64
	whole   bool  // all of it is wanted, whatever Spool.Short says
	wanted  int64 // of a long one, see Spool.Short
	err     error
}

// Body begins a body.
func (s *Spool) Body() *Spooled { return &Spooled{spool: s} }

// Whole begins a body of which all is stored, whatever Short says.
func (s *Spool) Whole() *Spooled { return &Spooled{spool: s, whole: true} }

// Close removes the file. Bodies must not be used any more.
func (s *Spool) Close() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.file.Close(), os.Remove(s.file.Name()))
	s.file = nil
	if errors.Is(err, os.ErrNotExist) { // it was removed at once, if the system allows that
		return nil
	}
	return err
}

// Len is the number of bytes of a body.
func (b *Spooled) Len() int64 {
	if b == nil {
		return 0
	}
	return b.size
}

// Write implements [io.Writer]. The error is that of the file, and stays.
func (b *Spooled) Write(p []byte) (int, error) {
	n := len(p)
	if b.spool.Short != nil && !b.whole && b.size+int64(n) > Kept {
		if b.size <= Kept {
			b.want(p)
		}
		p = p[:min(int64(n), max(0, b.wanted-b.size))]
	}
	switch {
	case b.err != nil || len(p) == 0:
	case b.size+int64(len(p)) > Kept || b.spool.memory+int64(len(p)) > budget:
		if b.err = b.store(b.memory); b.err == nil {
			b.spool.memory -= int64(len(b.memory))
			b.memory = nil
			b.err = b.store(p)
		}
	default:
		b.memory = append(b.memory, p...)
		b.spool.memory += int64(len(p))
	}
	b.size += int64(n)
	return n, b.err
}

// want asks how much is wanted of a body that gets long with the next bytes.
func (b *Spooled) want(next []byte) {
	start, err := b.Start()
	if len(start) < sniffed {
		start = append(slices.Clip(start), next...)
	}
	b.wanted, b.err = b.spool.Short(start), err
}

// store writes bytes to the file.
func (b *Spooled) store(p []byte) error {
	s := b.spool
	if s.file == nil {
		f, err := os.CreateTemp("", "hhfr-")
		if err != nil {
			return fmt.Errorf("a file for long messages: %w", err)
		}
		_ = os.Remove(f.Name()) // not possible on every system while it is open
		s.file = f
	}
	for len(p) > 0 {
		e := b.extend(int64(len(p)))
		n, err := s.file.WriteAt(p[:min(int64(len(p)), e.room())], e.at+e.length)
		if e.length += int64(n); err != nil {
			return fmt.Errorf("the file for long messages: %w", err)
		}
		p = p[n:]
	}
	return nil
}

// extend returns the last extent, with space: for as many bytes as are wanted, if the blocks behind
// it are free.
func (b *Spooled) extend(want int64) *extent {
	n, blocks := len(b.extents), &b.spool.blocks
	if n == 0 || b.extents[n-1].room() == 0 && !blocks.takeAt(b.extents[n-1].end()) {
		b.extents = append(b.extents, extent{blocks.take() * block, 0, 1})
	} else if b.extents[n-1].room() == 0 {
		b.extents[n-1].blocks++
	}
	e := &b.extents[len(b.extents)-1]
	for e.room() < want && blocks.takeAt(e.end()) {
		e.blocks++
	}
	return e
}

// Free releases the body's memory; it is empty then.
func (b *Spooled) Free() {
	if b == nil || b.spool == nil {
		return
	}
	s := b.spool
	s.memory -= int64(len(b.memory))
	for _, e := range b.extents {
		s.blocks.free(e.at/block, e.blocks)
	}
	s.shrink()
	*b = Spooled{spool: s}
}

// shrink cuts off what is unused at the end of the file, if that is much of it.
func (s *Spool) shrink() {
	if end := s.blocks.end(); s.blocks.most > enough && end <= s.blocks.most/2 && s.file.Truncate(end*block) == nil {
		s.blocks.most = end
	}
}

// Start returns the first bytes of a body, up to Kept, which are all of it if it has no more.
func (b *Spooled) Start() ([]byte, error) {
	if b == nil || b.err != nil || len(b.extents) == 0 {
		if b == nil {
			return nil, nil
		}
		return b.memory, b.err
	}
	kept := int64(len(b.memory))
	for _, e := range b.extents {
		kept += e.length
	}
	start := make([]byte, min(kept, Kept))
	_, err := io.ReadFull(b.Reader(), start)
	return start, err
}

// Reader reads a body from its first byte on. For a [Spool.Short] it reads what is left.
func (b *Spooled) Reader() io.Reader {
	if b == nil {
		return bytes.NewReader(nil)
	}
	var all []io.Reader
	for _, e := range b.extents {
		all = append(all, io.NewSectionReader(b.spool.file, e.at, e.length))
	}
	return io.MultiReader(append(all, bytes.NewReader(b.memory))...)
}
