package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/deflate"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/clock"
)

// Arrival says how much of a message has come, in bytes, at a time since it began.
type Arrival struct {
	Octets int
	At     time.Duration
}

// Said is what a proxy sends of an HTTP message: a head part, and a body in steps.
type Said struct {
	Head []byte
	// Steps are the parts of the body as they are written to the stream; Whole: it is one, in
	// memory.
	Steps []SaidStep
	Whole bool
	// Length is that of the body, as the writer to the stream is told; -1: it is not.
	Length int64
}

// SaidStep is a part of a body that is written at a time since the message began. Flush: it goes to
// the peer at once.
type SaidStep struct {
	At     time.Duration
	Octets []byte
	Flush  bool
}

// Replay finds out what proxies send of messages that came before: their own code waits for the
// bytes, on a clock that goes on when these come. Not safe for concurrent use.
type Replay struct {
	p   *core
	in  *sock.Source
	now replayed
}

// NewReplay returns a replay of proxies with the defaults.
func NewReplay() *Replay {
	cfg := Config{Times: Times{Gather: DefaultGather}, Bounds: Bounds{MaxBuffer: DefaultMaxBuffer}}
	return &Replay{p: &core{long: make(places, maxLong), cfg: cfg}}
}

// Message returns what travels of a message whose bytes are all there, and came so. method is that
// of the request, for a reply; coded is of its direction of the connection. false: it is no such
// message.
func (r *Replay) Message(octets []byte, came []Arrival, method string, coded *deflate.Finder) (s Said, ok bool) {
	if r.in == nil {
		r.in = sock.NewSource(&r.now, &r.now)
	}
	r.now = replayed{octets: octets, came: came, timer: r.now.timer}
	s, ok = r.message(method, coded)
	if len(r.in.Peek()) > 0 || r.now.ended {
		r.in = nil
	}
	return s, ok
}

func (r *Replay) message(method string, coded *deflate.Finder) (s Said, ok bool) {
	ctx := context.Background()
	h, n, st, _ := readHead(ctx, r.in, 0, 0, bytes.HasPrefix(r.now.octets, []byte("HTTP/")))
	if st != stateWhole {
		return s, false
	}
	f, err := http1.RequestFraming(&h)
	if h.IsReply() {
		f, err = http1.ReplyFraming(&h, method)
	}
	if err != nil || f.Kind == http1.Tunnel {
		return s, false
	}
	if without := withoutHTTP2(&h); without != nil {
		h = *without
	}
	_, upgrade := h.Get("Upgrade")
	upgrade = upgrade && !h.IsReply()
	there := r.in.Peek()[n:]
	if !upgrade && (f.Kind == http1.NoBody || f.Kind == http1.Length && f.Length <= int64(len(there))) {
		return r.whole(coded, &h, n, "\n", [][]byte{there[:f.Length]}, int(f.Length)), true
	}
	h = h.Clone()
	g, st := gathered{}, stateFull
	expects := !h.IsReply() && slices.Contains(h.Tokens("Expect"), "100-continue")
	if !upgrade && !expects {
		var release func()
		g, st, release = r.p.gather(ctx, r.in, n, &h, f)
		defer release()
		if st == stateWhole {
			return r.whole(coded, &h, n, g.line(), g.entity(), g.octets), true
		}
	}
	line := "\n"
	if upgrade || f.Kind == http1.Chunked {
		line = restLineOf(g.size)
	}
	a := r.p.arriving(&h, f, line, g.size, st)
	w := &saidWriter{now: &r.now, said: Said{Head: withHead(h.Octets, line), Length: a.length()}}
	r.in.Take(n)
	_, _ = w.Write(nil) // the head waits for what follows
	if expects || a.headGoes(!h.IsReply(), len(r.in.Peek())) {
		_ = w.Flush()
	}
	to, end := unframing(w, a.size)
	err = stream(ctx, r.in, to, a)
	end()
	return w.said, err == nil || f.Kind == http1.UntilClose
}

// whole is a message whose body of so many raw bytes is complete.
func (r *Replay) whole(coded *deflate.Finder, h *http1.Head, n int, line string, entity [][]byte, octets int) Said {
	head, entity := partsOf(coded, h, line, entity)
	size := sizeOf(entity)
	s := Said{Head: head, Length: -1, Whole: size <= inlineBody,
		Steps: []SaidStep{{At: r.now.at, Octets: bytes.Clone(joined(entity))}}}
	r.in.Take(n + octets)
	return s
}

// saidWriter notes what is written, and when.
type saidWriter struct {
	now  *replayed
	said Said
}

// Write implements [bodyWriter].
func (w *saidWriter) Write(p []byte) (int, error) {
	w.said.Steps = append(w.said.Steps, SaidStep{At: w.now.at, Octets: bytes.Clone(p)})
	return len(p), nil
}

// Flush implements [bodyWriter].
func (w *saidWriter) Flush() error {
	w.said.Steps = append(w.said.Steps, SaidStep{At: w.now.at, Flush: true})
	return nil
}

// replayed is a connection from which a message comes as it did before, and the clock and timer of
// the source that reads it.
type replayed struct {
	net.Conn
	clock.Clock
	octets []byte
	came   []Arrival
	read   int
	next   int           // the first of came that is not read
	at     time.Duration // since the message began
	ended  bool          // somebody read on behind it

	timer struct {
		does func()
		at   time.Duration
		runs bool
	}
}

// Read implements [net.Conn]: what comes next, unless the timer is earlier.
func (c *replayed) Read(p []byte) (int, error) {
	for c.next < len(c.came) && c.came[c.next].Octets <= c.read {
		c.next++
	}
	more := c.came[c.next:]
	switch {
	case c.timer.runs && (len(more) == 0 || more[0].At > c.timer.at):
		c.at, c.timer.runs = c.timer.at, false
		c.timer.does()
		return 0, os.ErrDeadlineExceeded
	case len(more) == 0:
		c.ended = true
		return 0, io.EOF
	}
	c.at = max(c.at, more[0].At)
	there := 0
	for _, a := range more {
		if a.At > c.at {
			break
		}
		there = a.Octets
	}
	n := copy(p, c.octets[c.read:there])
	c.read += n
	return n, nil
}

// SetReadDeadline implements [net.Conn]: the timer is what interrupts.
func (c *replayed) SetReadDeadline(time.Time) error { return nil }

// AfterFunc implements [clock.Clock], for the one timer of a source.
func (c *replayed) AfterFunc(d time.Duration, f func()) clock.Timer {
	c.timer.does = f
	c.Reset(d)
	return c
}

// C implements [clock.Timer].
func (c *replayed) C() <-chan time.Time { return nil }

// Stop implements [clock.Timer].
func (c *replayed) Stop() bool {
	runs := c.timer.runs
	c.timer.runs = false
	return runs
}

// Reset implements [clock.Timer].
func (c *replayed) Reset(d time.Duration) bool {
	runs := c.timer.runs
	c.timer.at, c.timer.runs = c.at+d, true
	return runs
}
