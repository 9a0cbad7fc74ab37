package decoding

import (
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/summary"
	"github.com/hhfr/hhfr/internal/capture"
)

// summarize logs what was found and what is missing.
func summarize(g *command.Global, o DecodeOptions, r *capture.Summary, l *listing.Listing) {
	g.Note("%s", summary.Found(r))
	found := l.Found()
	if found.Printed == 0 && found.Messages > found.Idle {
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
	if idle := found.Idle; idle > 0 && o.Output == "text" && !g.Verbose {
		g.Note("%s of the proxies alone left out; -v lists all", printing.Count(idle, "message"))
	}
	if n := r.Others[capture.OtherUpgraded]; n > 0 {
		g.Warn("%s upgraded to hhfr, and no hello came after", printing.Count(n, "connection"))
	}
	if found.Messages == 0 && len(r.Streams) == 0 && r.Partial() {
		g.Warn("%v; found instead: %s", capture.ErrNothing, summary.Instead(r))
	}
	warnOfTLS(g, r)
	summary.WarnOfGaps(g, &r.Stats)
	warnOfLack(g, o, r, found.Lacking, printing.Count(found.Shapes, "shape"))
	if n := found.LackingContracts; n > 0 {
		g.Warn("%s under shapes that the description of their service makes: --schema names its WSDL, and a store "+
			"that one of the peers used has them, too", printing.Count(n, "message"))
	}
	warnOfContexts(g, o, r, &found)
	if n := o.choice.TooLong(); n > 0 {
		g.Warn("%s too long for --match, or the expression takes too many steps there: left out",
			printing.Count(n, "envelope"))
	}
	summary.WarnOfStore(g, r.StoreFailure)
	if found.Unread > 0 {
		g.Warn("%s not decoded for that: the store may have what is missing", printing.Count(found.Unread, "message"))
	}
}

// warnOfContexts warns how many messages need contexts of sessions with unchanging headers that no
// store has: in one line, however many there are.
func warnOfContexts(g *command.Global, o DecodeOptions, r *capture.Summary, l *listing.Findings) {
	those := printing.Count(len(l.Contexts), "context")
	if len(l.Contexts) == 1 {
		those = "the context " + l.Contexts[0]
	}
	warnOfLack(g, o, r, l.LackingContexts, those)
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
