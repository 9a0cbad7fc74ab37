package peer

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// drift has replies change their structure, again and again: what described them, or was learned of them, holds no more.
type drift struct {
	every   int64 // replies of one structure
	replies atomic.Int64
}

// drifting is a copy of services whose replies drift.
func (s *Services) drifting(every int) *Services {
	return &Services{byPath: s.byPath, drift: &drift{every: int64(every)}}
}

// maxDrifting is the longest reply that is held to be changed, in bytes.
const maxDrifting = 1 << 20

// alter puts an element before the end of the Body, of another name each time that the structure changes; what has no Body, or is longer, stays
// as it is.
func (d *drift) alter(m *streamer.Message) (*streamer.Message, error) {
	body, err := m.ReadAll(maxDrifting)
	if errors.Is(err, &streamer.Error{Code: streamer.TooLarge}) {
		return nil, &Error{Code: Failed, At: -1, Err: fmt.Errorf("a reply of more than %d bytes cannot drift", maxDrifting)}
	}
	if err != nil {
		return nil, err
	}
	at := endOfBody(body)
	if at < 0 {
		return streamer.NewMessage(m.Head, body), nil
	}
	n := d.replies.Add(1)
	if n <= d.every {
		return streamer.NewMessage(m.Head, body), nil
	}
	element := fmt.Sprintf(`<d:drift%d xmlns:d="urn:hhfr:drift">%d</d:drift%[1]d>`, (n-1)/d.every, n)
	return streamer.NewMessage(m.Head, append(append(append(make([]byte, 0, len(body)+len(element)), body[:at]...), element...), body[at:]...)), nil
}

// endOfBody is where the end tag of a SOAP Body begins; -1 if there is none.
func endOfBody(envelope []byte) int {
	for rest := envelope; ; {
		at := bytes.LastIndex(rest, []byte("</"))
		if at < 0 {
			return -1
		}
		name, _, _ := bytes.Cut(envelope[at+2:], []byte(">"))
		if _, local, prefixed := bytes.Cut(name, []byte(":")); string(name) == "Body" || prefixed && string(local) == "Body" {
			return at
		}
		rest = rest[:at]
	}
}
