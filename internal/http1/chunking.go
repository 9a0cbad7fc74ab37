package http1

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
)

var errChunking = &Error{Code: Malformed, What: "line of chunks"}

// Chunking is how a chunked body was cut, in a form that fits a line.
type Chunking struct {
	regular bool
	upper   bool       // digits of sizes
	sizes   []chunkRun // for a regular body: of all chunks except the last
	parts   []FramingPart
}

// chunkRun is a number of chunks of one size.
type chunkRun struct{ size, times int64 }

// maxChunks bounds the number of chunks in one line.
const maxChunks = 1 << 20

// ChunkingLine describes in a line how a chunked body with an entity of size bytes was framed. The
// line is that of docs/proxy.md, section 3.
func ChunkingLine(size int64, parts []FramingPart) string {
	for _, upper := range []bool{false, true} {
		g := regular(size, parts, upper)
		if g == nil {
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
		return string(out) + "\n"
	}
	var all []byte
	at := int64(0)
	for _, p := range parts {
		all = binary.AppendUvarint(all, uint64(p.At-at))
		all = binary.AppendUvarint(all, uint64(len(p.Octets)))
		all = append(all, p.Octets...)
		at = p.At
	}
	return "=f:" + base64.RawStdEncoding.EncodeToString(all) + "\n"
}

// regular is the framing of chunks with nothing beside their sizes, cut as parts say; nil if it is
// not regular.
func regular(size int64, parts []FramingPart, upper bool) *Chunking {
	g := &Chunking{regular: true, upper: upper}
	var line []byte
	at := int64(0)
	for i, p := range parts {
		line = line[:0]
		if i > 0 {
			line = append(line, "\r\n"...)
		}
		end := size
		if i+1 < len(parts) {
			end = parts[i+1].At
		}
		if p.At == size {
			line = AppendLastChunk(line)
		} else {
			line = g.appendSize(line, end-p.At)
		}
		if !bytes.Equal(line, p.Octets) {
			return nil
		}
		if length := p.At - at; length > 0 && p.At < size {
			if n := len(g.sizes); n > 0 && g.sizes[n-1].size == length {
				g.sizes[n-1].times++
			} else {
				g.sizes = append(g.sizes, chunkRun{length, 1})
			}
		}
		at = p.At
	}
	if at != size || len(parts) == 0 || len(g.sizes) > maxChunks/16 {
		return nil
	}
	return g
}

// ParseChunking parses such a line; nil: it is empty, and the body is not chunked. Errors:
// Malformed.
func ParseChunking(line []byte) (*Chunking, error) {
	if string(line) == "\n" {
		return nil, nil
	}
	text, ok := bytes.CutSuffix(line, []byte{'\n'})
	if !ok || len(text) < 3 || text[0] != '=' || text[2] != ':' {
		return nil, errChunking
	}
	switch text[1] {
	case 'c', 'C':
		f := &Chunking{regular: true, upper: text[1] == 'C'}
		chunks := int64(0)
		for s := range strings.FieldsSeq(string(text[3:])) {
			size, times, many := strings.Cut(s, "*")
			r := chunkRun{times: 1}
			var err, err2 error
			r.size, err = strconv.ParseInt(size, 10, 63)
			if many {
				r.times, err2 = strconv.ParseInt(times, 10, 32)
			}
			if chunks += r.times; err != nil || err2 != nil || r.size < 1 || r.times < 1 || chunks > maxChunks {
				return nil, errChunking
			}
			f.sizes = append(f.sizes, r)
		}
		return f, nil
	case 'f':
		return parseParts(text[3:])
	}
	return nil, errChunking
}

func parseParts(text []byte) (*Chunking, error) {
	all, err := base64.RawStdEncoding.DecodeString(string(text))
	if err != nil {
		return nil, errChunking
	}
	f := &Chunking{}
	at := uint64(0)
	for len(all) > 0 {
		gap, n := binary.Uvarint(all)
		if n <= 0 || gap > 1<<62 || at+gap > 1<<62 {
			return nil, errChunking
		}
		size, m := binary.Uvarint(all[n:])
		if m <= 0 || size > uint64(len(all)-n-m) {
			return nil, errChunking
		}
		at += gap
		f.parts = append(f.parts, FramingPart{At: int64(at), Octets: all[n+m : n+m+int(size)]})
		all = all[n+m+int(size):]
	}
	return f, nil
}
