package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// recording is the file that --record names; the zero value records nothing.
type recording struct {
	name string
	file *os.File
	rec  *pcapng.Recorder
}

func openRecording(name string) (*recording, error) {
	if name == "" {
		return &recording{}, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return &recording{name: name, file: f, rec: pcapng.NewRecorder(f, time.Now)}, nil
}

// dialed and accepted wrap a connection; nil if nothing is recorded.
func (r *recording) dialed() func(net.Conn) net.Conn {
	if r.rec == nil {
		return nil
	}
	return r.dial
}

// dial records a connection that was opened here, if anything is recorded.
func (r *recording) dial(c net.Conn) net.Conn {
	if r.rec == nil {
		return c
	}
	return r.rec.Conn(c)
}

// over returns a dial function whose connections are recorded.
func (r *recording) over(open pcapng.DialFunc) pcapng.DialFunc {
	if r.rec == nil {
		return open
	}
	return r.rec.DialContext(open)
}

func (r *recording) accepted() func(net.Conn) net.Conn {
	if r.rec == nil {
		return nil
	}
	return func(c net.Conn) net.Conn { return r.rec.Accepted(c) }
}

// facts notes what was agreed on a session next to its hello, or after it on a connection that was
// upgraded.
func (r *recording) facts(f negotiate.Facts, c net.Conn) {
	if conn, ok := netconn.As[*pcapng.RecordedConn](c); ok {
		if b, err := json.Marshal(f); err == nil {
			_ = conn.Comment(string(b)) // a comment that is too long is left out
		}
	}
}

// close ends the recording. Its error says that it is not complete.
func (r *recording) close() error {
	if r.rec == nil {
		return nil
	}
	err := r.rec.Close()
	if closed := r.file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return &problem{exitPartial, fmt.Errorf("the recording %s is not complete: %w", r.name, err), ""}
	}
	return nil
}
