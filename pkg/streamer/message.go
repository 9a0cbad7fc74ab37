package streamer

import (
	"bytes"
	"io"
)

// Message is one message: an optional head, its bytes as received, and a body, nil if empty. A
// Body that is an io.Closer is closed when it is not read any more. The Body of a message that came
// from a stream is an io.ReadCloser, for one goroutine at a time; it must be read to its end or
// closed, or it keeps room; its Head is shared, and must not be changed.
type Message struct {
	Head []byte
	Body io.Reader
	// Length is that of the body, in bytes, where it is known and not 0: of a message to be sent,
	// so that a short body that comes slowly goes in one piece.
	Length int64
	// Interim says that this is a reply before the one that counts ([Pending.Next]).
	Interim bool
	// Place is that of a one-way message in a sequence, for [Lane.Post] and from there; others have
	// none.
	Place Place
}

// NewMessage is a message whose body is in memory. It keeps both slices.
func NewMessage(head, body []byte) *Message {
	m := new(messageInMemory)
	m.body.Reset(body)
	m.Head, m.Body = head, &m.body
	return &m.Message
}

// messageInMemory is a message and its body, in one piece of memory.
type messageInMemory struct {
	Message
	body bytes.Reader
}

// ReadAll reads the whole body. A body above limit bytes is an error of code [TooLarge], and what
// was read is returned with it.
func (m *Message) ReadAll(limit int64) ([]byte, error) {
	if m.Body == nil {
		return nil, nil
	}
	if b, ok := m.Body.(interface {
		readAll(limit int64) ([]byte, error)
	}); ok {
		return b.readAll(limit)
	}
	all, err := io.ReadAll(io.LimitReader(m.Body, limit+1))
	if err == nil && int64(len(all)) > limit {
		return all[:limit], tooLong(limit)
	}
	return all, err
}

// KnownLength returns the length of what is left of the body, in bytes, where that is known without
// waiting; -1: it is not. Of a message that came from a stream it is known as Length, or if the
// whole body is here and not longer than 1 MiB. It may be called once, before the body is read.
func (m *Message) KnownLength() int64 {
	switch b := m.Body.(type) {
	case nil:
		return 0
	case interface{ gather(limit int) int64 }:
		return b.gather(maxGathered)
	case interface{ Len() int }:
		return int64(b.Len())
	}
	if m.Length > 0 {
		return m.Length
	}
	return -1
}

// maxGathered is the longest body whose length is found out, in bytes.
const maxGathered = 1 << 20

// ReadReady reads from the body of a message that came from a stream what is there already. It does
// not wait: if nothing is there, it returns 0 and no error.
func (m *Message) ReadReady(p []byte) (int, error) {
	if b, ok := m.Body.(interface {
		readReady(p []byte) (int, error)
	}); ok {
		return b.readReady(p)
	}
	return 0, nil
}

// length is that of the body, as far as it is known; -1: it is not.
func (m *Message) length() int64 {
	switch {
	case m.Length > 0:
		return m.Length
	case inMemory(m.Body):
		return 0
	}
	return -1
}

// inMemory reports whether a body is in memory and short.
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

// taken is the last that was written to it.
type taken []byte

// take gives the bytes of a body that is in memory, and reads it with that.
func (t *taken) take(b io.Reader) []byte {
	*t = nil
	if b, ok := b.(io.WriterTo); ok {
		_, _ = b.WriteTo(t) // in one piece
	}
	return *t
}

func (t *taken) Write(p []byte) (int, error) {
	*t = p
	return len(p), nil
}

func closeBody(b io.Reader) {
	if c, ok := b.(io.Closer); ok {
		_ = c.Close()
	}
}
