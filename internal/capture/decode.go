package capture

import (
	"errors"
	"slices"

	"github.com/hhfr/hhfr/internal/flow"
)

// ErrNothing reports that an input has neither hhfr nor SOAP.
var ErrNothing = errors.New("no hhfr stream and no SOAP")

// Summary is what was found besides the messages.
type Summary struct {
	Streams []*Stream
	Stats   flow.Stats
	// Others counts what was found instead of SOAP and hhfr, by kind, in connections or datagrams.
	Others map[string]int
	// Decrypted is how many connections in TLS were decrypted.
	Decrypted int
	// StoreFailure is the first error of the store, other than that it lacks an entry.
	StoreFailure error

	counts    Counts
	sequences sequenceTracker
}

func newSummary() *Summary { return &Summary{Others: map[string]int{}} }

// Result is everything that was found.
type Result struct {
	Summary
	// Messages are in the order of their first bytes.
	Messages []*Decoded
}

// Counts are the numbers of messages, by state.
type Counts struct{ Messages, Verified, Unverified, Withdrawn, Incomplete, Cancelled, Undecodable, Unchecked int }

func (c *Counts) of(s State) *int {
	return [...]*int{Unverified: &c.Unverified, Verified: &c.Verified, Withdrawn: &c.Withdrawn,
		Incomplete: &c.Incomplete, Cancelled: &c.Cancelled, Undecodable: &c.Undecodable, Unchecked: &c.Unchecked}[s]
}

// Counts counts messages by state.
func (s *Summary) Counts() Counts { return s.counts }

func (s *Summary) count(d *Decoded) {
	s.counts.Messages++
	*s.counts.of(d.State)++
}

// uncount removes a message from the counts.
func (s *Summary) uncount(d *Decoded) {
	s.counts.Messages--
	*s.counts.of(d.State)--
}

// Partial reports whether something is missing: bytes, the end of the capture, shapes, or messages
// that failed their check. Messages that no check covers yet do not count.
func (s *Summary) Partial() bool {
	c := s.counts
	if s.Others[OtherUpgraded]+s.Others[OtherPartlyDecrypted] > 0 || c.Withdrawn+c.Incomplete+c.Undecodable > 0 ||
		s.Stats.Truncated || s.Stats.Gaps > 0 || s.Stats.Evicted > 0 || s.Stats.Dropped > 0 {
		return true
	}
	return slices.ContainsFunc(s.Streams, func(s *Stream) bool { return s.Cut || len(s.Problems) > 0 })
}

// OtherUpgraded is the kind in [Summary.Others] of connections that were upgraded to hhfr, and on
// which no hello followed.
const OtherUpgraded = "connections upgraded to hhfr without a hello behind"

// OtherRequests is the kind in [Summary.Others] of HTTP requests with a body that is not SOAP, also
// over connections that carry SOAP.
const OtherRequests = "HTTP requests without SOAP"
