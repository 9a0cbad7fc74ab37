package listing

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// reportVersion is the version of the JSON that decode and reconstruct print (docs/json.md).
const reportVersion = 1

// DecodeReport is the JSON of a capture.
type DecodeReport struct {
	Version  int             `json:"version"`  // 1
	Messages []MessageReport `json:"messages"` // in the order in which they became whole
	Streams  []streamReport  `json:"streams"`  // the hhfr streams
	// the sequences of WS-ReliableMessaging that messages mention, in plain SOAP or in streams
	Sequences []SequenceReport `json:"sequences"`
	// how many more there were: those that were mentioned least recently
	SequencesLeftOut int           `json:"sequences_left_out,omitempty"`
	Capture          captureReport `json:"capture"` // the capture around them; zeros if there is none
	// what was found instead of SOAP and hhfr: connections or datagrams, by kind
	Others  map[string]int `json:"others"`
	Partial bool           `json:"partial"` // something is missing: exit code 5
}

// MessageReport is the JSON of a message.
type MessageReport struct {
	// of the exchange, in sending order, as in the file names of --save-dir; 0: a negotiation
	Number   int    `json:"number"`
	Session  string `json:"session"`  // a UUID; - for plain SOAP
	Lane     uint64 `json:"lane"`     // of the stream
	Exchange uint64 `json:"exchange"` // the number of the exchange on its lane
	// request, reply, interim (a reply before the one that counts) or one-way
	Kind string `json:"kind"`
	// the place of the message in the sequence of its direction
	Place     *PlaceReport `json:"place,omitempty"`
	Stream    int          `json:"stream,omitempty"`    // number of the stream, from 1
	Direction string       `json:"direction,omitempty"` // of the stream: out, from its initiator, or back
	// number of the message among those of the direction that became whole, from 1
	Index     uint64 `json:"index,omitempty"`
	Source    string `json:"source,omitempty"`              // address of the sender
	Target    string `json:"target,omitempty"`              // address of the receiver
	First     string `json:"first,omitempty"`               // time of the first byte, RFC 3339 in UTC
	Last      string `json:"last,omitempty"`                // time of the last byte
	Packet    int    `json:"packet,omitempty"`              // number of the packet with the first byte
	SOAP      string `json:"soap,omitempty"`                // 1.1 or 1.2
	Operation string `json:"operation,omitempty"`           // local name of the first element in the Body
	Namespace string `json:"operation_namespace,omitempty"` // its namespace
	// on the wire: the message's data frames, or its HTTP message
	Wire       int64 `json:"wire_octets"`
	BodyOctets int64 `json:"body_octets"` // of the envelope
	// the envelope is the XML text of what was sent in Fast Infoset
	FastInfoset bool `json:"fast_infoset,omitempty"`
	// of the HTTP head; 0: the default one (negotiation.md)
	HeadOctets int `json:"head_octets"`
	// its purpose between two proxies, if it is none of the HTTP messages of client and server:
	// tunnel, lane end and so on
	Control string `json:"control,omitempty"`
	// verified, unverified, withdrawn, incomplete, cancelled, undecodable, or unchecked: plain
	// SOAP, which nothing checks
	State string `json:"state"`
	Why   string `json:"why,omitempty"`         // more about the state, for people
	Lacks string `json:"lacks_shape,omitempty"` // URI of the shape that is missing
	// URI of the session's context, which is missing: it has the headers that were taken out
	Context string `json:"lacks_context,omitempty"`
	// what the envelope says about sequences of WS-ReliableMessaging
	Reliable *reliableReport `json:"reliable,omitempty"`
	// of a message with attachments, the envelope among them
	Parts []PartReport `json:"parts,omitempty"`
	Head  []byte       `json:"head_base64,omitempty"` // the HTTP head
	Body  []byte       `json:"body_base64,omitempty"` // the envelope
}

// PlaceReport is the place that a frame gives a message (docs/wire-format.md, section 5.1).
type PlaceReport struct {
	Number uint64 `json:"number"` // of the message in its sequence, from 1; unchanged when it is sent again
	// the number, in the sequence of the other direction, of the message that it replies to
	Answers uint64 `json:"answers,omitempty"`
	Wanted  bool   `json:"wanted,omitempty"` // a reply is expected
	// there is no reply: the fate of the message that it would answer is unknown
	Unknown bool `json:"unknown,omitempty"`
	// length of the whole body of a long message, in bytes, and the byte of it from which on this
	// is the body: what is before came over an earlier stream
	Length uint64 `json:"length,omitempty"`
	From   uint64 `json:"from,omitempty"`
}

func newPlaceReport(p streamer.Place) *PlaceReport {
	if p.Number == 0 {
		return nil
	}
	return &PlaceReport{p.Number, p.Answers, p.Wanted, p.Unknown, p.Length, p.From}
}

type reliableReport struct {
	Version string `json:"version"` // 1.0 or 1.1; 1.1 also stands for 1.2
	// the sequence that the message belongs to, or that it creates or ends
	Sequence string `json:"sequence,omitempty"`
	Number   uint64 `json:"number,omitempty"` // of the message, in the sequence
	// it was sent before, on the same hop
	Again  *EarlierReport `json:"again,omitempty"`
	Last   bool           `json:"last,omitempty"`   // the last one (1.0)
	Offers string         `json:"offers,omitempty"` // the sequence that it offers for the other direction
	// its effect on the sequence: CreateSequence, TerminateSequence and so on
	Control      string      `json:"control,omitempty"`
	AckRequested []string    `json:"ack_requested,omitempty"`    // sequences whose acknowledgement is requested
	Acks         []ackReport `json:"acknowledgements,omitempty"` // acknowledgements of the peer's sequences
	Fault        string      `json:"fault,omitempty"`            // fault code about a sequence
	// rules that its elements break, for people; the content of these elements is left out
	Broken []string `json:"broken,omitempty"`
}

type ackReport struct {
	Sequence string      `json:"sequence"`         // the sequence
	Ranges   [][2]uint64 `json:"ranges,omitempty"` // messages that arrived, first and last number of each range
	Nacks    []uint64    `json:"nacks,omitempty"`  // messages that did not arrive
	None     bool        `json:"none,omitempty"`   // none arrived
	Final    bool        `json:"final,omitempty"`  // no more messages are accepted
}

// EarlierReport is where a message was seen first; empty: too long ago to say.
type EarlierReport struct {
	Number int `json:"number,omitempty"` // number of the exchange, as of the message
	Packet int `json:"packet,omitempty"` // number of the packet
}

func newReliableReport(d *capture.Decoded) *reliableReport {
	m := d.Reliable
	if m == nil {
		return nil
	}
	r := &reliableReport{
		Version: m.Version, Sequence: m.Sequence, Number: m.Number, Last: m.Last, Control: m.Control,
		AckRequested: m.AckRequested, Fault: m.Fault, Broken: m.Broken,
	}
	if m.Terms != nil && m.Terms.Offer != nil {
		r.Offers = m.Terms.Offer.Sequence
	}
	if d.Earlier != nil {
		r.Again = &EarlierReport{d.Earlier.Number, d.Earlier.Packet}
	}
	for _, a := range m.Acknowledgements {
		r.Acks = append(r.Acks, ackReport(a))
	}
	return r
}

// CheckReport is the result of a check of messages that were listed before as unverified: an object
// of its own with -o jsonl, from a pipe.
type CheckReport struct {
	Check     string `json:"check"`     // verified or withdrawn
	Session   string `json:"session"`   // a UUID
	Stream    int    `json:"stream"`    // number of the stream, from 1
	Direction string `json:"direction"` // out or back
	From      uint64 `json:"from"`      // index of the first message concerned
	To        uint64 `json:"to"`        // index of the last one
	Messages  int    `json:"messages"`  // how many of these have this state now; others may lack a shape
}

func newCheckReport(c *capture.Check) CheckReport {
	d := capture.Decoded{HHFR: true, Session: c.Session}
	r := CheckReport{Check: c.State.String(), Session: d.SessionString(), Stream: c.Stream,
		Direction: DirectionName(c.Direction), From: c.From, To: c.To}
	for _, m := range c.Messages {
		if m.State == c.State {
			r.Messages++
		}
	}
	return r
}

// DirectionName is that of a direction in JSON.
func DirectionName(direction int) string { return [2]string{"out", "back"}[direction] }

type streamReport struct {
	Session string `json:"session"`          // a UUID
	Source  string `json:"source,omitempty"` // address of the peer that opened it
	Target  string `json:"target,omitempty"` // address of the other peer
	// scheme, host and port of the service, as far as they are known
	Origin   string             `json:"origin,omitempty"`
	Path     string             `json:"path,omitempty"`  // path of the service: requests without a head go there
	Facts    *negotiate.Facts   `json:"facts,omitempty"` // what a recording says was agreed
	Octets   [2]streamOctetsOut `json:"octets"`          // by direction; the first one begins at the source
	Problems []string           `json:"problems"`        // where a direction could not be followed, for people
	// a direction begins without its hello, ends without its close, or lacks bytes
	Cut bool `json:"cut"`
}

type streamOctetsOut struct {
	Data  int64 `json:"data"`  // frames of messages
	Shape int64 `json:"shape"` // frames that announce shapes
	Sync  int64 `json:"sync"`  // sync frames
	Other int64 `json:"other"` // all other frames
}

type captureReport struct {
	Packets      int `json:"packets"`         // packets read
	TCPFlows     int `json:"tcp_connections"` // connections found in them
	UDPDatagrams int `json:"udp_datagrams"`   // datagrams found in them
	// connections in TLS that were decrypted
	Decrypted int `json:"decrypted_connections,omitempty"`
	Gaps      int `json:"gaps"` // gaps in the bytes of connections
	// minimum number of missing bytes: the length of a missing datagram is not always known
	MissingOctets int64          `json:"missing_octets"`
	Undecoded     map[string]int `json:"undecoded_packets"`      // packets that were left out, by reason
	Truncated     bool           `json:"truncated"`              // the file is cut off or damaged
	TruncatedAt   int64          `json:"truncated_at,omitempty"` // offset at which it is cut off or damaged
}

func newMessageReport(m *ListedMessage) MessageReport {
	r := MessageReport{Number: m.Number, Session: m.SessionString(), Lane: m.Lane, Exchange: m.Exchange,
		Kind: m.Kind, Place: newPlaceReport(m.Place), First: stamp(m.First), Last: stamp(m.Last),
		Packet: m.Packet, Operation: m.Operation.Local, Namespace: m.Operation.Space, Wire: m.Wire,
		BodyOctets: m.BodyOctets, FastInfoset: m.FastInfoset, HeadOctets: len(m.Head),
		Control: m.Control, State: m.State.String(), Why: m.Why, Lacks: m.Lacks, Context: m.LacksContext,
		Reliable: newReliableReport(m.Decoded), Parts: partsOf(m), Head: m.Head}
	if int64(len(m.Body)) == m.BodyOctets {
		r.Body = m.Body
	}
	if m.Stream > 0 {
		r.Stream, r.Direction, r.Index = m.Stream, DirectionName(m.Direction), m.Index
	}
	if m.Version != 0 {
		r.SOAP = m.Version.String()
	}
	if m.Src.IsValid() {
		r.Source, r.Target = m.Src.String(), m.Dst.String()
	}
	return r
}

// reportBegin precedes the messages of a report, which are written as they arrive.
const reportBegin = `{"version":1,"messages":[`

// writeReportEnd writes what follows them.
func writeReportEnd(w io.Writer, s *capture.Summary) error {
	var b bytes.Buffer
	if err := printing.JSON(&b, newReport(s)); err != nil {
		return err
	}
	_, err := w.Write(bytes.TrimPrefix(b.Bytes(), []byte(reportBegin)))
	return err
}

// newReport is a report without messages.
func newReport(r *capture.Summary) DecodeReport {
	undecoded := r.Stats.Undecoded
	if undecoded == nil {
		undecoded = map[string]int{}
	}
	out := DecodeReport{Version: reportVersion, Messages: []MessageReport{}, Streams: []streamReport{},
		Sequences: []SequenceReport{}, Others: r.Others,
		Partial: r.Partial(), Capture: captureReport{
			Packets: r.Stats.Packets, TCPFlows: r.Stats.TCPFlows, UDPDatagrams: r.Stats.UDPDatagrams,
			Decrypted:     r.Decrypted,
			Gaps:          r.Stats.Gaps,
			MissingOctets: r.Stats.MissingOctets,
			Undecoded:     undecoded, Truncated: r.Stats.Truncated, TruncatedAt: r.Stats.TruncatedAt}}
	list, dropped := r.Sequences()
	for i := range list {
		out.Sequences = append(out.Sequences, newSequenceReport(&list[i]))
	}
	out.SequencesLeftOut = dropped
	for _, s := range r.Streams {
		d := capture.Decoded{HHFR: true, Session: s.Session}
		one := streamReport{Session: d.SessionString(), Origin: s.Service.Origin, Path: s.Service.Path,
			Problems: append([]string{}, s.Problems...), Cut: s.Cut}
		var facts negotiate.Facts
		if json.Unmarshal([]byte(s.Facts), &facts) == nil && facts.Session == s.Session {
			one.Facts = &facts
		}
		if s.Src.IsValid() {
			one.Source, one.Target = s.Src.String(), s.Dst.String()
		}
		for i, o := range s.Octets {
			one.Octets[i] = streamOctetsOut(o)
		}
		out.Streams = append(out.Streams, one)
	}
	return out
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
