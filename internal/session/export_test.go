package session

import (
	"context"
	"crypto/sha256"
	"io"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// ContextDocument writes the context of a session as a responder keeps it before it is joined.
func ContextDocument(f negotiate.Facts, token [16]byte) ([]byte, error) {
	hash := sha256.Sum256(token[:])
	return (&negotiate.Context{Facts: f, TokenHash: hash[:]}).Marshal()
}

// Lend returns a body as a stream gets it, and the function that returns it again from its start.
func Lend(body io.Reader) (lent io.Reader, again func(context.Context) (io.Reader, bool), release func()) {
	k := httpmsg.Keep(body)
	return k.Reader(), k.Again, k.Release
}

// Rewriters return the functions that take unchanging headers out of bodies in a session, and put
// them back.
func Rewriters(blocks []string) (out func(io.Writer) io.WriteCloser, in func(io.ReadCloser) io.ReadCloser) {
	u := &unchanging.Lifter{Texts: blocks}
	return u.Outgoing, u.Incoming
}

// KeepKnown is keepKnown, which the end of a stream calls.
var KeepKnown = coders.KeepKnown

// Held returns how much a RoundTripper has in memory by origin.
func (t *RoundTripper) Held() (origins, names, idle, fallen int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.origins), len(t.names), t.used.Len(), len(t.fallen)
}

// Paths returns the modes of the paths to a stream, in order.
func Paths() (modes []negotiate.Mode) {
	for _, p := range paths {
		modes = append(modes, p.mode)
	}
	return modes
}

// Means returns how a path comes to a connection, by transport.
func Means(mode negotiate.Mode) map[string][]string {
	cells := map[string][]string{}
	for transport, has := range transports[mode] {
		for _, m := range []struct {
			means means
			name  string
		}{{dials, "dials"}, {upgrades, "101"}, {selects, "ALPN"}} {
			if has&m.means != 0 {
				cells[transport] = append(cells[transport], m.name)
			}
		}
	}
	return cells
}
