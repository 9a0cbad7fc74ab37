// Package pcapng writes recordings: the content of connections, as a capture that every capture
// tool reads. Each byte read and written becomes part of a raw-IP packet with synthesized TCP, for
// TLS as cleartext.
//
// A recording never disturbs what it records: when it cannot be written (a full disk), the
// connections continue, and [Recorder.Err] returns the error. It may go on in further files, each
// of which can be read without the others ([Recorder.Rotate]).
package pcapng

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/pcap"
)

// Code is the kind of an [Error].
type Code uint8

const (
	// WriteFailed: the recording could not be written; it ends there.
	WriteFailed Code = iota + 1
	// CommentTooLong: a comment is longer than the format's 65,535 bytes.
	CommentTooLong
	// Closed: the recorder was closed.
	Closed
)

var codeNames = map[Code]string{WriteFailed: "writing the recording", CommentTooLong: "comment too long",
	Closed: "recording is closed"}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package. At is the offset in the recording, in bytes.
type Error struct {
	Code Code
	At   int64
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s (offset %d)", e.Code, e.At)
	}
	return fmt.Sprintf("%s (offset %d): %v", e.Code, e.At, e.Err)
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// maxComment is the maximum of an option's 16-bit length.
const maxComment = 1<<16 - 1

// Recorder writes one recording. It is safe for concurrent use. Each packet is written in one
// Write, so a process that is killed leaves a file that is valid up to its last packet. Pass only
// one end of a connection to a recorder: both ends have the same addresses.
type Recorder struct {
	// OnFailure is called, with the recorder locked, when the recording cannot be written; nil: not
	// called. It is set before anything is recorded.
	OnFailure func(error)

	now func() time.Time

	mu     sync.Mutex
	w      io.Writer
	buf    []byte // the block that is being written
	packed []byte // the packet in it
	at     int64
	err    error
	lost   error // why something is missing
	conns  uint32
	ipID   uint16

	// Of a recording in several files.
	rotation *Rotation // nil: it is in one
	file     Medium
	live     map[*RecordedConn]struct{}
	began    time.Time // time of the file's first packet that is not repeated
	failed   time.Time // when the recording, or its next file, could not be written
	repeated int64     // length of what the file repeats, in bytes
}

// NewRecorder writes the beginning of a recording to w; now (nil: time.Now) returns the times of
// packets. The caller closes w after [Recorder.Close].
func NewRecorder(w io.Writer, now func() time.Time) *Recorder {
	if now == nil {
		now = time.Now
	}
	r := &Recorder{now: now, w: w}
	r.begin()
	return r
}

// begin writes the beginning of a file.
func (r *Recorder) begin() {
	r.flush(pcap.AppendHead(r.buf[:0], "hhfr", "hhfr", pcap.LinkRaw))
}

// Err is the first failure to write, or nil. Without [Recorder.Rotate] nothing is written after it.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// Close ends the recording and reports whether all of it was written. Connections continue
// unrecorded. It does not close the writer.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = &Error{Code: Closed, At: r.at}
	}
	r.rotation = nil
	return r.lost
}

// fail ends the recording, for some time if it is in several files. The lock is held.
func (r *Recorder) fail(err error) {
	r.err = &Error{Code: WriteFailed, At: r.at, Err: err}
	r.tell(r.err)
	if r.rotation == nil {
		return
	}
	r.failed = r.now()
	for c := range r.live {
		c.forget(true)
	}
}

// tell reports a failure. The lock is held.
func (r *Recorder) tell(err error) {
	if r.lost == nil {
		r.lost = err
	}
	if r.OnFailure != nil {
		r.OnFailure(err)
	}
}

// flush writes blocks in one Write, and keeps their memory. The lock is held.
func (r *Recorder) flush(blocks []byte) {
	r.buf = blocks
	if r.err != nil {
		return
	}
	whole := r.at
	n, err := r.w.Write(blocks)
	r.at += int64(n)
	if err != nil {
		r.fail(err)
		r.cut(whole)
	}
}

// cut takes the beginning of a packet away from the end of a file. The lock is held.
func (r *Recorder) cut(whole int64) {
	if r.rotation != nil {
		_ = r.file.Truncate(whole)
	}
}

// packet writes one packet, and returns where it stands in its file. The lock is held.
func (r *Recorder) packet(segment *tcpSegment, comments []string) (at int64) {
	now := r.now()
	if r.due(now) {
		r.rotate(now)
	}
	if at = r.at; r.err != nil {
		return at
	}
	r.write(now, segment, comments)
	if r.began.IsZero() {
		r.began = now
	}
	return at
}

// write writes one packet to the current file. The lock is held.
func (r *Recorder) write(now time.Time, segment *tcpSegment, comments []string) {
	r.packed = segment.append(r.packed[:0])
	r.flush(pcap.AppendPacket(r.buf[:0], pcap.PacketRecord{Time: now, Data: r.packed, Comments: comments}))
}

// Listener records every connection that l accepts.
func (r *Recorder) Listener(l net.Listener) net.Listener { return recordingListener{l, r} }

type recordingListener struct {
	net.Listener
	rec *Recorder
}

func (l recordingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.rec.Accepted(c), nil
}

// DialFunc is the type of net.Dialer.DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// DialContext records every connection that dial opens.
func (r *Recorder) DialContext(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return r.Conn(c), nil
	}
}
