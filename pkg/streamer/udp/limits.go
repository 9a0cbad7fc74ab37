package udp

import (
	"time"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/pkg/clock"
)

// Config is how connections behave. A zero field means its default.
type Config struct {
	// Datagram is the longest datagram sent, in bytes of UDP payload, 300 to 65000; default
	// [DefaultDatagram], which nearly every path carries.
	Datagram int
	// Linger is how long Close waits for the peer to have all; default 5 s.
	Linger time.Duration
	// Inactivity is after what silence an idle connection breaks; default 10 min. Signs of life are
	// asked for three times as often.
	Inactivity time.Duration
	// Unanswered is after what silence a connection breaks while something is awaited of the peer:
	// what was written has not arrived, or Await said that there is a reply to come. Default 2
	// min, at most Inactivity; signs of life are asked for after a quarter of it, and from then on
	// each eighth of it. An accepted connection bears a third of Inactivity more: the peer may
	// be at a new address, which only what it sends tells.
	Unanswered time.Duration
	// Clock is what retransmission waits on; nil means the machine's. Deadlines are of the
	// machine's clock in any case.
	Clock clock.Clock
}

// DefaultDatagram is the longest datagram where nothing else is said.
const DefaultDatagram = 1200

const (
	defaultLinger = 5 * time.Second
	// As over TCP (pkg/streamer/tcp) while something is awaited. An idle session asks less often:
	// it costs some 100 bytes each time, both ways.
	defaultInactivity = 10 * time.Minute
	defaultUnanswered = 2 * time.Minute
	// hold is how many bytes wait for their reader: both ends are of the same version, and need not
	// agree anew.
	hold = 1 << 20
	// chunk is how much of a Write becomes one message, in bytes: what arrives of it waits for the
	// rest.
	chunk = 8 << 10
	// maxUsage is how many bytes that arrived and are not read, in turn or not, the sessions of a
	// listener have together before each of them may have only a share: room for a message that is
	// not whole, so that everyone goes on in turn. What comes beyond is as good as lost: it is sent
	// again.
	maxUsage = 256 << 20
	share    = 2 * chunk
	// backlog is how many connections wait to be accepted, and maxSessions how many a listener has
	// at once.
	backlog     = 128
	maxSessions = 4096
	// maxHalfOpen is how many of them may be such of which nothing came yet, some 12 KB each: in
	// the time in which an honest one says something, a round trip of a slow link, nobody shall
	// drive it out with few datagrams.
	maxHalfOpen = 1024
	// maxEarly is how many sessions a listener has, or has remembered since they ended, that an
	// early datagram has opened and whose address has not shown that it receives: whoever makes up
	// addresses takes no more than that. An honest one is among them for a round trip. peerEarly
	// bounds those of one peer. Beyond, an early datagram is an ask.
	maxEarly  = 64
	peerEarly = 8
	// earlyLife is how long such a session may live, several round trips of a slow link: it may
	// hold more than the listener knows of.
	earlyLife = 10 * time.Second
	// maxUnsent is how many datagrams such a session keeps that may not be sent there yet: a first
	// flight.
	maxUnsent = 4
	// maxRepeat is how many packets that went in early datagrams are kept to be sent again in an
	// open.
	maxRepeat = 8
	// cookieLife is how long an answer opens a session for sure; it does no longer after twice
	// that.
	cookieLife = 30 * time.Second
	// tombLife is how long an ended session cannot be opened again: longer than any answer lasts.
	// maxTombs bounds them, at some 100 bytes each; beyond, nothing new is opened. peerTombs
	// bounds those of one peer: beyond, nothing new of that one is.
	tombLife  = 3 * cookieLife
	maxTombs  = 1 << 16
	peerTombs = maxTombs / 16
	// maxBroken is how many reads of a socket may fail one after the other: some systems report
	// there that a datagram was refused.
	maxBroken = 1000
	// askAgain is how long the first answer is waited for; each time twice as long, up to
	// maxAskAgain, half a minute in all.
	askAgain    = time.Second
	maxAskAgain = 16 * time.Second
)

// sequences configures the engine of one connection.
func (c Config) sequences(rtt time.Duration) arq.Config {
	return arq.Config{
		Window: datagram.Window, Hold: hold, Inactivity: c.Inactivity, Unanswered: c.Unanswered,
		Datagram: c.Datagram - datagram.OpenHeader, RTT: rtt,
	}
}
