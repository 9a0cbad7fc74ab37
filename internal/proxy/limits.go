package proxy

import (
	"time"

	"github.com/hhfr/hhfr/internal/http1"
)

const (
	// DefaultMaxConns is how many connections a proxy serves at once, how many it opens to the
	// upstream for other proxies, and how many lanes one stream has: each may hold MaxBuffer twice.
	DefaultMaxConns = 1024
	// DefaultMaxBuffer is how much of one message is held to see it whole, in octets: most SOAP
	// messages fit, and a thousand connections stay below the memory of a small server unless all
	// of them are full.
	DefaultMaxBuffer = 1 << 20
	// DefaultPause is how long a message may pause before what is there goes on without waiting for
	// its rest: what streams (notifications) arrives in time.
	DefaultPause = 500 * time.Millisecond
	// DefaultGather is how long a chunked body of XML may pause before what is there goes on, as
	// text: little beside the latency of a thin link, so that events arrive at their own times.
	DefaultGather = 20 * time.Millisecond
	// DefaultSilence is how long a new connection may say nothing before it is taken for one whose
	// server speaks first, and forwarded plainly.
	DefaultSilence = time.Second
	// DefaultIdle is how long a client connection may stay without any exchange under way: longer
	// than the keep-alive of common servers, which close first.
	DefaultIdle = 10 * time.Minute
	// DefaultTimeout bounds negotiation with the upstream, and the opening of a connection to it.
	DefaultTimeout = 10 * time.Second
	// DefaultStall is how long an end may take for 64 KiB that are written to it before its
	// connection is reset: what it does not take waits in room that all share.
	DefaultStall = 2 * time.Minute

	// maxWhole is the longest body that travels as one message, in octets; longer ones go in pieces
	// that wait for who takes them, since an end must queue a message that its client or server
	// takes slowly.
	maxWhole = 16 << 20
	// maxLong is how many bodies that do not say how long they are may be held beyond MaxBuffer at
	// once, each up to maxWhole: chunked replies of some megabytes are common, and cost most where
	// they go as text.
	maxLong = 4

	// firstBackOff is the pause before an offer that no call asks for, and maxBackOff what it grows
	// to where a partner may come back: one that restarts takes seconds, and who waits for one that
	// is off for days does not load a thin link.
	firstBackOff = 200 * time.Millisecond
	maxBackOff   = time.Minute
	// busyPause is after what an upstream is asked again that had no room, or of which the store
	// knows that it wanted no stream.
	busyPause = 5 * time.Second

	// maxHeadOctets is the longest HTTP head that is parsed; what has a longer one is no HTTP to
	// this proxy, and goes as it is.
	maxHeadOctets = http1.DefaultHeadLimit
	// maxHeadPart is the longest head of a message between proxies, in octets, framing included; a
	// stream takes 1 MiB.
	maxHeadPart = 512 << 10
	// inlineBody is the longest body, in bytes, that is sent before anybody waits for the reply: it
	// fits into what the peer takes ahead.
	inlineBody = 64 << 10
	// maxUnasked is what a server may say with no call under way, in bytes, and have it arrive.
	maxUnasked = 64 << 10
	// pipelined is how many requests of one connection are under way at once: little, since each
	// may have a reply of maxWhole that the client does not take.
	pipelined = 4
	// halfOpen is how long a client may still send after the upstream has ended its direction.
	halfOpen = 30 * time.Second
	// otherScheme is how long an upstream that is not of the scheme of its URL is not asked again:
	// who has the mistake corrected waits no longer.
	otherScheme = 10 * time.Second
	// drainStep is how often a proxy that is to end looks whether calls are under way.
	drainStep = 5 * time.Millisecond
	// farewell bounds what a lane's end may take to be told.
	farewell = 5 * time.Second
	// endless is the longest message that a proxy takes, in bytes: a body may go on as long as its
	// connection.
	endless = 1 << 62
	// maxFlight is how many exchanges a stream of proxies has under way: lanes that wait for long
	// replies must not wait for each other.
	maxFlight = 4096
)
