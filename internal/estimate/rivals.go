package estimate

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/hhfr/hhfr/internal/http1"
)

// rivals are what else makes messages small.
type rivals struct {
	gzip *gzip.Writer
	buf  bytes.Buffer
	zstd *zstd.Encoder // with a dictionary before each message

	known   map[resource][]byte // dictionaries
	order   []resource          // of them, the oldest first
	tunnels [2]*tunnel          // zlib, zstd
}

// resource is what a reply is of.
type resource struct{ server, target string }

const (
	// mostDictionary is the longest body that is a dictionary, in bytes, and mostDictionaries how
	// many there are at once; beyond it the oldest one is forgotten.
	mostDictionary   = 256 << 10
	mostDictionaries = 64
)

func newRivals(level int) (r *rivals, err error) {
	r = &rivals{gzip: gzip.NewWriter(nil), known: map[resource][]byte{}}
	if r.zstd, err = newZstd(&r.buf, level); err != nil {
		return nil, err
	}
	for i, make := range [...]func(*bytes.Buffer) (window, error){newZlib, func(b *bytes.Buffer) (window, error) {
		return newZstd(b, level)
	}} {
		if r.tunnels[i], err = newTunnel(make); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func newZstd(to *bytes.Buffer, level int) (*zstd.Encoder, error) {
	return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithEncoderCRC(false), zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(cmp.Or(level, 3))))
}

// plainBody returns where the body of a message begins; 0: it has none, or a content coding.
func plainBody(m *message) int {
	h, n, err := http1.ParseHead(m.octets, 0)
	if err != nil || n == len(m.octets) {
		return 0
	}
	if _, coded := h.Get("Content-Encoding"); coded {
		return 0
	}
	return n
}

// gzipped returns the lengths of a request and of its reply, with each body compressed by itself if
// that is shorter.
func (r *rivals) gzipped(c *capturedCall) (request, reply int64, err error) {
	if request, err = r.zipped(&c.request); err != nil {
		return 0, 0, err
	}
	reply, err = r.zipped(&c.reply)
	return request, reply, err
}

func (r *rivals) zipped(m *message) (int64, error) {
	whole := int64(len(m.octets))
	n := plainBody(m)
	if n == 0 {
		return whole, nil
	}
	r.buf.Reset()
	r.gzip.Reset(&r.buf)
	_, err := r.gzip.Write(m.octets[n:])
	if err = errors.Join(err, r.gzip.Close()); err != nil {
		return 0, err
	}
	return min(whole, int64(n+len("Content-Encoding: gzip\r\n")+r.buf.Len())), nil
}

// What RFC 9842 has messages say, and the sizes of the frame header of dcz, with its hash, and of
// that of zstd.
const (
	offersDCZ = "Accept-Encoding: dcz\r\n"
	offers    = `Available-Dictionary: :AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:` + "\r\n"
	isDCZ     = "Content-Encoding: dcz\r\nVary: accept-encoding, available-dictionary\r\n"
	isNext    = "Use-As-Dictionary: match=\"%s\"\r\n"
	dczHeader = 40 + 6
)

// withDictionary returns the lengths of a request and of its reply, of which the latter is
// compressed with the reply before it of the same URL as the dictionary, if that is shorter.
func (r *rivals) withDictionary(c *capturedCall) (request, reply int64, err error) {
	request, reply = int64(len(c.request.octets)+len(offersDCZ)), int64(len(c.reply.octets))
	n := plainBody(&c.reply)
	if n == 0 {
		return request, reply, nil
	}
	of, body := resource{c.conn.server.String(), c.reply.target}, c.reply.octets[n:]
	dictionary, known := r.known[of]
	if known {
		request += int64(len(offers))
		made, err := r.behind(dictionary, body)
		if err != nil {
			return 0, 0, err
		}
		reply = min(reply, int64(n+len(isDCZ)+dczHeader)+made)
	}
	if len(body) <= mostDictionary {
		r.learn(of, body)
		reply += int64(len(fmt.Sprintf(isNext, of.target)))
	}
	return request, reply, nil
}

// behind returns the length of a body that is compressed with a dictionary before it, without the
// header of its frame.
func (r *rivals) behind(dictionary, body []byte) (int64, error) {
	r.buf.Reset()
	r.zstd.Reset(&r.buf)
	_, err := r.zstd.Write(dictionary)
	err = errors.Join(err, r.zstd.Flush())
	before := r.buf.Len()
	_, failed := r.zstd.Write(body)
	err = errors.Join(err, failed, r.zstd.Close())
	return int64(r.buf.Len() - before), err
}

// learn has a body be the dictionary of the next reply.
func (r *rivals) learn(of resource, body []byte) {
	if _, known := r.known[of]; !known {
		if len(r.order) == mostDictionaries {
			delete(r.known, r.order[0])
			r.order = r.order[1:]
		}
		r.order = append(r.order, of)
	}
	r.known[of] = body
}
