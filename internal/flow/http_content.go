package flow

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/hhfr/hhfr/internal/http1"
)

var (
	errLimit         = errors.New("longer than the limit")
	errUnknownCoding = errors.New("it is not known")
)

// codingOf is the content coding that a head names, as [HTTPMessage.Coding].
func codingOf(h *http1.Head) string {
	codings := h.Tokens("Content-Encoding")
	if len(codings) == 1 && codings[0] == "identity" {
		return ""
	}
	return strings.Join(codings, ", ")
}

// decodeContent undoes the content coding of m's body, up to limit bytes.
func decodeContent(m *HTTPMessage, limit int64, bodies func() BodyStore) {
	if m.Coding == "" || m.Body.Len() == 0 {
		return
	}
	plain := bodies()
	err := undo(plain, m.Coding, m.Body.Reader(), limit)
	if errors.Is(err, io.ErrUnexpectedEOF) && !m.Complete() {
		err = nil // as far as it was captured
	}
	if m.CodingErr = err; err == nil || errors.Is(err, errLimit) {
		m.Body.Free()
		m.Body = plain
		return
	}
	plain.Free()
}

// maxCodings bounds the codings of one message.
const maxCodings = 4

// undo writes the decoded content, up to limit bytes.
func undo(to io.Writer, coding string, coded io.Reader, limit int64) error {
	codings := strings.Split(coding, ", ")
	if len(codings) > maxCodings {
		return fmt.Errorf("%d content codings", len(codings))
	}
	r := coded
	for _, one := range slices.Backward(codings) { // the last one was applied last
		decoder, err := decoderOf(one, bufio.NewReader(r))
		if err != nil {
			return fmt.Errorf("content coding %s: %w", coding, err)
		}
		defer decoder.end()
		r = decoder
	}
	n, err := io.Copy(to, io.LimitReader(r, limit))
	if err == nil && n == limit {
		if more, _ := io.ReadFull(r, make([]byte, 1)); more > 0 {
			err = errLimit
		}
	}
	if err != nil {
		return fmt.Errorf("content coding %s: %w", coding, err)
	}
	return nil
}

// contentDecoder undoes one content coding.
type contentDecoder struct {
	io.Reader
	end func()
}

// maxWindow is the window that decoders of zstd are to have in HTTP (RFC 9659), in bytes.
const maxWindow = 8 << 20

func decoderOf(coding string, in *bufio.Reader) (d contentDecoder, err error) {
	d.end = func() {}
	switch coding {
	case "identity":
		d.Reader = in
	case "gzip", "x-gzip":
		d.Reader, err = gzip.NewReader(in)
	case "deflate": // zlib by the standard, often without its header
		if magic, _ := in.Peek(2); len(magic) == 2 && magic[0]&15 == 8 && (int(magic[0])<<8|int(magic[1]))%31 == 0 {
			d.Reader, err = zlib.NewReader(in)
		} else {
			d.Reader = flate.NewReader(in)
		}
	case "br":
		d.Reader, err = unbrotli(in)
	case "zstd":
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return d, err
		}
		d.Reader, d.end = z, z.Close
	default:
		return d, errUnknownCoding
	}
	return d, err
}
