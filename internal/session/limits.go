package session

import "time"

const (
	// DefaultRememberFor is how long a peer that answered no offer is spoken to in plain SOAP. It
	// is long enough not to ask for every call, and short enough that a peer that was just updated
	// is found the same day.
	DefaultRememberFor = 10 * time.Minute
)
