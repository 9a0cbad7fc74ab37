package negotiate

import (
	"context"
	"crypto/sha256"
	"io"
)

// ContextDocument writes the context of a session as a responder keeps it before it is joined.
func ContextDocument(f Facts, token [16]byte) ([]byte, error) {
	hash := sha256.Sum256(token[:])
	return (&contextDocument{Facts: f, TokenHash: hash[:]}).marshal()
}

// Lend gives a body as a stream gets it, and what gives it again from its start.
func Lend(body io.Reader) (lent io.Reader, again func(context.Context) (io.Reader, bool), release func()) {
	k := keep(body)
	return k.reader(), k.again, k.release
}

// Rewriters give what travels of bodies in a session with these unchanging headers, and the
// reverse.
func Rewriters(blocks []string) (out func(io.Writer) io.WriteCloser, in func(io.ReadCloser) io.ReadCloser) {
	u := &unchanging{blocks: blocks}
	return u.outgoing, u.incoming
}

// KeepKnown is keepKnown, which the end of a stream calls.
var KeepKnown = keepKnown
