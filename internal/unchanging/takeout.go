// Package unchanging takes header blocks that both ends have agreed on out of messages, and puts
// them back.
package unchanging

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// HeaderMark begins the reference that stands on a stream in the place of an unchanging header: the
// mark, the name of the block ([headerName]), and headerEnd. Where a message contains these bytes
// itself, they are written with headerOwn. The reference looks like an element, so that it is part
// of a message's shape and costs no byte. It has the name and not a number, so that the check of a
// message covers the content of the block.
const (
	Mark      = "<hhfr:header-"
	headerEnd = "/>"
	headerOwn = "-"
)

// headerName returns the name of a block in its reference: the first 8 bytes of its SHA-256, in
// hexadecimal digits.
func headerName(block string) string {
	sum := sha256.Sum256([]byte(block))
	return hex.EncodeToString(sum[:headerNameLen])
}

const headerNameLen = 8

// headerWindow is how much of a body is searched for unchanging headers, in bytes: they are at its
// beginning.
const headerWindow = 64 << 10

// TakeOut returns the part of a body that travels in a session with these unchanging headers
// (docs/negotiation.md, section 3.2).
func TakeOut(blocks []string, body []byte) []byte {
	out, _ := (&taking{unused: slices.Clone(blocks)}).rewrite(nil, body, true) // it refuses nothing
	return out
}

// PutBack is the reverse of TakeOut. Errors: Malformed; what comes before the error is returned,
// too.
func PutBack(blocks []string, octets []byte) ([]byte, error) {
	p := &putting{Texts: slices.Clone(blocks)}
	out, _ := p.rewrite(nil, octets, true)
	return out, p.err
}

// Reader is PutBack for a body while it is read.
func Reader(blocks []string, body io.Reader) io.Reader {
	return &putter{from: io.NopCloser(body), rule: putting{Texts: slices.Clone(blocks)}}
}

// Lacks finds a reference in a body to a block that is none of these, and returns its name; empty
// if there is none.
func Lacks(blocks []string, octets []byte) (name string) {
	for {
		at := bytes.Index(octets, []byte(Mark))
		if at < 0 {
			return ""
		}
		what, length, _ := referred(octets[at:])
		if isHeaderName(what) && !slices.ContainsFunc(blocks, func(b string) bool { return headerName(b) == what }) {
			return what
		}
		octets = octets[at+max(length, 1):]
	}
}

func isHeaderName(s string) bool {
	octets, err := hex.DecodeString(s)
	return err == nil && len(octets) == headerNameLen && strings.ToLower(s) == s
}

// taker writes the part of a body that travels.
type taker struct {
	to   io.Writer
	rule taking
	look func(beginning []byte) // nil: it was called, or nobody looks
	in   []byte                 // written, and not yet rewritten
	made []byte
}

// Write rewrites what is decided.
func (t *taker) Write(p []byte) (int, error) {
	if err := t.write(p, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close rewrites the rest.
func (t *taker) Close() error { return t.write(nil, true) }

func (t *taker) write(p []byte, last bool) error {
	t.in = append(t.in, p...)
	if t.look != nil && len(t.in) > 0 {
		t.look(t.in)
		t.look = nil
	}
	var taken int
	t.made, taken = t.rule.rewrite(t.made[:0], t.in, last)
	t.in = t.in[:copy(t.in, t.in[taken:])]
	if len(t.made) == 0 {
		return nil
	}
	_, err := t.to.Write(t.made)
	return err
}

// putter reads the body from the part of it that traveled.
type putter struct {
	from io.ReadCloser
	rule putting
	look func(beginning []byte) // nil: it was called, or nobody looks
	in   []byte                 // read, and not yet rewritten
	out  []byte                 // rewritten, and not yet returned
	made []byte                 // the memory of out
	err  error
}

// Read returns what is there, and waits if there is nothing.
func (r *putter) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.more()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// more reads once.
func (r *putter) more() {
	const chunk = 16 << 10
	r.in = slices.Grow(r.in, chunk)
	n, err := r.from.Read(r.in[len(r.in) : len(r.in)+chunk])
	r.in = r.in[:len(r.in)+n]
	var taken int
	r.made, taken = r.rule.rewrite(r.made[:0], r.in, err != nil)
	r.out = r.made
	if r.look != nil && len(r.made) > 0 {
		r.look(r.made)
		r.look = nil
	}
	r.in = r.in[:copy(r.in, r.in[taken:])]
	if r.err = r.rule.err; r.err == nil {
		r.err = err
	}
}

// Close closes the body below.
func (r *putter) Close() error { return r.from.Close() }

// taking takes blocks out, each once, at its first occurrence.
type taking struct {
	unused []string // "": taken out
	at     int      // bytes of the body before the current ones
	taken  *atomic.Int64
}

// rewrite appends to dst the rewritten beginning of bytes, and reports how many it has taken; the
// rest is passed again, with what follows. last: nothing follows, all is taken.
func (t *taking) rewrite(dst, octets []byte, last bool) ([]byte, int) {
	i := 0
	for {
		n := bytes.IndexByte(octets[i:], Mark[0])
		if n < 0 {
			n = len(octets) - i
		}
		dst = append(dst, octets[i:i+n]...)
		i += n
		rest := octets[i:]
		if len(rest) == 0 || t.undecided(rest, t.at+i) && !last {
			t.at += i
			return dst, i
		}
		switch k := t.block(rest, t.at+i); {
		case k >= 0:
			dst = reference(dst, headerName(t.unused[k]))
			i += len(t.unused[k])
			t.unused[k] = ""
			if t.taken != nil {
				t.taken.Add(1)
			}
		case bytes.HasPrefix(rest, []byte(Mark)):
			dst = reference(dst, headerOwn)
			i += len(Mark)
		default:
			dst = append(dst, rest[0])
			i++
		}
	}
}

func reference(dst []byte, what string) []byte {
	dst = append(dst, Mark...)
	dst = append(dst, what...)
	return append(dst, headerEnd...)
}

// block returns the index of the block that bytes begin with, at an offset of the body; -1: none.
func (t *taking) block(octets []byte, at int) int {
	return slices.IndexFunc(t.unused, func(b string) bool {
		return b != "" && at+len(b) <= headerWindow && bytes.HasPrefix(octets, []byte(b))
	})
}

// undecided reports whether more bytes may turn these into a block or the mark.
func (t *taking) undecided(octets []byte, at int) bool {
	begins := func(s string) bool { return len(octets) < len(s) && s[:len(octets)] == string(octets) }
	return begins(Mark) || slices.ContainsFunc(t.unused, func(b string) bool {
		return at+len(b) <= headerWindow && begins(b)
	})
}

// putting puts blocks back.
type putting struct {
	Texts []string // "": put back
	at    int      // bytes before the current ones
	err   error
}

// rewrite is like that of taking; it fails with err.
func (p *putting) rewrite(dst, octets []byte, last bool) ([]byte, int) {
	i := 0
	for {
		n := bytes.Index(octets[i:], []byte(Mark))
		if n < 0 {
			n = len(octets) - i - begun(octets[i:], last)
			p.at += i + n
			return append(dst, octets[i:i+n]...), i + n
		}
		dst = append(dst, octets[i:i+n]...)
		i += n
		what, length, whole := referred(octets[i:])
		if !whole && !last {
			p.at += i
			return dst, i
		}
		text, err := p.text(what)
		if err != nil {
			p.err = &negotiate.Error{Code: negotiate.Malformed, At: int64(p.at + i), Remote: true, Err: err}
			return dst, len(octets)
		}
		dst = append(dst, text...)
		i += length
	}
}

// begun returns how many bytes at the end may be the beginning of a mark.
func begun(octets []byte, last bool) int {
	for n := min(len(octets), len(Mark)-1); n > 0 && !last; n-- {
		if string(octets[len(octets)-n:]) == Mark[:n] {
			return n
		}
	}
	return 0
}

// referred reads a reference: the name, and the length of the reference. Not whole: the bytes end
// before the reference does.
func referred(octets []byte) (what string, length int, whole bool) {
	rest := octets[len(Mark):]
	const most = 2*headerNameLen + len(headerEnd)
	n := bytes.Index(rest[:min(len(rest), most)], []byte(headerEnd))
	if n < 0 {
		return "", 0, len(rest) >= most
	}
	return string(rest[:n]), len(Mark) + n + len(headerEnd), true
}

// text returns the text that replaces a reference.
func (p *putting) text(what string) (string, error) {
	if what == headerOwn {
		return Mark, nil
	}
	if !isHeaderName(what) {
		return "", errors.New("the place of an unchanging header names none")
	}
	k := slices.IndexFunc(p.Texts, func(b string) bool { return b != "" && headerName(b) == what })
	if k < 0 {
		return "", fmt.Errorf("unchanging header %s stands there, which was not agreed on, or stands twice", what)
	}
	text := p.Texts[k]
	p.Texts[k] = ""
	return text, nil
}
