package transcode

import (
	"io"
	"net"
)

// tee is a connection that writes to a file what it sends. Only the stream's writer writes; err is read behind it.
type tee struct {
	net.Conn
	w   io.Writer
	err error
}

func (t *tee) Write(b []byte) (int, error) {
	if t.err == nil {
		_, t.err = t.w.Write(b)
	}
	return t.Conn.Write(b)
}
