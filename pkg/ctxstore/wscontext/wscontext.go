// Package wscontext is WS-Context over SOAP (docs/context.md): a [ContextService] that offers the
// entries of any store, the [ContextServiceHandler] that calls such a service, and [Remote], a
// store whose entries are those of a service.
//
// A context is an entry of the store, its version is the entry's revision, and its contents are the
// entry's value, byte for byte.
package wscontext

import (
	"time"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// activityPrefix begins the URI of what the service notes about a context that was begun,
// completed, or is the parent of another; the context's URI follows.
const activityPrefix = "urn:hhfr:activity:"

const (
	// MaxRequest is the longest envelope that the service and its clients read, in bytes: the
	// longest value in base64, and some room around it.
	MaxRequest = ctxstore.MaxValue/3*4 + 64<<10
	// maxDepth is how deep elements may nest, as for other services of hhfr.
	maxDepth = 64
	// maxAttrs is how many attributes an element may have: they are compared with one another.
	maxAttrs = 256
	// maxScopes is how many namespace declarations may be in effect.
	maxScopes = 1024
	// maxFields is how many elements beside the contents a request may have.
	maxFields = 64
	// maxMandatory is how many header blocks a fault names that are not understood.
	maxMandatory = 16
	// maxChildren is how many children of an activity are noted; completed ones are forgotten.
	maxChildren = 1024
	// DefaultTimeout is the lifetime of an activity whose begin says none.
	DefaultTimeout = 24 * time.Hour
	// MaxTimeout is the longest lifetime that can be asked for, a hundred years; forever is another
	// matter.
	MaxTimeout = 36525 * 24 * time.Hour
	// maxPoll is how long a watch waits for a change before it answers that there is none.
	maxPoll = 25 * time.Second
	// maxWatches is how many watches wait at once; each has a goroutine, and sees every change.
	maxWatches = 64
	// maxLong is how many requests beyond longRequest bytes are in memory at once.
	maxLong     = 4
	longRequest = 1 << 20
)

// Statuses of an activity.
const (
	StatusActive    = xmlns.WSContext + "/status/active"
	StatusCompleted = xmlns.WSContext + "/status/completed"
)

// Names of elements: those of WS-Context, and hhfr's own.
func std(local string) soap.Name { return soap.Name{Space: xmlns.WSContext, Local: local} }
func own(local string) soap.Name { return soap.Name{Space: xmlns.HHFRContext, Local: local} }

// Prefixes of the envelopes that this package writes. Contents that mention them travel in base64,
// so that no declaration needs to be added to them.
const (
	prefixSOAP = "E"
	prefixStd  = "C"
	prefixOwn  = "H"
)

// action is the SOAP action of a request.
func action(name soap.Name) string { return name.Space + "/" + name.Local }
