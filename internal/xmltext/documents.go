package xmltext

import (
	"errors"
	"fmt"
	"io"
	"iter"
)

// Documents cuts a sequence of XML documents, one after the other, into single ones, each as soon
// as it is complete. White space between two documents belongs to neither; comments and
// instructions before a root element belong to the document that follows. If the input stops being
// XML, the rest is one document. A document of more than limit bytes is an error.
func Documents(r io.Reader, limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		d := documents{from: r, limit: limit}
		for {
			doc, err := d.next()
			if errors.Is(err, io.EOF) || !yield(doc, err) || err != nil {
				return
			}
		}
	}
}

type documents struct {
	from  io.Reader
	limit int
	buf   []byte // begins with the document
	ended bool   // end of the input
}

// next returns the next document, or io.EOF after the last.
func (d *documents) next() ([]byte, error) {
	at, depth := 0, 0
	tk := New(nil)
	for malformed := false; ; {
		if at == 0 {
			for len(d.buf) > 0 && IsSpace(d.buf[0]) {
				d.buf = d.buf[1:]
			}
		}
		for !malformed && at < len(d.buf) {
			tk.Reset(d.buf[at:])
			tok, err := tk.Next()
			if err != nil {
				malformed = !errors.Is(err, &Error{Code: Truncated})
				break
			}
			at += tok.To
			switch tok.Kind {
			case Start:
				depth++
			case End:
				depth--
			case Empty, Text, Comment, Inst, CDATA, Doctype:
			}
			if depth <= 0 && (tok.Kind == End || tok.Kind == Empty) {
				doc := d.buf[:at:at]
				d.buf = d.buf[at:]
				return doc, nil
			}
		}
		switch {
		case d.ended && len(d.buf) == 0:
			return nil, io.EOF
		case d.ended:
			doc := d.buf
			d.buf = nil
			return doc, nil
		case len(d.buf) > d.limit:
			return nil, fmt.Errorf("a document of more than %d bytes", d.limit)
		}
		if err := d.read(); err != nil {
			return nil, err
		}
	}
}

// read reads more; documents that were returned keep their bytes.
func (d *documents) read() error {
	const chunk = 32 << 10
	have := len(d.buf)
	d.buf = append(d.buf, make([]byte, chunk)...)
	n, err := d.from.Read(d.buf[have:])
	d.buf = d.buf[:have+n]
	if errors.Is(err, io.EOF) {
		d.ended = true
		return nil
	}
	return err
}
