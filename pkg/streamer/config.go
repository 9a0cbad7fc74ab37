package streamer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
)

// Config says what a stream is to be. It is copied.
type Config struct {
	// Initiator is the end that opened the connection.
	Initiator bool
	// Session and Token are what the initiator's hello says. Token has 16 bytes; with none, the
	// hello is a first contact with the service at Target, a URL.
	Session [16]byte
	Token   []byte
	Target  string
	// Description names the description of the service in the hello of a first contact: the first
	// [DescriptionLen] bytes of its fingerprint; nil: none.
	Description []byte
	// Early, if given, are limits that the responder keeps to, before its hello tells what they
	// are: [frame.EarlyLimits], or those that its last hello in this session stated. Over then
	// waits for no hello, and what is sent leaves in one flight with ours; a peer that does not
	// take the session ends the stream, with all messages Unsent.
	Early *frame.Limits
	// Proxy: this end is half of a pair of proxies, as its hello says.
	Proxy bool
	// Abilities are what this end can do beyond its version of the wire format, as its hello says.
	Abilities uint64
	// Without are stages that an initiator does not ask for although its Coder has them.
	Without uint64
	// Representation is 1 binary or 2 xml (docs/wire-format.md, section 3). A responder takes 0 for
	// whatever Accept agrees to.
	Representation uint64
	// Coder is the initiator's.
	Coder Coder
	// Accept is the responder's: it judges the hello of the initiator. A *[Refusal] is told to the
	// initiator. ctx is that of Over.
	Accept func(ctx context.Context, h frame.Hello) (Admission, error)
	// Handler serves what the peer begins; the responder's comes from Accept. nil: such
	// messages are cancelled as unserved.
	Handler ExchangeHandler
	// Limits are what this end takes.
	Limits Limits
	// Acks is told what the peer says of a sequence ([Stream.Acknowledge]), by the reader,
	// between the messages that came before and behind it; it must not block. nil: that is passed
	// over.
	Acks func(octets []byte)
	// Kept is told, as Acks is, what the peer has of long messages ([Stream.Keep]). nil: that is
	// passed over.
	Kept func(parts []KeptPart)
	// Outgoing, if given, makes of the body of a message what travels of it, which it writes to to;
	// its Close does not close that. Incoming is the reverse: what the one makes is for the other
	// of the peer. An initiator with them asks for the stage [frame.Headers]; where a hello has
	// that, they are called for every message of either direction that has a body, once the
	// responder's Accept has returned.
	Outgoing func(to io.Writer) io.WriteCloser
	Incoming func(body io.ReadCloser) io.ReadCloser
	// QueueBytes bounds the content between senders and writer, in bytes; 0 means 1 MiB.
	QueueBytes int64
	// FlushDelay is how long data and acknowledgements wait for others to go with, so that fewer
	// packets are sent; 0: what is ready goes at once. What fills a batch of 16 KiB does not wait,
	// and neither does the end of a message of several fragments.
	FlushDelay time.Duration
	// SyncBytes and SyncMessages bound what is sent between two syncs, in bytes and messages; 0
	// means, and at most, 1 048 576 and 16 384. From 65 536 or 1 024 on, a sync is sent as soon as
	// it adds no more than a twentieth to what was sent since the last one.
	SyncBytes    int64
	SyncMessages int
	// SyncInterval bounds the time between two syncs of a direction that has messages, so that a
	// decoder that joins need not wait longer; from a minute on a sync is sent as soon as it adds
	// no more than a twentieth to what was sent since the last one. Fewer than 8 messages wait for
	// the eighth, for up to 16 times as long. 0 means 15 minutes; below 0, time does not count.
	SyncInterval time.Duration
	// HelloTimeout bounds the wait for the peer's hello; 0 means 30 s.
	HelloTimeout time.Duration
	// Rand is where the sync word comes from; nil means crypto/rand.
	Rand io.Reader
	// Events is told of every frame, by reader and writer, maybe at once; it must not block, nor
	// call the stream. nil: no one is told.
	Events func(Event)
	// Carried counts what the stream carries, beside others; nil: nobody does. Implied is for that;
	// a responder has its own from Accept.
	Carried *Carried
	Implied ImpliedHeads
}

func (c Config) withDefaults() (Config, error) {
	var err error
	c.Limits, err = c.Limits.withDefaults()
	c.QueueBytes = orDefault(c.QueueBytes, defaultQueueBytes)
	c.HelloTimeout = orDefault(c.HelloTimeout, defaultHelloTimeout)
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	switch {
	case err != nil:
	case c.Initiator && c.Coder == nil:
		err = errors.New("initiator without a coder")
	case len(c.Token) != 0 && (len(c.Token) != frame.TokenLen || c.Target != ""), len(c.Target) > frame.MaxTarget,
		len(c.Description) != 0 && len(c.Description) != frame.DescriptionLen:
		err = fmt.Errorf("token of %d bytes, target of %d, description of %d", len(c.Token), len(c.Target),
			len(c.Description))
	case c.Initiator && c.Representation == 0:
		err = errors.New("initiator without a representation")
	case !c.Initiator && c.Accept == nil:
		err = errors.New("responder without Accept")
	case c.QueueBytes < 0 || c.SyncBytes < 0 || c.SyncMessages < 0 || c.HelloTimeout < 0 || c.FlushDelay < 0:
		err = errors.New("negative bound")
	}
	if err != nil {
		return c, &Error{Code: BadConfig, Err: err}
	}
	return c, nil
}

// lastingConfig is what of a [Config] counts while a stream lives: there are many, mostly idle.
type lastingConfig struct {
	*rareHooks
	*commonConfig
	Events func(Event)
}

// commonConfig is what most streams share. It is never changed.
type commonConfig struct {
	Limits     Limits
	FlushDelay time.Duration
	Carried    *Carried
	Implied    ImpliedHeads
}

// rareHooks are those that most streams have none of.
type rareHooks struct {
	Acks     func(octets []byte)
	Kept     func(parts []KeptPart)
	Outgoing func(to io.Writer) io.WriteCloser
	Incoming func(body io.ReadCloser) io.ReadCloser
}

var (
	noHooks    rareHooks
	lastCommon atomic.Pointer[commonConfig] // of the last stream
)

// lasting gives what counts that long.
func (c *Config) lasting() lastingConfig {
	hooks := &noHooks
	if c.Acks != nil || c.Kept != nil || c.Outgoing != nil || c.Incoming != nil {
		hooks = &rareHooks{c.Acks, c.Kept, c.Outgoing, c.Incoming}
	}
	own := commonConfig{c.Limits, c.FlushDelay, c.Carried, c.Implied}
	common := lastCommon.Load()
	if common == nil || *common != own {
		common = &commonConfig{c.Limits, c.FlushDelay, c.Carried, c.Implied}
		lastCommon.Store(common)
	}
	return lastingConfig{hooks, common, c.Events}
}

// Admission is what a responder agrees to for the hello of an initiator.
type Admission struct {
	// Coder and Handler are those of the stream.
	Coder   Coder
	Handler ExchangeHandler
	// Quick, if given, is asked before the Handler about requests that came whole while nothing
	// else waited to be read or served, and few exchanges were under way: see [QuickHandler].
	Quick QuickHandler
	// Token is the one by which the initiator may join the session next, within Lifetime; nil: it
	// may not.
	Token    []byte
	Lifetime time.Duration
	// Promised is what an earlier hello in the session stated, or, at a first contact, what of
	// [frame.EarlyLimits] is above Config.Limits: an initiator may keep to it until it has read
	// this hello, so that it holds beside Config.Limits.
	Promised frame.Limits
	// Description names the description of the service that both ends have, as in
	// [Config].Description; nil: there is none, or what was agreed on before says it.
	Description []byte
	// Implied is as in [Config].Implied.
	Implied ImpliedHeads
}

// ExchangeHandler serves the exchanges that the peer begins, at most [Limits.MaxExchanges] at once.
// None waits for the handler of another to return, but a goroutine may serve several, one after the
// other. It is called when the head of the message is there; the body comes as it is read, also
// while the reply is sent. A request for which it returns without a reply is cancelled as failed.
// What it has not read of the body when it returns is dropped. ctx ends when the peer gives the
// exchange up, when the reply is refused, when the stream is over, and when the handler returns. It
// must end then. It must not call [Stream.Close] or [Stream.Abort].
type ExchangeHandler func(ctx context.Context, x *Exchange)

// QuickHandler serves an exchange in the goroutine that reads the stream, which saves waking
// another, if it need not wait for anything; false: the [ExchangeHandler] is to serve it, and
// nothing was done. Its reply may come later, by somebody else, if it detaches the exchange.
type QuickHandler func(x *Exchange) bool
