package proxy

import (
	"errors"
	"io"
	"strconv"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// finderFor returns the finder of the codings of what goes by a stream; nil: the peer cannot code
// again.
func finderFor(s *streamer.Stream, f *deflate.Finder) *deflate.Finder {
	if s == nil || s.Hello().Abilities&codesAgain == 0 {
		return nil
	}
	return f
}

// partsOf returns what travels of a message that is whole: head part and entity. Of an entity that
// zlib coded, if f finds out how, that is what was coded, whose length the head states then. All
// others go as they are; so does what is no XML, which would gain little.
func partsOf(f *deflate.Finder, h *http1.Head, line string, entity [][]byte) (head []byte, of [][]byte) {
	if n := sizeOf(entity); f != nil && n > 0 && n <= deflate.MaxPlain && isCoded(h, n) {
		if plain, coding, ok := f.Find(joined(entity)); ok {
			line = codingStart + coding.String() + "\n" + line
			return append(http1.AppendLength(nil, h, len(plain)), line...), [][]byte{plain}
		}
	}
	return withHead(h.Octets, line), entity
}

// isCoded reports whether a body of n bytes is XML that zlib may have coded. If its length is
// stated, it is as a number is written.
func isCoded(h *http1.Head, n int) bool {
	codings, lengths := h.Tokens("Content-Encoding"), h.All("Content-Length")
	if len(codings) != 1 || !isXML(h, nil) ||
		len(lengths) > 0 && (len(lengths) > 1 || string(lengths[0]) != strconv.Itoa(n)) {
		return false
	}
	switch codings[0] {
	case "gzip", "x-gzip", "deflate":
		return true
	}
	return false
}

// isMade reports whether the body is made of one that came whole.
func (c *controlMessage) isMade() bool { return c.framing != nil || c.coding != nil }

// copyCoded writes a message whose body is coded and framed anew, as it was received. The error is
// that of copyMessage, or Malformed.
func copyCoded(to io.Writer, c *controlMessage, m *streamer.Message) error {
	plain, err := io.ReadAll(io.LimitReader(m.Body, deflate.MaxPlain+1))
	if err != nil {
		return err
	}
	body, ok := c.coding.Append(nil, plain)
	if !ok {
		return malformed("a body of %d bytes that cannot be coded", len(plain))
	}
	if _, err = to.Write(c.framing.AppendTo(http1.AppendLength(nil, &c.head, len(body)), body)); err != nil {
		return errors.Join(errUntaken, err)
	}
	return nil
}
