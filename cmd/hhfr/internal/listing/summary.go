package listing

import (
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/shape"
)

// summarize logs what was found and what is missing.
func summarize(g *command.Global, o DecodeOptions, r *capture.Summary, l *listing) {
	g.Note("%s", summary.Found(r))
	if l.printed == 0 && l.messages > l.idle {
		g.Note("none of them was chosen")
	}
	for i, s := range r.Streams {
		out, back := s.Octets[0], s.Octets[1]
		g.Note("stream %d: messages %d + %d bytes, shapes %d + %d, sync %d + %d", i+1,
			out.Data, back.Data, out.Shape, back.Shape, out.Sync, back.Sync)
		for _, p := range s.Problems {
			g.Warn("stream %d: %s", i+1, printing.Shorten(p, 300))
		}
		if s.Cut {
			g.Warn("stream %d is not whole: "+
				"a direction begins without its hello, ends without its close, or lacks bytes", i+1)
		}
	}
	if idle := l.idle; idle > 0 && o.Output == "text" && !g.Verbose {
		g.Note("%s of the proxies alone left out; -v lists all", printing.Count(idle, "message"))
	}
	if n := r.Others[capture.OtherUpgraded]; n > 0 {
		g.Warn("%s upgraded to hhfr, and no hello came after", printing.Count(n, "connection"))
	}
	if l.messages == 0 && len(r.Streams) == 0 && r.Partial() {
		g.Warn("%v; found instead: %s", capture.ErrNothing, summary.Instead(r))
	}
	warnOfTLS(g, r)
	summary.WarnOfGaps(g, &r.Stats)
	warnOfLack(g, o, r, l.lacking, printing.Count(len(l.shapes), "shape"))
	if n := l.lackingContracts; n > 0 {
		g.Warn("%s under shapes that the description of their service makes: --schema names its WSDL, and a store "+
			"that one of the peers used has them, too", printing.Count(n, "message"))
	}
	warnOfContexts(g, o, r, l)
	summary.WarnOfStore(g, r.StoreFailure)
	if l.unread > 0 {
		g.Warn("%s not decoded for that: the store may have what is missing", printing.Count(l.unread, "message"))
	}
}

// warnOfContexts warns how many messages need contexts of sessions with unchanging headers that no
// store has: in one line, however many there are.
func warnOfContexts(g *command.Global, o DecodeOptions, r *capture.Summary, l *listing) {
	those := printing.Count(len(l.contexts), "context")
	for uri := range l.contexts {
		if len(l.contexts) == 1 {
			those = "the context " + uri
		}
	}
	warnOfLack(g, o, r, l.lackingContexts, those)
}

// warnOfLack warns in the same way of any missing thing.
func warnOfLack(g *command.Global, o DecodeOptions, r *capture.Summary, messages int, what string) {
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
	those := fmt.Sprintf("%s %s %s that neither the %s nor", printing.Count(messages, "message"), need, what, source)
	if o.store.Spec == "" {
		known := ""
		if all := stores.DefaultStores(); len(all) > 0 {
			known = ": this user has " + strings.Join(all, ", ")
		}
		g.Warn("%s a store has; --store names one%s", those, known)
		return
	}
	g.Warn("%s the store %s has", those, o.store.Spec)
}

// shapeName is the short name of a missing shape: the beginning of its fingerprint. Some streams
// carry no more of it.
func shapeName(uri string) string {
	const digits = 16
	name := strings.TrimPrefix(uri, shape.URIPrefix)
	return name[:min(len(name), digits)]
}
