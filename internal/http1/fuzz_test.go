package http1_test

import (
	"bytes"
	"testing"

	"github.com/hhfr/hhfr/internal/http1"
)

func FuzzHead(f *testing.F) {
	for _, h := range heads {
		f.Add([]byte(h.in))
	}
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 3, 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, n, err := http1.ParseHead(in, 1<<16)
		if err != nil {
			return
		}
		raw := append([]byte{}, h.Before()...)
		raw = append(raw, h.StartLine()...)
		at := len(raw)
		if at += bytes.IndexByte(in[at:], '\n') + 1; at > n {
			t.Fatal("start line beyond the head")
		}
		raw = append(raw, in[len(raw):at]...)
		for _, f := range h.Fields() {
			raw = append(raw, f.Raw...)
			if !bytes.Contains(f.Raw, f.Name) || !bytes.Contains(f.Raw, f.Value) {
				t.Fatalf("field %q is not in its line", f.Raw)
			}
		}
		raw = append(raw, in[len(raw):n]...)
		if !bytes.Equal(raw, in[:n]) || !bytes.Equal(h.Octets, in[:n]) ||
			!bytes.Equal(http1.AppendEdited(nil, &h, nil, nil), in[:n]) {
			t.Fatalf("not the same bytes: %q", raw)
		}
		if tail := in[len(raw)-1]; tail != '\n' {
			t.Fatal("head does not end with a line end")
		}
		again, _, err := http1.ParseHead(in[:n], 1<<16)
		if err != nil || len(again.Fields()) != len(h.Fields()) {
			t.Fatalf("second look differs: %v", err)
		}
		if h.IsReply() {
			_, _ = http1.ReplyFraming(&h, "GET")
		} else {
			_, _ = http1.RequestFraming(&h)
		}
	})
}

func FuzzChunked(f *testing.F) {
	for _, b := range bodies {
		f.Add([]byte(b.in), 3)
	}
	f.Fuzz(func(t *testing.T, in []byte, step int) {
		one := http1.NewBody(http1.Framing{Kind: http1.Chunked})
		one.Record()
		entity, at, err := decode(one, in, len(in)+1)
		two := http1.NewBody(http1.Framing{Kind: http1.Chunked})
		entity2, at2, err2 := decode(two, in, 1+(step&0xff))
		if !bytes.Equal(entity, entity2) || (err == nil) != (err2 == nil) || err == nil && at != at2 {
			t.Fatalf("%q: pieces give %q %d %v, not %q %d %v", in, entity2, at2, err2, entity, at, err)
		}
		if parts, all := one.Framing(); all && err == nil {
			if raw := http1.AppendRaw(nil, entity, parts); !bytes.Equal(raw, in[:at]) {
				t.Fatalf("raw %q, not %q", raw, in[:at])
			}
			checkRechunking(t, in[:at], entity, parts, 1+(step&0xff))
		}
	})
}

// checkRechunking checks that the line for a framing restores a body, also in steps.
func checkRechunking(t *testing.T, raw, entity []byte, parts []http1.FramingPart, step int) {
	t.Helper()
	if pieces := http1.EntityOf(raw, parts); !bytes.Equal(bytes.Join(pieces, nil), entity) {
		t.Fatalf("entity %q, not %q", pieces, entity)
	}
	line := http1.ChunkingLine(int64(len(entity)), parts)
	c, err := http1.ParseChunking([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if all := c.AppendTo(nil, entity); !bytes.Equal(all, raw) {
		t.Fatalf("%q makes %q, not %q", line, all, raw)
	}
	r := c.Rechunk()
	var got []byte
	for at := 0; at < len(entity); at += step {
		got = r.Append(got, entity[at:min(at+step, len(entity))])
	}
	if got = r.End(got); !bytes.Equal(got, raw) {
		t.Fatalf("%q makes %q in steps of %d, not %q", line, got, step, raw)
	}
}
