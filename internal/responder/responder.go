// Package responder is the responder's side of HHFR, the counterpart of package session. A
// [Responder] answers offers, upgrades connections and runs their streams in front of SOAP
// services. A [Handler] does so for unchanged servers of net/http.
package responder

import "github.com/hhfr/hhfr/internal/unchanging"

// Responder answers offers ([Responder.Handler]) and accepts streams ([Responder.ServeStreams]).
// All methods are safe for concurrent use.
type Responder struct {
	cfg          *Config
	life         *life
	sessions     *sessions
	descriptions *descriptions
	offers       *offers
	joins        *joins
	streams      *streams
	restorer     *unchanging.Restorer // nil: there is no common store
}
