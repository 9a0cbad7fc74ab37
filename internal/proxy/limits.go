package proxy

import (
	"time"

	"github.com/hhfr/hhfr/internal/http1"
)

const (
	// DefaultMaxConns is the maximum number of connections that a proxy serves at once, of those it
	// opens to the upstream for other proxies, and of the lanes of one stream.
	DefaultMaxConns = 1024
	// DefaultMaxBuffer is how much of one message is held to see it whole, in bytes: most SOAP
	// messages fit. What is held beyond 64 KiB of each is bounded over all connections.
	DefaultMaxBuffer = 1 << 20
	// DefaultPause is how long a message may pause before what is there is sent without its rest:
	// streamed content (notifications) arrives in time.
	DefaultPause = 500 * time.Millisecond
	// DefaultGather is how long a chunked body of XML that is no SOAP envelope may pause before
	// what is there is sent, as text: short beside the latency of a thin link, so that events
	// arrive at their own times.
	DefaultGather = 20 * time.Millisecond
	// BodyPause is how long XML of a known length, or a SOAP envelope in chunks, may pause before
	// what came is sent without its rest: nobody acts on a part of it, and common clients and
	// servers write it in several pieces, the later ones 40 ms behind if a kernel waits for an
	// acknowledgement.
	BodyPause = 200 * time.Millisecond
	// DefaultSilence is how long a new connection may be silent before it is taken for one whose
	// server speaks first, and forwarded plainly.
	DefaultSilence = time.Second
	// DefaultHeadTime is how long the head of a request may take whose route depends on it.
	DefaultHeadTime = time.Minute
	// DefaultIdle is how long a client connection may stay without any exchange in progress: longer
	// than the keep-alive of common servers, which close first. It is also how long a client that
	// has ended its direction, and may be gone, stays if nothing comes for it.
	DefaultIdle = 10 * time.Minute
	// DefaultTimeout bounds negotiation with the upstream, and the opening of a connection to it.
	DefaultTimeout = 10 * time.Second
	// EndDelay is how long the report that a client is gone waits for a call to go with: of clients
	// that open a connection for each call the next one mostly comes sooner, and no server notices
	// that a connection was idle for a second more.
	EndDelay = time.Second
	// closingTime is how long a connection of a client waits for the lane of one that is idle.
	closingTime = 5 * time.Millisecond
	// DefaultStall is how long an endpoint may take for 64 KiB that are written to it before its
	// connection is reset: unread bytes use credit that all share.
	DefaultStall = 2 * time.Minute

	// maxWhole is the longest body that travels as one message, in bytes. Longer ones are sent in
	// parts that wait for their receiver, since a proxy must queue a message that its client or
	// server reads slowly.
	maxWhole = 16 << 20
	// maxHeld is how much may be held of chunked bodies that are gathered, beyond 64 KiB of each,
	// in bytes: chunked replies of some megabytes are common, and cost most if sent as text; but
	// they are held for as long as who gets them does not read.
	maxHeld = 16 << 20
	// maxLong is the maximum number of long messages that are held for sequences at once.
	maxLong = 4

	// firstBackOff is the pause before an offer that no call requests, and maxBackOff its maximum
	// if a partner may come back: a restart takes seconds, and waiting for a partner that is off
	// for days does not load a thin link.
	firstBackOff = 200 * time.Millisecond
	maxBackOff   = time.Minute
	// firstAgain is the shortest pause before another question to an upstream that has not said
	// whether there is a partner: a question cut by a restart does not end in minutes without a
	// stream. It doubles with each that gets no answer, for servers that never give one.
	firstAgain = time.Second
	// busyPause is the pause before another offer to an upstream that had no session to spare, or
	// that the store remembers as wanting no stream.
	busyPause = 5 * time.Second

	// maxStart is how much of an entity is looked at to find out what it is, in bytes: an offer
	// names its operation in it (negotiation.md, section 2).
	maxStart = 4 << 10
	// maxHeadOctets is the longest HTTP head that is parsed; a longer one is no HTTP to this proxy,
	// and passed on unchanged.
	maxHeadOctets = http1.DefaultHeadLimit
	// maxHeadPart is the longest head of a message between proxies, in bytes, framing included; a
	// stream accepts 1 MiB.
	maxHeadPart = 512 << 10
	// inlineBody is the longest body, in bytes, that is sent before anything waits for the reply:
	// it fits into the peer's initial credit.
	inlineBody = 64 << 10
	// maxServerInitiated is the maximum that a server may send with no call in progress, in bytes,
	// and have it arrive.
	maxServerInitiated = 64 << 10
	// pipelined is the maximum number of requests of one connection in progress at once: few, since
	// each may have a reply of maxWhole that the client does not read.
	pipelined = 4
	// maxAhead is how much is read of what a client sends before its reply is there, in bytes.
	maxAhead = 64 << 10
	// halfOpen is how long a client may still send after the upstream has ended its direction.
	halfOpen = 30 * time.Second
	// slowAttempt is how long an attempt to open a stream may take before it is logged that calls
	// go without one: a few round trips of a slow link, and less than the time-out of a connection
	// to a port that something on the path drops packets for.
	slowAttempt = 3 * time.Second
	// otherScheme is how long an upstream that is not of the scheme of its URL gets no further
	// offer: after the mistake is corrected, the wait is no longer.
	otherScheme = 10 * time.Second
	// drainStep is the interval at which a draining proxy checks whether calls are in progress.
	drainStep = 5 * time.Millisecond
	// callGap is how long no call must have come before a draining proxy takes its clients for
	// idle: one that has its reply begins the next call within a round trip.
	callGap = 250 * time.Millisecond
	// replyGap is how long a server that is forwarded without a look may pause in a reply while the
	// proxy drains.
	replyGap = 250 * time.Millisecond
	// lastWord is how long before the end of its time a draining proxy tells clients that there
	// will be no reply.
	lastWord = 250 * time.Millisecond
	// retryAfter is when a client that is refused may call again, in seconds.
	retryAfter = 5
	// maxFailures is the number of failed listeners that wait to be reported.
	maxFailures = 3
	// endless is the longest message that a proxy accepts, in bytes: a body may last as long as its
	// connection.
	endless = 1 << 62
	// maxFlight is the maximum number of exchanges in progress on a stream of proxies: lanes that
	// wait for long replies must not wait for each other.
	maxFlight = 4096
)
