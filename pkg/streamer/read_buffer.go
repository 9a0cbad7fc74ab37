package streamer

import "net"

// readBuffer reads a direction into a buffer that grows to the longest frame in it.
type readBuffer struct {
	conn  net.Conn
	buf   []byte
	r, w  int
	hello int // how many bytes the hello at the beginning has
}

// ahead are the bytes that are there.
func (in *readBuffer) ahead() []byte { return in.buf[in.r:in.w] }

// more waits for at least one further byte. The frame that is under way has at most 65,536
// bytes and its beginning: its length was looked at.
func (in *readBuffer) more() error {
	if in.r > 0 {
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	}
	if in.w == len(in.buf) {
		grown := make([]byte, max(minReadBuffer, 2*len(in.buf)))
		copy(grown, in.buf)
		in.buf = grown
	}
	n, err := in.conn.Read(in.buf[in.w:])
	in.w += n
	if n > 0 {
		return nil
	}
	return err
}
