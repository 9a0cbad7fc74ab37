package flow

import (
	"time"

	"github.com/hhfr/hhfr/internal/http1"
)

// HTTPConfig bounds what [HTTP] keeps. The zero value works.
type HTTPConfig struct {
	// Head is the longest head in octets; 0 means 64 KiB.
	Head int
	// Body is the longest entity, before and after content decoding, in octets; 0 means 64 MiB. A longer one is cut, with [WhyLimit].
	Body int64
}

// Why says why a message is not complete.
type Why uint8

const (
	// WhyGap: octets of it are not in the capture.
	WhyGap Why = iota + 1
	// WhyCut: the connection or the capture ended inside it.
	WhyCut
	// WhyMalformed: it is no HTTP/1.x, or contradicts itself.
	WhyMalformed
	// WhyLimit: it is longer than the limit.
	WhyLimit
)

var whyNames = map[Why]string{0: "", WhyGap: "gap", WhyCut: "cut", WhyMalformed: "malformed", WhyLimit: "limit"}

func (w Why) String() string { return whyNames[w] }

// Message is one HTTP/1.x message of a flow. Of one that is not complete, everything up to the first missing octet is there.
type Message struct {
	// Head is the head as received; Octets alone are set if it is not complete or malformed.
	Head http1.Head
	// Octets are those of the head, or what there is of it.
	Octets []byte
	// Entity is the body after transfer coding; it may alias the flow's data.
	Entity []byte
	// Body is Entity without its content coding; it is Entity if there is none, or one that cannot be undone (see CodingErr).
	Body []byte
	// Coding is the content coding in lower case, "" for none. CodingErr says why it could not be undone.
	Coding    string
	CodingErr error
	// Doubts are ambiguities of the head.
	Doubts []http1.Doubt
	// First is the time of the packet with the first octet, Last that of the message's last packet; FirstPacket and LastPacket are their numbers.
	First, Last             time.Time
	FirstPacket, LastPacket int
	// Offset is where the message begins in its direction; Wire is its length there, missing octets not counted; Missing are those known to be missing.
	Offset, Wire, Missing int64
	// Why is 0 for a complete message. Err is the cause for [WhyMalformed].
	Why Why
	Err error
	// Comments are those of the message's packets.
	Comments []string
}

// Complete reports whether all of the message is there.
func (m *Message) Complete() bool { return m.Why == 0 }

// End is the offset behind the message in its direction.
func (m *Message) End() int64 { return m.Offset + m.Wire + m.Missing }

// Exchange is a request and its reply; either is nil if the capture does not have it. Interim are 1xx replies before the reply.
type Exchange struct {
	Request, Reply *Message
	Interim        []*Message
}

// HTTPResult is what [HTTP] found. Requests is the index of the direction of the requests. Exchanges are in the order of their first packets.
// Tunnel is where the octets of each direction stop being HTTP, after Upgrade or CONNECT, as an offset; -1 if they do not. Skipped counts
// octets of each direction that belong to no message.
type HTTPResult struct {
	Exchanges []Exchange
	Requests  int
	Tunnel    [2]int64
	Skipped   [2]int64
}

// LooksHTTP reports whether a run begins like an HTTP/1.x message.
func LooksHTTP(r *Run) bool { return http1.LooksLikeStart(r.Data) }

// HTTP finds the HTTP/1.x messages of a flow: from the start, and after a gap or what is malformed from the next packet that begins with
// a start line. A flow without HTTP gives a result without exchanges.
func HTTP(f *Flow, c HTTPConfig) HTTPResult {
	if c.Head <= 0 {
		c.Head = http1.DefaultHeadLimit
	}
	if c.Body <= 0 {
		c.Body = 64 << 20
	}
	res := HTTPResult{Tunnel: [2]int64{-1, -1}, Requests: requestDirection(f)}
	requests := newHTTPParser(&f.Dirs[res.Requests], c, false)
	replies := newHTTPParser(&f.Dirs[1-res.Requests], c, true)
	q := pairing{res: &res}
	for m := requests.next(nil); m != nil; m = requests.next(nil) {
		q.add(m)
	}
	for m := replies.next(q.method); m != nil; m = replies.next(q.method) {
		if tunnel := q.reply(m, replies.resumed); tunnel {
			res.Tunnel[1-res.Requests] = m.End()
			break
		}
	}
	res.Skipped[res.Requests], res.Skipped[1-res.Requests] = requests.skipped, replies.skipped
	q.finish()
	return res
}

// requestDirection guesses from the first start line in either direction; the one that opened the connection sends requests if there is none.
func requestDirection(f *Flow) int {
	for i := range f.Dirs {
		for r := range f.Dirs[i].Runs {
			run := &f.Dirs[i].Runs[r]
			for _, m := range run.Marks {
				b := run.Data[m.At:]
				if !http1.LooksLikeStart(b) {
					continue
				}
				if beginsReply(b) {
					return 1 - i
				}
				return i
			}
		}
	}
	return 0
}
