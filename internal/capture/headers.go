package capture

import (
	"bytes"
	"cmp"
	"fmt"
	"io"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// putHeadersBack makes a message of a stream whole: it puts back the headers that its session
// agreed to take out.
func (r *Reader) putHeadersBack(d *Decoded) {
	if !d.inForm || d.State == Undecodable || d.content.Len() == 0 {
		return
	}
	blocks := r.contexts.headers(r.shapes.ctx, d.Session)
	name, err := lacksHeader(blocks, d.content.Reader())
	var unread error
	for err == nil && name != "" && name != absent {
		if unread = r.contexts.fetch(r.shapes.ctx, d.Session, name); unread != nil {
			break
		}
		blocks = r.contexts.headers(r.shapes.ctx, d.Session)
		name, err = lacksHeader(blocks, d.content.Reader())
	}
	switch {
	case err != nil:
	case name == absent:
		return
	case name != "":
		d.LacksContext = ctxstore.SessionURI(d.Session)
		err = fmt.Errorf("the unchanging header %s was taken out of it, "+
			"and neither capture nor store has the context of its session", name)
	default:
		whole := r.bodies.Body()
		_, err = io.Copy(whole, unchanging.Reader(blocks, d.content.Reader()))
		d.content.Free()
		d.content = whole
	}
	if err != nil && d.Whole() {
		d.State, d.Why = Undecodable, err.Error()
		if d.LacksContext != "" {
			d.couldNotRead(cmp.Or(r.store.failure(d.LacksContext), failureOf(unread)))
		}
	}
	if d.LacksContext != "" {
		start, _ := d.content.Start()
		seen := soap.Recognize(start)
		d.Version, d.Operation = seen.Version, seen.Operation
		d.content.Free()
	}
}

// absent is the result of [lacksHeader] for a body in which nothing was taken out.
const absent = "-"

// lacksHeader finds a reference in a body to a block that is none of these, and returns its name;
// empty if all are there, [absent] if nothing was taken out.
func lacksHeader(blocks []string, body io.Reader) (string, error) {
	const chunk, overlap = 64 << 10, 256
	buf := make([]byte, 0, chunk+overlap)
	found := absent
	for {
		n, err := io.ReadFull(body, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if bytes.Contains(buf, []byte(unchanging.Mark)) {
			if found = unchanging.Lacks(blocks, buf); found != "" {
				return found, nil
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return found, nil
		}
		if err != nil {
			return "", err
		}
		buf = buf[:copy(buf, buf[len(buf)-overlap:])]
	}
}
