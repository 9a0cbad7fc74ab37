// Package summary says on stderr what was found in captures, and what they lack.
package summary

import (
	"fmt"
	"maps"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/flow"
)

// Instead describes what an input has instead of messages.
func Instead(s *capture.Summary) string {
	kinds := maps.Clone(s.Others)
	for why, n := range s.Stats.Undecoded {
		kinds["packets left out: "+why] = n
	}
	return printing.Kinds(kinds)
}

// WarnOfStore warns that a store could not be read.
func WarnOfStore(g *command.Global, failure error) {
	if failure != nil {
		g.Warn("not all that was asked for could be read: %v", failure)
	}
}

// WarnOfGaps warns of what a capture lacks.
func WarnOfGaps(g *command.Global, s *flow.Stats) {
	if s.Truncated {
		g.Warn("the capture is cut off or damaged at offset %d", s.TruncatedAt)
	}
	if s.Gaps > 0 {
		g.Warn("%s in the capture, with at least %s missing", printing.Count(s.Gaps, "gap"),
			printing.Count(s.MissingOctets, "byte"))
	}
	if s.Evicted > 0 {
		g.Warn("%s cut in two: more were open at once than are followed", printing.Count(s.Evicted, "connection"))
	}
	if s.Dropped > 0 {
		g.Warn("%s dropped: more waited for earlier ones than is kept", printing.Count(s.Dropped, "byte"))
	}
}

// Found describes what was found, in one line.
func Found(r *capture.Summary) string {
	c, list := r.Counts(), []string{}
	if r.Stats.Packets > 0 {
		list = append(list, printing.Count(r.Stats.Packets, "packet"),
			printing.Count(r.Stats.TCPFlows, "TCP connection"))
	}
	if r.Decrypted > 0 {
		list = append(list, fmt.Sprintf("%d decrypted", r.Decrypted))
	}
	if r.Stats.UDPDatagrams > 0 {
		list = append(list, printing.Count(r.Stats.UDPDatagrams, "UDP datagram"))
	}
	messages := []string{printing.Count(len(r.Streams), "stream"), printing.Count(c.Messages, "message")}
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
