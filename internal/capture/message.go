package capture

import (
	"bytes"
	"encoding/hex"
	"io"
	"math"
	"net/netip"
	"net/url"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/spool"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// State is how far a message of a stream can be trusted (wire-format section 6).
type State uint8

const (
	// Unverified: whole, but no checked sync or close covers it.
	Unverified State = iota + 1
	// Verified: a sync or close with a right check covers it.
	Verified
	// Withdrawn: the check of the sync or close that covers it is wrong.
	Withdrawn
	// Incomplete: fragments of it are missing.
	Incomplete
	// Cancelled: its sender canceled it.
	Cancelled
	// Undecodable: whole, but its shape is missing or does not fit its content.
	Undecodable
	// Unchecked: whole plain SOAP; nothing in the capture proves that it is what was sent.
	Unchecked
)

var stateNames = map[State]string{
	Unverified:  "unverified",
	Verified:    "verified",
	Withdrawn:   "withdrawn",
	Incomplete:  "incomplete",
	Cancelled:   "cancelled",
	Undecodable: "undecodable",
	Unchecked:   "unchecked",
}

func (s State) String() string { return stateNames[s] }

// Decoded is one message of a capture: of an hhfr stream, or plain SOAP in HTTP or UDP.
type Decoded struct {
	// Number counts exchanges in sending order from 1; request and reply of one exchange share it.
	// Exchanges that were not seen keep their numbers. 0: a negotiation, which is not counted.
	Number int
	// HHFR: the message is one of a stream; Session, Lane and Exchange apply to such messages.
	HHFR     bool
	Session  [16]byte
	Lane     uint64
	Exchange uint64
	Reply    bool
	// OneWay: no reply is expected. A message that is a UDP datagram is one-way unless it names
	// another as the one that it is about: then it is a reply to that.
	OneWay bool
	// Interim: the reply is an interim one (docs/wire-format.md, section 5.4).
	Interim bool
	// Place is the place of the message in the sequence of its direction (docs/wire-format.md,
	// section 5.1); zero: in none.
	Place frame.Place
	// Src and Dst are the ends; zero where only stream bytes are given.
	Src, Dst netip.AddrPort
	// First and Last are the times of its first and last bytes, zero without a capture; Packet is
	// the number of the packet with the first.
	First, Last time.Time
	Packet      int
	// Stream counts the streams from 1, 0 for plain SOAP. Direction is 0 for messages of the end
	// that opened it. Index counts the whole messages of a direction from 1; 0: the message is not
	// whole.
	Stream, Direction int
	Index             uint64
	// Origin is which direction of its flow began the exchange.
	Origin int
	// Head is the HTTP head as received; for a message of a stream nil if it is the default one
	// (docs/negotiation.md).
	Head []byte
	// Body is the entity after transfer coding, or its first MiB if it is longer;
	// [Decoded.WriteBody] gives all of it, BodyOctets is its length. It is valid until the next
	// event.
	Body       []byte
	BodyOctets int64
	// FastInfoset: Body is the XML text of what was sent in Fast Infoset ([DecodeConfig.XML]).
	FastInfoset bool
	// Version and Operation are read from the envelope.
	Version   soap.Version
	Operation soap.Name
	// Reliable is what the envelope says about sequences of WS-ReliableMessaging; nil: nothing, or
	// nothing that can be read.
	Reliable *header.Blocks
	// Earlier is the first sending of a message that was sent again in its sequence of
	// WS-ReliableMessaging; nil: this is the first.
	Earlier *EarlierSending
	// Wire is the number of bytes on the wire: of its data frames, or of its HTTP message.
	Wire int64
	// Frames are its frames, if they are wanted, up to [MaxFrames]: of fewer bytes than Wire if
	// there are more.
	Frames []RawFrame
	// Carriage is how a message of a stream was carried; nil unless [DecodeConfig.Carriage] asks.
	Carriage *Carriage
	// State is how far the message can be trusted; plain SOAP is [Unchecked] or [Incomplete]. Why
	// gives details, for people.
	State State
	Why   string
	// Declined: the responder of the stream did not take the session, and so processed nothing; the
	// sender may send the message elsewhere.
	Declined bool
	// Lacks is the fingerprint of the missing shape, as a URI, or the beginning of that, if that is
	// why the message is [Undecodable].
	Lacks string
	// LacksContract: that shape is made of the description of a service.
	LacksContract bool
	// LacksContext is the URI of the session's missing context, if that is why the message is
	// [Undecodable]: its Body is then not given.
	LacksContext string
	// Unread: the store may have it, but failed. Why has its error.
	Unread bool

	content *spool.Spooled // nil: Body is complete
	faulted string         // the sequence that a fault of Reliable names
	inForm  bool           // unchanging headers may have been taken out of the body
	flow    int            // negative: over datagrams; of streams no more is said
}

// overDatagram is the flow of messages that are one UDP datagram each.
const overDatagram = math.MinInt

// SessionString returns the session as a UUID, "-" for plain SOAP.
func (d *Decoded) SessionString() string {
	if !d.HHFR {
		return "-"
	}
	s := hex.EncodeToString(d.Session[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// Client returns the end that opened the connection of a stream, as far as the capture shows it,
// and that sends the requests in plain SOAP; zero where only stream bytes are given.
func (d *Decoded) Client() netip.AddrPort {
	if !d.HHFR && d.Reply || d.HHFR && (d.Origin == 1) != d.Reply {
		return d.Dst
	}
	return d.Src
}

// IsUDP reports whether a message came in datagrams.
func IsUDP(d *Decoded) bool { return d.flow < 0 }

// Server returns the end that is not Client.
func (d *Decoded) Server() netip.AddrPort {
	if d.Client() == d.Src {
		return d.Dst
	}
	return d.Src
}

// WriteBody writes the whole entity.
func (d *Decoded) WriteBody(w io.Writer) error {
	if int64(len(d.Body)) == d.BodyOctets {
		_, err := w.Write(d.Body)
		return err
	}
	_, err := io.Copy(w, d.Reader())
	return err
}

// Reader reads the whole entity, until the next event; a copy of a message has its Body alone.
func (d *Decoded) Reader() io.Reader {
	if d.content == nil || int64(len(d.Body)) == d.BodyOctets {
		return bytes.NewReader(d.Body)
	}
	return d.content.Reader()
}

// open reads the beginning of the body.
func (d *Decoded) open() error {
	d.BodyOctets = d.content.Len()
	start, err := d.content.Start()
	if len(start) > 0 {
		d.Body = start
	}
	return err
}

// Whole reports whether the body is complete, as it was sent.
func (d *Decoded) Whole() bool {
	return d.State == Verified || d.State == Unverified || d.State == Unchecked
}

// Stream is what was found of one hhfr stream, or of one direction if only that is there.
type Stream struct {
	number   int // from 1
	Session  [16]byte
	Src, Dst netip.AddrPort
	// Facts is the JSON comment of a recording, "" if there is none.
	Facts string
	// Service is that of its session, as far as it is known.
	Service Endpoint
	// Bytes are the numbers of bytes of the two directions, Src to Dst first.
	Octets [2]StreamOctets
	// Problems describe where a direction could not be followed.
	Problems []string
	// Cut: a direction begins without its hello, ends without its close, or lacks bytes.
	Cut bool
}

func (d *Decoded) recognize() {
	if d.LacksContext == "" { // otherwise it was recognized while its body was there
		r := soap.Recognize(d.Body)
		d.Version, d.Operation = r.Version, r.Operation
	}
}

// MaxFrames is how much a message has of its frames, in bytes.
const MaxFrames = 1 << 20

// RawFrame is one frame of a stream, as it was on the wire.
type RawFrame struct {
	Stream, Direction int   // as of [Decoded]
	At                int64 // offset of its first byte in its direction
	Octets            []byte
	// Time and Packet are those of the packet with its first byte; zero without a capture.
	Time   time.Time
	Packet int
}

// Endpoint is the service of a session: scheme, host and port, empty where only the path is known,
// and the path of requests without a head.
type Endpoint struct{ Origin, Path string }

func serviceOf(u *url.URL) Endpoint {
	s := Endpoint{Path: u.EscapedPath()}
	if u.Scheme != "" && u.Host != "" {
		s.Origin = u.Scheme + "://" + u.Host
	}
	return s
}

// EarlierSending is where a message with the same number of the same sequence was seen first, on
// the same hop: the number of its exchange and of its packet, both 0 if it was too long ago.
type EarlierSending struct{ Number, Packet int }
