package proxy

import (
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
)

// journey is how long the requests of a client go where the next one does.
type journey struct {
	// stays reports whether a further request goes there, too; nil: all do.
	stays func(*http1.Head) bool
	// byHead reports whether that depends on its head; nil: never.
	byHead func() bool
	// ends reports whether no further request goes anywhere; nil: never.
	ends func() bool
	// whole: all bytes of the connection go there, if they go plainly.
	whole bool
	// raw: what comes is no HTTP, and goes there as it is.
	raw bool
}

// isByHead reports whether each request goes where its head says: nothing but a request goes to the
// upstream then, since what follows it may be for another one, with credentials.
func (j *journey) isByHead() bool { return !j.raw && j.byHead != nil && j.byHead() }

// isOver reports whether what has come next is not to go there, or not known to.
func (j *journey) isOver(st waitResult, h *http1.Head, in *sock.Source) bool {
	switch {
	case st == stateWhole && j.isByHead() && !isFramed(h):
		return true
	case st == stateWhole:
		return j.stays != nil && !j.stays(h)
	}
	return len(in.Peek()) > 0 && (j.isByHead() || j.ends != nil && j.ends())
}

// isFramed reports whether it is known where a request with this head ends.
func isFramed(h *http1.Head) bool {
	_, err := http1.RequestFraming(h)
	return err == nil
}
