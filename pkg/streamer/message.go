package streamer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Message is one message: an optional head, its octets as received, and a body, nil if empty. A Body that is an io.Closer is closed when it is not read any more.
// The Body of a message that came from a stream is an io.ReadCloser, for one goroutine at a time; it must be read to its end or closed, or it keeps room.
type Message struct {
	Head []byte
	Body io.Reader
	// Place is that of a one-way message in a sequence, for [Lane.Post] and from there; others have none.
	Place Place
}

// NewMessage is a message whose body is in memory. It keeps both slices.
func NewMessage(head, body []byte) *Message {
	return &Message{Head: head, Body: bytes.NewReader(body)}
}

// ReadAll reads the whole body. A body above limit octets is an error of code [TooLarge], and what was read is returned with it.
func (m *Message) ReadAll(limit int64) ([]byte, error) {
	if m.Body == nil {
		return nil, nil
	}
	if b, ok := m.Body.(*body); ok {
		return b.readAll(limit)
	}
	all, err := io.ReadAll(io.LimitReader(m.Body, limit+1))
	if err == nil && int64(len(all)) > limit {
		return all[:limit], tooLong(limit)
	}
	return all, err
}

func tooLong(limit int64) *Error {
	return &Error{Code: TooLarge, Err: fmt.Errorf("message above %d octets", limit)}
}

// inMemory tells whether reading b to its end neither waits nor takes long.
func inMemory(b io.Reader) bool {
	switch b := b.(type) {
	case nil:
		return true
	case *bytes.Reader:
		return b.Len() <= inlineBody
	case *bytes.Buffer:
		return b.Len() <= inlineBody
	}
	return false
}

// counted reads a body that is sent, and refuses to go beyond what the other end takes.
type counted struct {
	from io.Reader
	left int64
}

func (c *counted) Read(p []byte) (int, error) {
	if c.from == nil {
		return 0, io.EOF
	}
	n, err := c.from.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

var errTooLong = errors.New("longer than the other end takes")

func closeBody(b io.Reader) {
	if c, ok := b.(io.Closer); ok {
		_ = c.Close()
	}
}
