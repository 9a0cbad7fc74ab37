package metrics

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/terminal"
	"github.com/hhfr/hhfr/internal/meter"
)

// LiveInterval is how often the live line is renewed.
const LiveInterval = time.Second

// watch shows a live line, if stderr is a terminal, a summary on SIGUSR1, and has syncs sent on
// SIGUSR2, until stop is called.
func (c *ServerCounters) watch(g *command.Global, live bool) (stop func()) {
	summaries, syncs, forget := notifyUser()
	over := make(chan struct{})
	var line *liveLine
	var tick <-chan time.Time
	if live && terminal.Is(g.Err) && !c.g.Quiet && !c.g.Verbose && c.g.LogFormat == "text" {
		line = &liveLine{
			to: c.g.Stderr, width: func() int { return terminal.Columns(g.Err) },
			foreground: func() bool { return terminal.IsForeground(g.Err) },
		}
		c.g.Stderr = line
		ticker := time.NewTicker(LiveInterval)
		forget = func(before func()) func() { return func() { before(); ticker.Stop() } }(forget)
		tick = ticker.C
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-tick:
				line.show(liveText(c.now()))
			case <-summaries:
				c.summarize()
			case <-syncs:
				c.g.Note("a sync goes out on %s", printing.Count(int64(c.Resync()), "stream"))
			case <-over:
				return
			}
		}
	})
	return sync.OnceFunc(func() {
		forget()
		close(over)
		watching.Wait()
		if line != nil {
			line.show("")
		}
	})
}

// liveLine is stderr with a last line that is written anew, below all others.
type liveLine struct {
	to         io.Writer
	width      func() int
	foreground func() bool // the terminal is this process's now

	mu   sync.Mutex
	text string
}

// Write writes what goes above the line.
func (l *liveLine) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text == "" || l.leftLocked() {
		return l.to.Write(b)
	}
	if _, err := fmt.Fprintf(l.to, "\r\x1b[K%s%s", b, l.text); err != nil {
		return 0, err
	}
	return len(b), nil
}

// leftLocked reports whether the terminal is another process's now, such as the shell's after
// Ctrl-Z and bg. There is no line then: what is on the screen is that process's, too.
func (l *liveLine) leftLocked() bool {
	if l.foreground() {
		return false
	}
	l.text = ""
	return true
}

// show replaces the line; empty: there is none. In the background it shows nothing.
func (l *liveLine) show(text string) {
	text = printing.Printable(text)
	if width := l.width(); width > 0 {
		text = printing.Shorten(text, width-1) // a line that is full would wrap
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leftLocked() {
		return
	}
	if text != l.text {
		fmt.Fprintf(l.to, "\r\x1b[K%s", text)
	}
	l.text = text
}

// totals are sums over the upstreams of a role.
type totals struct {
	calls, failed, faults, busy         int64 // over streams and plainly
	overStreams, http, link, opened     int64
	plain, conns, plainBytes, fallBacks int64
	streams, upstreams, connected       int
	roundTrip                           float64
	why                                 string
}

func totalsOf(list []*meter.UpstreamCounts) (t totals) {
	for _, u := range list {
		t.calls += u.Calls
		t.overStreams += u.Calls
		t.failed += u.Failed
		t.faults += u.Faults
		t.busy += u.InProgress
		t.http += u.RequestBytes + u.ReplyBytes
		t.link += u.SentBytes + u.ReceivedBytes
		t.opened += u.Opened
		for _, p := range u.Plain {
			t.calls += p.Calls
			t.failed += p.Failed
			t.faults += p.Faults
			t.plain += p.Calls
			t.conns += p.Connections
			t.plainBytes += p.RequestBytes + p.ReplyBytes
			if p.FallBack {
				t.fallBacks += p.Calls
			}
		}
		t.streams += u.Streams
		t.roundTrip = max(t.roundTrip, u.RoundTrip)
		t.upstreams++
		if u.Streams > 0 {
			t.connected++
		} else if u.Reason != "" {
			t.why = u.Why
		}
	}
	return t
}

// liveText is the live line.
func liveText(s *meter.Snapshot) string {
	t := totalsOf(s.Upstreams)
	parts := []string{printing.Count(t.calls, "call")}
	if t.busy > 0 {
		parts[0] += fmt.Sprintf(" and %d under way", t.busy)
	}
	if t.faults > 0 {
		parts = append(parts, printing.Count(t.faults, "fault"))
	}
	if t.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", t.failed))
	}
	if t.http > 0 {
		became := fmt.Sprintf("%s became %s (%s)", printing.BytesText(t.http), printing.BytesText(t.link),
			printing.RatioText(t.link, t.http))
		parts = append(parts, became)
	}
	if t.plainBytes > 0 {
		parts = append(parts, fmt.Sprintf("%d plain (%s)", t.plain, printing.BytesText(t.plainBytes)))
	}
	switch {
	case t.streams > 0:
		parts = append(parts, printing.Count(t.streams, "stream"))
	case t.why != "":
		parts = append(parts, "no stream: "+t.why)
	}
	if t.roundTrip > 0 {
		took := time.Duration(t.roundTrip * float64(time.Second)).Round(100 * time.Microsecond)
		parts = append(parts, "round trip "+took.String())
	}
	return strings.Join(parts, ", ")
}

// summaryLines is how many upstreams a summary lists; of the others it says their sum.
const summaryLines = 10

// summarize reports what was carried, a line for each upstream: none that carried nothing.
func (c *ServerCounters) summarize() {
	s := c.now()
	list := slices.DeleteFunc(s.Upstreams, func(u *meter.UpstreamCounts) bool {
		return u.Calls == 0 && u.InProgress == 0 && len(u.Plain) == 0 && u.Opened == 0
	})
	for i := range list[:min(len(list), summaryLines)] {
		c.g.Note("%s %s: %s", list[i].Role, list[i].Upstream, summaryText(totalsOf(list[i:i+1]), list[i]))
	}
	if more := list[min(len(list), summaryLines):]; len(more) > 0 {
		c.g.Note("%s more: %s", printing.Count(len(more), "upstream"), summaryText(totalsOf(more), nil))
	}
}

// summaryText is a line of a summary; one is the upstream that it is about, if it is about one.
func summaryText(t totals, one *meter.UpstreamCounts) string {
	text := fmt.Sprintf("%s, %s, %d failed; %d over streams: %s of HTTP, %s on the link, ratio %s; %s opened",
		printing.Count(t.calls, "call"), printing.Count(t.faults,
			"fault"), t.failed, t.overStreams, printing.BytesText(t.http),
		printing.BytesText(t.link), printing.RatioText(t.link, t.http), printing.Count(t.opened, "stream"))
	if t.plain == 0 && t.plainBytes == 0 {
		return text
	}
	text += fmt.Sprintf("; %d plain: %s", t.plain, printing.BytesText(t.plainBytes))
	if t.conns > 0 {
		text += " on " + printing.Count(t.conns, "connection")
	}
	if t.fallBacks > 0 {
		text += ", " + printing.Count(t.fallBacks, "fall-back")
	}
	if one == nil {
		return text
	}
	for i, p := range one.Plain {
		text += []string{" (", ", "}[min(i, 1)] + fmt.Sprintf("%s %d", p.Reason, p.Calls)
		if i == len(one.Plain)-1 {
			text += ")"
		}
	}
	return text
}
