// Package headers has the header handlers of an endpoint: what processes some header blocks of the
// messages that arrive, and adds blocks to those that leave (SOAP 1.1, section 4.2; SOAP 1.2 part
// 1, section 2). A [Chain] of them works on the bytes of a message. It does not matter how these
// came: as plain SOAP in HTTP, or over a stream.
package headers

import (
	"context"
	"errors"
	"slices"

	"github.com/hhfr/hhfr/pkg/soap"
)

// Processor is a header handler. Its methods are called concurrently.
type Processor interface {
	// Understands reports whether it processes header blocks of that name. They are taken out of
	// the message before the application sees it.
	Understands(name soap.Name) bool
	// Role is the URI of the role in which it processes them; empty: the ultimate receiver, and the
	// role "next".
	Role() string
	// In looks at the header blocks of a message that arrived. It is called for each message, also
	// for those without a block of its own, and only if everything is understood that must be. It
	// has no effects. The context it returns is that of the processors behind it and of the
	// application; values that it adds are for its Out. An error that is a [*Refusal] is what its
	// sender is told.
	In(ctx context.Context, e *soap.Envelope) (context.Context, error)
	// Out returns blocks for a message that leaves. ctx is that of the message that it answers, if
	// it is a reply.
	Out(ctx context.Context, e *soap.Envelope) ([]soap.Element, error)
}

// RefusedMessage is why a message is not processed: a fault for its sender.
type RefusedMessage struct {
	Fault soap.Fault
	// Blocks stand in the header of the message with the fault.
	Blocks []soap.Element
}

func (r *RefusedMessage) Error() string {
	if r.Fault.Subcode != "" {
		return r.Fault.Subcode + ": " + r.Fault.Reason
	}
	return r.Fault.Reason
}

// Chain are processors in the order in which they see messages that arrive. It must not be changed
// while it is in use; all its methods are safe for concurrent use.
type Chain []Processor

// understands reports whether a processor of the chain processes a block.
func (c Chain) understands(v soap.Version, block *soap.Element) bool {
	return slices.ContainsFunc(c, func(p Processor) bool {
		if !p.Understands(block.Name) {
			return false
		}
		return block.ForReceiver(v) && p.Role() == "" || block.Role != "" && block.Role == p.Role()
	})
}

// AdmittedMessage is a message that a chain has let in.
type AdmittedMessage struct {
	// Version is that of the envelope.
	Version soap.Version
	// Body is the name of the first child of the Body; empty: there is none.
	Body soap.Name
	// Message is the message without the blocks that were processed.
	Message []byte
}

// In lets a message in UTF-8 in: it checks that everything is understood that must be, then has
// each processor look at it. After an error nothing may be done with the message. Errors:
// [*RefusedMessage]; [*soap.Error], for what is no envelope or is not read; those of processors.
// The version is known if the error is a Refusal.
func (c Chain) In(ctx context.Context, message []byte) (context.Context, AdmittedMessage, error) {
	a, err := soap.Split(message, soap.Limits{})
	if err != nil {
		return ctx, AdmittedMessage{}, err
	}
	in := AdmittedMessage{Version: a.Version}
	if len(a.Body) > 0 {
		in.Body = a.Body[0].Name
	}
	understood := func(b *soap.Element) bool { return c.understands(a.Version, b) }
	fault, missing := a.Understood(understood)
	if missing {
		return ctx, in, &RefusedMessage{Fault: fault}
	}
	for _, p := range c {
		if ctx, err = p.In(ctx, &a.Envelope); err != nil {
			return ctx, in, err
		}
	}
	in.Message, err = a.Rewrite(understood, nil)
	return ctx, in, err
}

// Out adds the blocks of all processors to a message in UTF-8. Errors: as of [Chain.In].
func (c Chain) Out(ctx context.Context, message []byte) ([]byte, error) {
	a, err := soap.Split(message, soap.Limits{})
	if err != nil {
		return nil, err
	}
	var add []soap.Element
	for _, p := range c {
		blocks, err := p.Out(ctx, &a.Envelope)
		if err != nil {
			return nil, err
		}
		add = append(add, blocks...)
	}
	return a.Rewrite(nil, add)
}

// RefusalOf returns the fault for the sender of a message that an error of [Chain.In] is about; ok
// is false if it is not the sender's.
func RefusalOf(err error) (r *RefusedMessage, ok bool) {
	if errors.As(err, &r) {
		return r, true
	}
	var bad *soap.Error
	if errors.As(err, &bad) {
		code := soap.Client
		if bad.Code == soap.BadVersion {
			code = soap.VersionMismatch
		}
		return &RefusedMessage{Fault: soap.Fault{Code: code, Reason: bad.Error()}}, true
	}
	return nil, false
}
