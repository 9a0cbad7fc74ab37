package estimate

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
)

// window compresses one direction of a tunnel.
type window interface {
	io.Writer
	Flush() error
}

func newZlib(to *bytes.Buffer) (window, error) { return zlib.NewWriterLevel(to, 6) }

// tunnel is one connection that carries all connections of a link, as ssh -C does: each piece of
// data as it came, in a frame of four bytes more, its connection and its length, and compressed
// with all that its direction had before. A connection begins with its first frame, and ends with
// an empty one.
type tunnel struct {
	windows [2]window
	out     [2]bytes.Buffer
}

// mostFramed is the longest piece, in bytes: what ssh has in one.
const mostFramed = 32 << 10

func newTunnel(window func(*bytes.Buffer) (window, error)) (t *tunnel, err error) {
	t = new(tunnel)
	for i := range t.windows {
		if t.windows[i], err = window(&t.out[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// send returns what a message takes in a direction.
func (t *tunnel) send(dir int, channel uint16, m *message) (all []write, err error) {
	from := 0
	for _, a := range m.reads() {
		octets := int64(0)
		for data := m.octets[from:a.Octets]; len(data) > 0; {
			n := min(len(data), mostFramed)
			k, err := t.frame(dir, channel, data[:n])
			if err != nil {
				return nil, err
			}
			octets, data = octets+k, data[n:]
		}
		from = a.Octets
		all = append(all, write{a.At, octets})
	}
	return all, nil
}

// end returns what the end of a connection takes.
func (t *tunnel) end(channel uint16, byClient bool) (legs, error) {
	dir := 1
	if byClient {
		dir = 0
	}
	n, err := t.frame(dir, channel, nil)
	return legs{{down: !byClient, between: true, writes: once(n)}}, err
}

// frame returns the length of a frame on the link.
func (t *tunnel) frame(dir int, channel uint16, data []byte) (int64, error) {
	w, out := t.windows[dir], &t.out[dir]
	out.Reset()
	_, err := w.Write(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, channel), uint16(len(data))))
	_, failed := w.Write(data)
	err = errors.Join(err, failed, w.Flush())
	return int64(out.Len()), err
}
