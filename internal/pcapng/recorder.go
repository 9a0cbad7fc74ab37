// Package pcapng writes recordings: the content of connections, as a capture that every capture
// tool reads. Each byte read and written becomes part of a raw-IP packet with synthesized TCP, for
// TLS as cleartext.
//
// A recording never disturbs what it records: when it cannot be written (a full disk), the
// connections continue, and [Recorder.Err] returns the error.
package pcapng

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
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
	now func() time.Time

	mu    sync.Mutex
	w     io.Writer
	ng    *pcapgo.NgWriter
	buf   bytes.Buffer // output of ng
	sbuf  gopacket.SerializeBuffer
	at    int64
	err   error
	conns uint32
	ipID  uint16
}

// NewRecorder writes the beginning of a recording to w; now (nil: time.Now) returns the times of
// packets. The caller closes w after [Recorder.Close].
func NewRecorder(w io.Writer, now func() time.Time) *Recorder {
	if now == nil {
		now = time.Now
	}
	r := &Recorder{now: now, w: w, sbuf: gopacket.NewSerializeBuffer()}
	intf := pcapgo.NgInterface{Name: "hhfr", LinkType: layers.LinkTypeRaw, TimestampResolution: 9}
	opts := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "hhfr"}}
	r.ng, r.err = pcapgo.NewNgWriterInterface(&r.buf, intf, opts)
	r.flush()
	return r
}

// Err is the first failure to write, or nil; from then on nothing is written.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure()
}

// Close ends the recording and reports whether all of it was written. Connections continue
// unrecorded. It does not close the writer.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.failure()
	if r.err == nil {
		r.err = &Error{Code: Closed, At: r.at}
	}
	return err
}

// failure is err, unless the recording was closed on purpose. The lock is held.
func (r *Recorder) failure() error {
	if errors.Is(r.err, &Error{Code: Closed}) {
		return nil
	}
	return r.err
}

// flush writes what was serialized in one Write. The lock is held.
func (r *Recorder) flush() {
	if r.err == nil {
		r.err = r.ng.Flush()
	}
	if r.err == nil {
		var n int
		n, r.err = r.w.Write(r.buf.Bytes())
		r.at += int64(n)
	}
	r.buf.Reset()
	if r.err != nil {
		r.err = &Error{Code: WriteFailed, At: r.at, Err: r.err}
	}
}

// packet writes one packet. The lock is held.
func (r *Recorder) packet(ip gopacket.NetworkLayer, tcp *layers.TCP, payload []byte, comments []string) {
	if r.err != nil {
		return
	}
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	err := tcp.SetNetworkLayerForChecksum(ip)
	if err == nil {
		err = gopacket.SerializeLayers(r.sbuf, opts, ip.(gopacket.SerializableLayer), tcp, gopacket.Payload(payload))
	}
	if err == nil {
		b := r.sbuf.Bytes()
		ci := gopacket.CaptureInfo{Timestamp: r.now(), CaptureLength: len(b), Length: len(b)}
		err = r.ng.WritePacketWithOptions(ci, b, pcapgo.NgPacketOptions{Comments: comments})
	}
	if err != nil {
		r.err = &Error{Code: WriteFailed, At: r.at, Err: err}
		return
	}
	r.flush()
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
