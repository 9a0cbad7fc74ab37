package streamer

import "net"

// readBuffer reads a direction into a buffer that grows to the longest frame in it, and to what
// comes at once. While nothing comes it is small.
type readBuffer struct {
	conn  net.Conn
	buf   []byte
	r, w  int
	full  bool // the last read filled the buffer
	hello int  // how many bytes the hello at the beginning has
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
	if in.w == len(in.buf) || in.full && len(in.buf) < readAhead {
		in.grow()
	}
	n, err := in.conn.Read(in.buf[in.w:])
	in.w += n
	in.full = in.w == len(in.buf)
	if n > 0 {
		return nil
	}
	return err
}

func (in *readBuffer) grow() {
	size := minReadBuffer
	if len(in.buf) > quietReadBuffer {
		size = max(readAhead, 2*len(in.buf))
	}
	grown := make([]byte, size)
	copy(grown, in.buf[:in.w])
	in.buf = grown
}

// rest gives the buffer back, which is empty, for one that takes the first bytes of what comes.
func (in *readBuffer) rest() {
	if len(in.buf) > quietReadBuffer {
		*in = readBuffer{conn: in.conn, hello: in.hello, buf: make([]byte, quietReadBuffer)}
	}
}
