package session

import "time"

const (
	// DefaultRememberFor is how long an end that answered no offer is spoken to in plain SOAP: long
	// enough not to ask for every call, short enough that an end that was just brought up to date
	// is found the same day.
	DefaultRememberFor = 10 * time.Minute
)
