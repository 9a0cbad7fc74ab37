// Package flow is the packet layer of captures: it reads capture files ([Open]), reassembles TCP
// connections with exact gaps ([Flows]), and finds the HTTP messages in them ([HTTP]).
package flow

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/hhfr/hhfr/internal/pcap"
)

// CapturedPacket is one packet of a capture. No counts from 1 in file order. At is the offset of
// the packet's record, or of the first block after the packet before, in bytes after gzip.
type CapturedPacket struct {
	pcap.PacketRecord
	No int
	At int64
}

// File reads the packets of a capture. It is not safe for concurrent use.
type File struct {
	in      *bufio.Reader
	count   *countReader
	packets *pcap.PacketReader
	no      int
	err     error
}

// countReader counts the bytes read and remembers the error that ended reading, if that was not the
// end of the file.
type countReader struct {
	r   io.Reader
	n   int64
	err error
}

func (c *countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF && c.err == nil {
		c.err = err
	}
	return n, err
}

// Open reads the beginning of a capture: pcap of either byte order with micro- or nanoseconds, or
// pcapng; both also in gzip. The error is [NoCapture], or [Truncated] if there is only part of a
// file header.
func Open(r io.Reader) (*File, error) {
	in := bufio.NewReader(r)
	if magic, _ := in.Peek(2); len(magic) == 2 && magic[0] == 0x1F && magic[1] == 0x8B {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, &Error{Code: NoCapture, Err: err}
		}
		r = z
	} else {
		r = in
	}
	f := &File{count: &countReader{r: r}}
	f.in = bufio.NewReaderSize(f.count, 64<<10)
	magic, err := f.in.Peek(4)
	switch {
	case err != nil && f.count.err != nil: // an error after the first bytes is for Next to report
		return nil, f.fail(0, f.count.err)
	case err != nil && len(magic) == 0:
		return nil, &Error{Code: NoCapture, Err: errEmpty}
	case !pcap.Begins(magic):
		return nil, &Error{Code: NoCapture, Err: fmt.Errorf("begins with %q", magic)}
	}
	switch f.packets, err = pcap.NewReader(f.in); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &Error{Code: Truncated, Err: err}
	case err != nil && f.count.err != nil && errors.Is(err, f.count.err):
		return nil, f.fail(0, err)
	case err != nil:
		return nil, &Error{Code: NoCapture, Err: err}
	}
	return f, nil
}

var errEmpty = errors.New("it is empty")

// IsCapture reports whether b, at least four bytes, begins like a capture, or one in gzip.
func IsCapture(b []byte) bool {
	return len(b) >= 4 && (pcap.Begins(b[:4]) || b[0] == 0x1F && b[1] == 0x8B)
}

func (f *File) at() int64 { return f.count.n - int64(f.in.Buffered()) }

// Next returns the next packet, whose slices are the caller's. At the end the error is io.EOF. A
// file that is cut off or damaged gives its whole packets, then [Truncated], [Malformed] or
// [ReadFailed]. The error stays.
func (f *File) Next() (CapturedPacket, error) {
	if f.err != nil {
		return CapturedPacket{}, f.err
	}
	p := CapturedPacket{No: f.no + 1, At: f.at()}
	if p.PacketRecord, f.err = f.packets.Next(); f.err != nil {
		f.err = f.fail(p.At, f.err)
		return CapturedPacket{}, f.err
	}
	f.no++
	return p, nil
}

func (f *File) fail(at int64, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Code: Truncated, At: at, Err: io.ErrUnexpectedEOF}
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.As(err, &corrupt), errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), f.count.err == nil:
		return &Error{Code: Malformed, At: at, Err: err}
	}
	return &Error{Code: ReadFailed, At: at, Err: err}
}

// Read passes the packets of captures to an assembler, in the order of their times, numbered in
// that order. A capture that is cut off or damaged is no error; [Stats.Truncated] reports it.
// Errors are those of reading ([ReadFailed]) and of the receivers.
func Read(c Config, files ...*File) (Stats, error) {
	a := NewAssembler(c)
	next := make([]*CapturedPacket, len(files))
	fill := func(i int) error {
		p, err := files[i].Next()
		for _, log := range files[i].packets.Secrets() {
			if c.Keys != nil {
				c.Keys.Add(log)
			}
		}
		var e *Error
		switch {
		case err == nil:
			next[i] = &p
			return nil
		case errors.As(err, &e) && e.Code != ReadFailed:
			a.stats.Truncated, a.stats.TruncatedAt = true, e.At
		case !errors.Is(err, io.EOF):
			return err
		}
		next[i] = nil
		return nil
	}
	for i := range files {
		if err := fill(i); err != nil {
			return a.stats, err
		}
	}
	for {
		first := -1
		for i, p := range next {
			if p != nil && (first < 0 || p.Time.Before(next[first].Time)) {
				first = i
			}
		}
		if first < 0 {
			return a.Close()
		}
		p := *next[first]
		p.No = a.stats.Packets + 1
		if err := a.Add(p); err != nil {
			return a.stats, err
		}
		if err := fill(first); err != nil {
			return a.stats, err
		}
	}
}
