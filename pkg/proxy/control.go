package proxy

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/hhfr/hhfr/internal/http1"
)

// A message between two proxies has a head part that says what it is (docs/proxy.md): an HTTP head as received, then a line that says how its body
// was framed; or, where there is no HTTP head, a line of its own. No HTTP head begins with '='.
type kind byte

const (
	// none: no message of a proxy, but one of an end that speaks for itself, its head as docs/negotiation.md has it.
	none kind = 0
	// whole: an HTTP message, its body the entity.
	whole kind = 'w'
	// headOnly: an HTTP head whose body follows in bodies or pieces.
	headOnly kind = 'h'
	// switched: a reply head that turns the connection into a tunnel.
	switched kind = 'u'

	// body is the whole body behind a headOnly.
	body kind = 'b'
	// piece is octets as they are: of a client behind a headOnly or in a tunnel; of a server, and more follow.
	piece kind = 'p'
	// tunnel is a piece of a client, after which nothing is HTTP any more.
	tunnel kind = 't'
	// poll asks for what follows a piece of a server.
	poll kind = 'm'
	// shut says that the client sends no more, as the end of a TCP direction does.
	shut kind = 'z'
	// leave ends a lane; its number can be used for another client after the reply.
	leave kind = 'x'

	// interim is a reply head before the one that counts, such as 100 Continue; more follows.
	interim kind = 'i'
	// last is the last piece of a server's message.
	last kind = 'l'
	// void replies where there is nothing to say.
	void kind = 'v'
	// ended is octets, maybe none, after which the server has closed. As a request of the far proxy: while no call was under way; a number says how many calls it had seen.
	ended kind = 'e'
	// broken is the same for a connection that did not end in order.
	broken kind = 'a'
)

// controlNames say what messages without an HTTP head are for.
var controlNames = map[kind]string{
	body: "body", piece: "piece", tunnel: Tunnel, poll: "poll", shut: "client ended", leave: "lane end",
	interim: "interim", last: "last piece", void: "nothing", ended: "upstream ended", broken: "upstream broke",
}

// Tunnel is what [Control] says of the message that begins a tunnel, in which nothing is HTTP.
const Tunnel = "tunnel"

// Control says what a message between two proxies is for that is no HTTP message, in a word or two,
// by its head part: "poll" or "lane end", say. It is empty for all other messages.
func Control(head []byte) string {
	if len(head) < 2 || head[0] != '=' {
		return ""
	}
	return controlNames[kind(head[1])]
}

// control is a parsed head part. head is the HTTP head, nil if there is none; framing how the body is put back, nil if it is the entity as it is.
type control struct {
	kind    kind
	head    []byte
	framing *framing
	number  uint64
}

// framing is how a chunked body was cut.
type framing struct {
	regular bool
	upper   bool  // digits of sizes
	sizes   []run // regular: of all chunks but the last
	parts   []http1.FramingPart
}

// run is so many chunks of one size.
type run struct{ size, times int64 }

// maxChunks bounds the chunks that a framing line may stand for.
const maxChunks = 1 << 20

// line is a head part without an HTTP head.
func line(k kind) []byte { return []byte{'=', byte(k), '\n'} }

func endLine(k kind, calls uint64) []byte {
	return append(strconv.AppendUint([]byte{'=', byte(k), ':'}, calls, 10), '\n')
}

// withHead is the head part of a whole message, or of a part of one.
func withHead(head []byte, k kind, f []byte) []byte {
	out := make([]byte, 0, len(head)+len(f)+3)
	out = append(out, head...)
	if k != whole {
		return append(out, '=', byte(k), '\n')
	}
	return append(out, f...)
}

// parse reads a head part. Errors: Malformed.
func parse(part []byte) (control, error) {
	if len(part) == 0 {
		return control{}, nil
	}
	if part[0] != '=' {
		h, n, err := http1.ParseHead(part, maxHeadPart)
		if err != nil || n == len(part) {
			return control{}, nil // not from a proxy; whoever gets it judges it
		}
		c := control{kind: whole, head: h.Octets}
		switch rest := part[n:]; string(rest) {
		case "=h\n":
			c.kind = headOnly
		case "=u\n":
			c.kind = switched
		default:
			c.framing, err = parseFraming(rest)
		}
		return c, err
	}
	if len(part) < 3 || controlNames[kind(part[1])] == "" {
		return control{}, malformed("head %.40q", part)
	}
	c, rest := control{kind: kind(part[1])}, part[2:]
	var err error
	switch {
	case c.kind == body:
		if rest[0] != '\n' {
			return c, malformed("head %.40q", part)
		}
		c.framing, err = parseFraming(rest[1:])
	case (c.kind == ended || c.kind == broken) && rest[0] == ':':
		c.number, err = strconv.ParseUint(string(bytes.TrimSuffix(rest[1:], []byte{'\n'})), 10, 64)
		if err != nil {
			err = malformed("head %.40q", part)
		}
	case string(rest) != "\n":
		err = malformed("head %.40q", part)
	}
	return c, err
}

// framingLine says how a body of this entity was framed, as the line at the end of a head part. raw is the body as received.
func framingLine(f http1.Framing, raw, entity []byte, parts []http1.FramingPart) []byte {
	if f.Kind != http1.Chunked {
		return []byte{'\n'}
	}
	for _, upper := range []bool{false, true} {
		g := regular(entity, parts, upper)
		if g == nil || !bytes.Equal(g.appendTo(make([]byte, 0, len(raw)), entity), raw) {
			continue
		}
		out := []byte("=c:")
		if upper {
			out = []byte("=C:")
		}
		for i, r := range g.sizes {
			if i > 0 {
				out = append(out, ' ')
			}
			if out = strconv.AppendInt(out, r.size, 10); r.times > 1 {
				out = strconv.AppendInt(append(out, '*'), r.times, 10)
			}
		}
		return append(out, '\n')
	}
	var all []byte
	at := int64(0)
	for _, p := range parts {
		all = binary.AppendUvarint(all, uint64(p.At-at))
		all = binary.AppendUvarint(all, uint64(len(p.Octets)))
		all = append(all, p.Octets...)
		at = p.At
	}
	return append(base64.RawStdEncoding.AppendEncode([]byte("=f:"), all), '\n')
}

// regular is the framing of chunks without anything beside their sizes, cut as parts say; nil if it cannot be that.
func regular(entity []byte, parts []http1.FramingPart, upper bool) *framing {
	g := &framing{regular: true, upper: upper}
	at := int64(0)
	for _, p := range parts {
		if size := p.At - at; size > 0 && p.At < int64(len(entity)) {
			if n := len(g.sizes); n > 0 && g.sizes[n-1].size == size {
				g.sizes[n-1].times++
			} else {
				g.sizes = append(g.sizes, run{size, 1})
			}
		}
		at = p.At
	}
	if len(g.sizes) > maxChunks/16 {
		return nil
	}
	return g
}

func parseFraming(line []byte) (*framing, error) {
	if string(line) == "\n" {
		return nil, nil
	}
	text, ok := bytes.CutSuffix(line, []byte{'\n'})
	if !ok || len(text) < 3 || text[0] != '=' || text[2] != ':' {
		return nil, malformed("framing %.40q", line)
	}
	switch text[1] {
	case 'c', 'C':
		f := &framing{regular: true, upper: text[1] == 'C'}
		chunks := int64(0)
		for s := range strings.FieldsSeq(string(text[3:])) {
			size, times, many := strings.Cut(s, "*")
			r := run{times: 1}
			var err, err2 error
			r.size, err = strconv.ParseInt(size, 10, 63)
			if many {
				r.times, err2 = strconv.ParseInt(times, 10, 32)
			}
			if chunks += r.times; err != nil || err2 != nil || r.size < 1 || r.times < 1 || chunks > maxChunks {
				return nil, malformed("framing %.40q", line)
			}
			f.sizes = append(f.sizes, r)
		}
		return f, nil
	case 'f':
		return parseParts(text[3:])
	}
	return nil, malformed("framing %.40q", line)
}

func parseParts(text []byte) (*framing, error) {
	all, err := base64.RawStdEncoding.DecodeString(string(text))
	if err != nil {
		return nil, malformed("framing: %w", err)
	}
	f := &framing{}
	at := uint64(0)
	for len(all) > 0 {
		gap, n := binary.Uvarint(all)
		if n <= 0 || gap > 1<<62 || at+gap > 1<<62 {
			return nil, malformed("framing of chunks")
		}
		size, m := binary.Uvarint(all[n:])
		if m <= 0 || size > uint64(len(all)-n-m) {
			return nil, malformed("framing of chunks")
		}
		at += gap
		f.parts = append(f.parts, http1.FramingPart{At: int64(at), Octets: all[n+m : n+m+int(size)]})
		all = all[n+m+int(size):]
	}
	return f, nil
}

// appendTo appends the body as it was received.
func (f *framing) appendTo(dst, entity []byte) []byte {
	if f == nil {
		return append(dst, entity...)
	}
	if !f.regular {
		return http1.AppendRaw(dst, entity, f.parts)
	}
	chunk := func(p []byte) {
		from := len(dst)
		dst = strconv.AppendInt(dst, int64(len(p)), 16)
		if f.upper {
			copy(dst[from:], bytes.ToUpper(dst[from:]))
		}
		dst = append(append(append(dst, "\r\n"...), p...), "\r\n"...)
	}
	for _, r := range f.sizes {
		for range r.times {
			if r.size >= int64(len(entity)) {
				break // more than the entity has: what is left is the last chunk
			}
			chunk(entity[:r.size])
			entity = entity[r.size:]
		}
	}
	if len(entity) > 0 {
		chunk(entity)
	}
	return append(dst, "0\r\n\r\n"...)
}
