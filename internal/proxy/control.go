package proxy

import (
	"bytes"
	"strconv"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/http1"
)

// messageKind is the kind of a message between two proxies. Its head part says what it is
// (docs/proxy.md, section 3): an HTTP head as received, then a line that says how its body was
// framed; or, without an HTTP head, a line of its own. No HTTP head begins with '='.
type messageKind byte

const (
	// none: no message of a proxy, but one of an endpoint that speaks hhfr itself; its head is as
	// in docs/negotiation.md.
	none messageKind = 0
	// whole: an HTTP message whose body is the entity.
	whole messageKind = 'w'
	// rest: an HTTP message whose body is everything after its head, framing included.
	rest messageKind = 'r'
	// tunnel: unchanged bytes; from here on nothing is HTTP.
	tunnel messageKind = 't'
	// shut: the client sends no more, like the end of a TCP direction.
	shut messageKind = 'z'
	// leave ends the client of a lane: what follows on it is another client's.
	leave messageKind = 'x'
	// hangUp ends the connection of a lane: what follows on it is of another connection of the same
	// client.
	hangUp messageKind = 'h'
	// change ends the client of a lane, too, but not its connection: a message of another client
	// follows on that.
	change messageKind = 'n'
	// ended: bytes, possibly none, after which the upstream has closed, as a reply to a call that
	// it leaves unanswered. As a request of the far end: no call was in progress; numbers say how
	// many calls it had seen, and of which client of the lane.
	ended messageKind = 'e'
	// broken is the same for a connection that did not end in order.
	broken messageKind = 'a'
)

// controlNames are the purposes of messages without an HTTP head.
var controlNames = map[messageKind]string{
	tunnel: Tunnel, shut: "client ended", leave: "lane end", hangUp: "connection end",
	change: "client change",
	ended:  "upstream ended", broken: "upstream broke",
}

// Tunnel is the result of [Control] for the message that begins a tunnel, in which nothing is HTTP.
const Tunnel = "tunnel"

// Control returns the purpose of a message between two proxies that is no HTTP message, in a word
// or two, by its head part: "tunnel" or "lane end", for example. It is empty for all other
// messages.
func Control(head []byte) string {
	switch {
	case string(head) == hangUpLine:
		return controlNames[hangUp]
	case len(head) < 2 || head[0] != '=':
		return ""
	}
	return controlNames[messageKind(head[1])]
}

// controlMessage is a parsed head part. head is the HTTP head, nil if there is none; framing says
// how the entity is reframed, unframed how the framing that was left out comes back into the rest,
// coding how the entity is coded again; all are nil for a body that is passed on unchanged.
type controlMessage struct {
	kind     messageKind
	head     http1.Head
	framing  *http1.Chunking
	unframed *http1.Reframer
	coding   *deflate.Coding
	number   uint64
	client   uint64 // of the lane, beginning with 0: how many were there before
}

// restLine follows an HTTP head whose body travels unchanged.
const restLine = "=r\n"

// unframedStart begins the line behind an HTTP head whose body travels without the framing of its
// chunks of one size, which is the rest of the line.
const unframedStart = "=u:"

// codingStart begins the line behind the HTTP head of such a body, which says how it is coded
// again. A line that says how that is framed follows.
const codingStart = "=d1:"

// restLineOf is the line for a body that travels as it comes; size is that of its chunks, if they
// have one.
func restLineOf(size string) string {
	if size == "" {
		return restLine
	}
	return unframedStart + size + "\n"
}

// hangUpLine is [hangUp] in one byte, for who has the ability endsShortly: there is one for each
// connection of a client that opens one for each call.
const hangUpLine = "="

// line is a head part without an HTTP head.
func line(k messageKind) []byte { return []byte{'=', byte(k), '\n'} }

func endLine(k messageKind, calls, client uint64) []byte {
	line := append(strconv.AppendUint([]byte{'=', byte(k), ':'}, calls, 10), ':')
	return append(strconv.AppendUint(line, client, 10), '\n')
}

// withHead is the head part of an HTTP message; line says how its body was framed.
func withHead(head []byte, line string) []byte {
	return append(append(make([]byte, 0, len(head)+len(line)), head...), line...)
}

// parse reads a head part. Errors: Malformed.
func parse(part []byte) (controlMessage, error) {
	if len(part) == 0 {
		return controlMessage{}, nil
	}
	if part[0] != '=' {
		h, n, err := http1.ParseHead(part, maxHeadPart)
		if err != nil || n == len(part) {
			return controlMessage{}, nil // not from a proxy; its receiver judges it
		}
		c := controlMessage{kind: whole, head: h}
		line, bad := c.cutCoding(part[n:])
		size, unframed := bytes.CutPrefix(line, []byte(unframedStart))
		size, ends := bytes.CutSuffix(size, []byte{'\n'})
		switch {
		case bad != nil:
			err = bad
		case c.coding == nil && string(line) == restLine:
			c.kind = rest
		case c.coding == nil && unframed && ends:
			c.kind = rest
			c.unframed, err = http1.NewReframer(size)
		default:
			c.framing, err = http1.ParseChunking(line)
		}
		if err != nil {
			return c, malformed("head %.40q: %w", part, err)
		}
		return c, nil
	}
	if string(part) == hangUpLine {
		return controlMessage{kind: hangUp}, nil
	}
	if len(part) < 3 || controlNames[messageKind(part[1])] == "" {
		return controlMessage{}, malformed("head %.40q", part)
	}
	c, behind := controlMessage{kind: messageKind(part[1])}, part[2:]
	if numbers, ok := bytes.CutPrefix(behind, []byte{':'}); ok && (c.kind == ended || c.kind == broken) {
		number, client, _ := bytes.Cut(bytes.TrimSuffix(numbers, []byte{'\n'}), []byte{':'})
		var bad [2]error
		c.number, bad[0] = strconv.ParseUint(string(number), 10, 64)
		c.client, bad[1] = strconv.ParseUint(string(client), 10, 64)
		if bad == [2]error{} {
			return c, nil
		}
	}
	if string(behind) != "\n" {
		return controlMessage{}, malformed("head %.40q", part)
	}
	return c, nil
}

// cutCoding takes the line off that says how a body is coded again. Errors: Malformed.
func (c *controlMessage) cutCoding(lines []byte) ([]byte, error) {
	text, found := bytes.CutPrefix(lines, []byte(codingStart))
	if !found {
		return lines, nil
	}
	text, framing, _ := bytes.Cut(text, []byte{'\n'})
	coding, ok := deflate.Parse(string(text))
	if !ok {
		return nil, malformed("line of a coding")
	}
	c.coding = &coding
	return framing, nil
}
