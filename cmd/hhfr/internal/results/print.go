// Package results prints and saves what came of the messages that a command sent, and judges it.
package results

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// ResultPrinter prints and saves the replies, in sending order.
type ResultPrinter struct {
	*command.Global
	Output, SaveDir string // SaveDir: folder, or empty
	Sum             RunSummary

	posted []posted // one-way messages, until their fate is known
}

// ExchangeReport is a line of `hhfr stream -o json`.
type ExchangeReport struct {
	Number    int     `json:"number"`              // of the message, in sending order
	Name      string  `json:"name"`                // the file, or - for stdin
	Operation string  `json:"operation,omitempty"` // local name of the first element in the Body
	Status    int     `json:"status"`              // HTTP status of the reply
	Fault     bool    `json:"fault"`               // the reply is a fault or an HTTP error
	Sent      int64   `json:"sent_octets"`         // envelope sent
	Received  int     `json:"received_octets"`     // envelope received
	Millis    float64 `json:"ms"`                  // milliseconds until the whole reply had arrived
	// HTTP head of the reply, if it is not the default one (negotiation.md)
	Head []byte `json:"head_base64,omitempty"`
	Body []byte `json:"body_base64"` // the reply
}

// RunSummary is the last line of `hhfr stream -o json`. Bytes of stream are those of its frames.
// Bytes of http are those of connections for negotiation and plain SOAP; of an upgraded connection,
// those outside the stream.
type RunSummary struct {
	Version  int    `json:"version"`             // 1
	HHFR     bool   `json:"hhfr"`                // a stream was agreed
	Session  string `json:"session,omitempty"`   // its session
	Mode     string `json:"mode,omitempty"`      // how it was opened: met, first-call or explicit
	Why      string `json:"why_plain,omitempty"` // why plain SOAP was used
	Messages int    `json:"messages"`            // replies received
	Failed   int    `json:"failed"`              // faults and HTTP errors among them
	// numbers of messages that were written and not answered, and not sent again
	Unknown   []int          `json:"unknown_fate"`
	Envelopes network.Octets `json:"envelope_octets"` // all envelopes
	// the HTTP heads that went with them, or would have in plain SOAP
	Heads network.Octets `json:"http_head_octets"`
	// all frames of the stream; only of the last stream if one broke and was replaced
	Stream    network.Octets `json:"stream_octets"`
	Shapes    network.Octets `json:"stream_shape_octets"`        // those among them that announce shapes
	Syncs     network.Octets `json:"stream_sync_octets"`         // the sync frames among them
	Initiated int            `json:"server_initiated,omitempty"` // server-initiated messages, with --listen
	LeftOut   uint64         `json:"left_out,omitempty"`         // messages that --resume left out
	// connections for negotiation and plain SOAP, without the streams that these became
	HTTP network.Octets `json:"http_octets"`
	// bytes of stream and http by those of envelopes and heads; 0: there were none
	Ratio   float64 `json:"ratio"`
	Millis  float64 `json:"ms"`         // milliseconds, negotiation included
	Slowest float64 `json:"slowest_ms"` // the slowest exchange
	// unchanging headers that did not travel with their messages
	Taken     int64                  `json:"headers_taken_out,omitempty"`
	Drifted   int64                  `json:"not_as_described,omitempty"` // messages sent that differ from --schema
	Sequence  *SequenceStats         `json:"sequence,omitempty"`         // of messages under an assurance, or in order
	Datagrams *network.DatagramStats `json:"datagrams,omitempty"`        // of streams over UDP
}

// StreamEnd is the last line of `hhfr stream -o json`.
type StreamEnd struct {
	Summary *RunSummary `json:"summary"` // of the run
}

// Incoming handles one result. An error that concerns more than this message ends the command.
func (p *ResultPrinter) Incoming(in *sender.Incoming) error {
	if IsUnknown(in.Err) {
		return p.Unknown(in, in.Err)
	}
	if in.Err != nil {
		return fmt.Errorf("message %d (%s): %w", in.Number, in.Sent.Name, in.Err)
	}
	p.Sum.add(in)
	if in.Posted != nil {
		p.posted = append(p.posted, posted{sentOf(in), in.Posted})
	}
	if p.SaveDir != "" {
		if err := save(p.SaveDir, in); err != nil {
			return err
		}
	}
	operation := soap.Recognize(in.Sent.Body).Operation.Local
	switch p.Output {
	case "json":
		body := in.Body
		if body == nil {
			body = []byte{} // in JSON a string as well
		}
		return p.JSON(ExchangeReport{in.Number, in.Sent.Name, operation, in.Status(), in.Failed(), in.Sent.Length(),
			len(in.Body), printing.Millis(in.Took), in.Head, body})
	case "xml":
		body := in.Body
		if in.Sent.OneWay {
			return nil
		}
		if len(body) == 0 || body[len(body)-1] != '\n' {
			body = append(body[:len(body):len(body)], '\n')
		}
		_, err := p.Out.Write(body)
		return err
	}
	if operation == "" {
		operation = "-"
	}
	_, err := fmt.Fprintf(p.Out, "%6d  %3d  %-28s %8d -> %8d bytes %9.1f ms  %s\n", in.Number, in.Status(),
		printing.Shorten(operation, 28), in.Sent.Length(), len(in.Body), printing.Millis(in.Took),
		shortName(in.Sent.Name))
	return err
}

// save writes a message and its reply into a folder.
func save(dir string, in *sender.Incoming) error {
	path := func(kind string) string { return filepath.Join(dir, fmt.Sprintf("%06d-%s.xml", in.Number, kind)) }
	var err error
	switch {
	case in.Sent.Name == EarlierRun:
	case in.Sent.File != "":
		err = copyFile(path("request"), in.Sent.File)
	default:
		err = os.WriteFile(path("request"), in.Sent.Body, 0o600)
	}
	if err != nil || in.Sent.OneWay {
		return err
	}
	return os.WriteFile(path("reply"), in.Body, 0o600)
}

// copyFile copies a file.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (s *RunSummary) add(in *sender.Incoming) {
	s.Messages++
	if in.Failed() {
		s.Failed++
	}
	s.Envelopes.Sent += in.Sent.Length()
	s.Envelopes.Received += int64(len(in.Body))
	s.Heads.Sent += int64(len(in.Sent.Head))
	if in.Head == nil && !in.Sent.OneWay {
		in.Head = negotiate.DefaultReplyHead()
	}
	s.Heads.Received += int64(len(in.Head))
	s.Slowest = max(s.Slowest, printing.Millis(in.Took))
}

// Finish adds what a session counted.
func (s *RunSummary) Finish(sess *session.Session, over *network.Network, took time.Duration) {
	a := sess.Agreed()
	s.Version, s.HHFR, s.Why, s.Millis = 1, a.HHFR, a.Why, printing.Millis(took)
	if a.Facts != nil {
		s.Session, s.Mode = a.Facts.Session.String(), string(a.Mode)
	}
	s.Sequence, s.Taken = sequenceOf(sess), sess.HeadersTaken()
	s.Datagrams = over.Datagrams.Stats()
	s.HTTP = over.Plain.Total()
	if stream := sess.Stream(); stream != nil {
		st := stream.Stats()
		s.Stream = network.Octets{Sent: st.Sent.Octets(), Received: st.Received.Octets()}
		s.Shapes = network.Octets{Sent: st.Sent.Shape.Octets, Received: st.Received.Shape.Octets}
		s.Syncs = network.Octets{Sent: st.Sent.Sync.Octets, Received: st.Received.Sync.Octets}
		if s.Why == "the stream ended" {
			s.Why = ""
		}
	}
	s.compare()
}

// FinishPlain adds what was counted of a sequence of WS-ReliableMessaging, if one was opened.
func (s *RunSummary) FinishPlain(why string, status *SequenceStats, over *network.Network, took time.Duration) {
	s.Version, s.Why, s.Sequence, s.Millis = 1, why, status, printing.Millis(took)
	s.HTTP = over.Plain.Total()
	s.compare()
}

// compare computes the ratio.
func (s *RunSummary) compare() {
	if plain := s.Envelopes.Sum() + s.Heads.Sum(); plain > 0 {
		s.Ratio = float64(s.Stream.Sum()+s.HTTP.Sum()) / float64(plain)
	}
}

// End prints the summary; its error reports the failures.
func (p *ResultPrinter) End() error {
	s := &p.Sum
	if s.Unknown == nil {
		s.Unknown = []int{}
	}
	if p.Output == "json" {
		if err := p.JSON(StreamEnd{s}); err != nil {
			return err
		}
	} else {
		initiated := ""
		if s.Initiated > 0 {
			initiated = fmt.Sprintf(", %d server-initiated", s.Initiated)
		}
		p.Note("%s, %d failed%s, %.1f ms; envelopes %d + %d bytes, heads %d + %d; "+
			"stream %d + %d (shapes %d + %d, syncs %d + %d); HTTP %d + %d; ratio %s",
			printing.Count(s.Messages, "message"), s.Failed, initiated, s.Millis,
			s.Envelopes.Sent, s.Envelopes.Received, s.Heads.Sent, s.Heads.Received, s.Stream.Sent, s.Stream.Received,
			s.Shapes.Sent, s.Shapes.Received,
			s.Syncs.Sent, s.Syncs.Received, s.HTTP.Sent, s.HTTP.Received,
			printing.RatioText(s.Stream.Sum()+s.HTTP.Sum(), s.Envelopes.Sum()+s.Heads.Sum()))
		if s.Drifted > 0 {
			p.Note("%s not as described; hhfr schema check says where", printing.Count(s.Drifted, "message"))
		}
		if d := s.Datagrams; d != nil {
			p.Detail("datagrams %d + %d, %d refused; units sent again %d, arrived again %d; "+
				"acknowledgements %d + %d; "+
				"time-outs %d, %d of them spurious, probes %d; round trip %.1f ms, timer %.1f ms, window %d bytes",
				d.Sent, d.Received, d.Refused, d.Resent, d.Again, d.AcksOut, d.AcksIn, d.Timeouts, d.Wrong, d.Probes,
				d.RTT, d.RTO, d.Window)
		}
	}
	if len(s.Unknown) > 0 {
		return unknownProblem(s.Unknown)
	}
	if s.Failed > 0 {
		return exit.Withf(exit.Failed, "-o xml prints it", "a reply is a fault or an HTTP error")
	}
	return nil
}

// shortName shortens a path to its end, which distinguishes files.
func shortName(name string) string {
	const most = 60
	name = printing.Shorten(name, len(name)+1)
	if r := []rune(name); len(r) > most {
		return "…" + string(r[len(r)-most+1:])
	}
	return name
}
