package main

import (
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/shape"
)

// summarize logs what was found and what is missing.
func summarize(g *global, o decodeOptions, r *capture.Summary, l *listing) {
	g.note("%s", found(r))
	for i, s := range r.Streams {
		out, back := s.Octets[0], s.Octets[1]
		g.note("stream %d: messages %d + %d bytes, shapes %d + %d, sync %d + %d", i+1,
			out.Data, back.Data, out.Shape, back.Shape, out.Sync, back.Sync)
		for _, p := range s.Problems {
			g.warn("stream %d: %s", i+1, shorten(p, 300))
		}
		if s.Cut {
			g.warn("stream %d is not whole: "+
				"a direction begins without its hello, ends without its close, or lacks bytes", i+1)
		}
	}
	if idle := l.idle; idle > 0 && o.output == "text" && !g.verbose {
		g.note("%s of the proxies alone left out; -v lists all", count(idle, "message"))
	}
	if n := r.Others[capture.OtherUpgraded]; n > 0 {
		g.warn("%s upgraded to hhfr, and no hello came after", count(n, "connection"))
	}
	if l.messages == 0 && len(r.Streams) == 0 && r.Partial() {
		g.warn("%v; found instead: %s", capture.ErrNothing, instead(r))
	}
	warnOfGaps(g, &r.Stats)
	warnOfLack(g, o, r, l.lacking, count(len(l.shapes), "shape"))
	if n := l.lackingContracts; n > 0 {
		g.warn("%s under shapes that the description of their service makes: --schema names its WSDL, and a store "+
			"that one of the peers used has them, too", count(n, "message"))
	}
	warnOfContexts(g, o, r, l)
	warnOfStore(g, r.StoreFailure)
	if l.unread > 0 {
		g.warn("%s not decoded for that: the store may have what is missing", count(l.unread, "message"))
	}
}

// warnOfStore warns that a store could not be read.
func warnOfStore(g *global, failure error) {
	if failure != nil {
		g.warn("not all that was asked for could be read: %v", failure)
	}
}

// warnOfGaps warns of what a capture lacks.
func warnOfGaps(g *global, s *flow.Stats) {
	if s.Truncated {
		g.warn("the capture is cut off or damaged at offset %d", s.TruncatedAt)
	}
	if s.Gaps > 0 {
		g.warn("%s in the capture, with at least %s missing", count(s.Gaps, "gap"), count(s.MissingOctets, "byte"))
	}
	if s.Evicted > 0 {
		g.warn("%s cut in two: more were open at once than are followed", count(s.Evicted, "connection"))
	}
	if s.Dropped > 0 {
		g.warn("%s dropped: more waited for earlier ones than is kept", count(s.Dropped, "byte"))
	}
}

// found describes what was found, in one line.
func found(r *capture.Summary) string {
	c, list := r.Counts(), []string{}
	if r.Stats.Packets > 0 {
		list = append(list, count(r.Stats.Packets, "packet"), count(r.Stats.TCPFlows, "TCP connection"))
	}
	if r.Stats.UDPDatagrams > 0 {
		list = append(list, count(r.Stats.UDPDatagrams, "UDP datagram"))
	}
	messages := []string{count(len(r.Streams), "stream"), count(c.Messages, "message")}
	for _, n := range []struct {
		n     int
		state capture.State
	}{
		{c.Verified, capture.Verified}, {c.Unverified, capture.Unverified}, {c.Withdrawn, capture.Withdrawn},
		{c.Incomplete, capture.Incomplete}, {c.Cancelled, capture.Cancelled}, {c.Undecodable, capture.Undecodable},
		{c.Unchecked, capture.Unchecked},
	} {
		if n.n > 0 {
			messages = append(messages, fmt.Sprintf("%d %v", n.n, n.state))
		}
	}
	if len(list) == 0 {
		return strings.Join(messages, ", ")
	}
	return strings.Join(list, ", ") + "; " + strings.Join(messages, ", ")
}

// warnOfContexts warns how many messages need contexts of sessions with unchanging headers that no
// store has: in one line, however many there are.
func warnOfContexts(g *global, o decodeOptions, r *capture.Summary, l *listing) {
	those := count(len(l.contexts), "context")
	for uri := range l.contexts {
		if len(l.contexts) == 1 {
			those = "the context " + uri
		}
	}
	warnOfLack(g, o, r, l.lackingContexts, those)
}

// warnOfLack warns in the same way of any missing thing.
func warnOfLack(g *global, o decodeOptions, r *capture.Summary, messages int, what string) {
	if messages == 0 {
		return
	}
	need := "need"
	if messages == 1 {
		need = "needs"
	}
	source := "capture"
	if r.Stats.Packets == 0 {
		source = "input"
	}
	those := fmt.Sprintf("%s %s %s that neither the %s nor", count(messages, "message"), need, what, source)
	if o.store.spec == "" {
		known := ""
		if all := defaultStores(); len(all) > 0 {
			known = ": this user has " + strings.Join(all, ", ")
		}
		g.warn("%s a store has; --store names one%s", those, known)
		return
	}
	g.warn("%s the store %s has", those, o.store.spec)
}

// shapeName is the short name of a missing shape: the beginning of its fingerprint. Some streams
// carry no more of it.
func shapeName(uri string) string {
	const digits = 16
	name := strings.TrimPrefix(uri, shape.URIPrefix)
	return name[:min(len(name), digits)]
}
