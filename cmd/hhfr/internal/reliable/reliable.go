// Package reliable sends messages in a sequence of WS-ReliableMessaging over plain SOAP.
package reliable

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/client"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/outgoing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/results"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// addressings are the values of --addressing.
var addressings = map[string]string{"": "", "2004/08": addressing.V200408, "2005/08": addressing.V200508}

// ReliableOptions are the flags of such a sequence.
type ReliableOptions struct {
	Version    string // empty: none is asked for
	addressing string
	replies    replyPlace
}

// Flags declares them.
func (o *ReliableOptions) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.Version, "soap-rm", "",
		"send in a sequence of WS-ReliableMessaging over plain SOAP: 1.0, 1.1 or 1.2")
	f.StringVar(&o.addressing, "addressing", "",
		"WS-Addressing of --soap-rm: 2004/08 or 2005/08; empty: 2004/08 with 1.0, else 2005/08, or, if the service "+
			"refuses that, the other")
	o.replies.flags(f)
}

// Check refuses what does not go with --soap-rm.
func (o *ReliableOptions) Check(c *client.ClientOptions) error {
	_, known := addressings[o.addressing]
	version, ok := soaprm.ParseProtocol(o.Version)
	switch {
	case !known:
		return exit.Usagef("", "--addressing is 2004/08 or 2005/08, not %s", o.addressing)
	case o.Version != "" && !ok:
		return exit.Usagef("", "--soap-rm is 1.0, 1.1 or 1.2, not %s", o.Version)
	}
	if err := o.replies.check(version, c); err != nil || o.Version == "" {
		if err == nil && o.addressing != "" {
			err = exit.Usagef("", "--addressing goes with --soap-rm")
		}
		return err
	}
	for flag, given := range map[string]bool{
		"--assurance": c.Kept() && !c.Ordered, "--ordered": c.Ordered, "--resume": c.Resume,
		"--require-hhfr": c.RequireHHFR, "--transport": c.Transport != "tcp", "--schema": c.Schema.Name != "",
		"--reply-schema": c.ReplySchema != "", "--unchanging-header": len(c.HeaderFiles) > 0,
		"--common-store": c.Common.Store != "", "--representation": c.Representation != "",
	} {
		if given {
			return exit.Usagef("", "%s does not go with --soap-rm, which uses plain SOAP", flag)
		}
	}
	return nil
}

// ReliableRun is a run that sends FILEs so, over what is open.
type ReliableRun struct {
	*command.Global
	*client.OpenedClient
	Client   *client.ClientOptions
	Reliable *ReliableOptions
	Files    *outgoing.FileMessages
	Printer  *results.ResultPrinter

	source  *soaprm.SequenceSource
	pending int // messages that the store keeps
	mu      sync.Mutex
	late    []*sender.Incoming
}

// Send sends the messages.
func (r *ReliableRun) Send(ctx context.Context) (err error) {
	began := time.Now()
	sending, stop := context.WithCancel(ctx)
	defer stop()
	queue := make(chan func() *sender.Incoming, r.Client.Concurrency)
	var failed error // before queue is closed
	go func() {
		defer close(queue)
		failed = r.sendAll(sending, queue)
	}()
	for next := range queue {
		if in := next(); err == nil {
			if err = r.print(in); err != nil {
				stop()
			}
		}
	}
	err = errors.Join(err, failed)
	var sequence *results.SequenceStats
	if r.source != nil {
		if err == nil {
			err = r.finish(ctx)
		}
		err = errors.Join(err, r.source.Close())
		err = errors.Join(err, r.tellLate())
		status := r.source.Status()
		sequence = &results.SequenceStats{Accepted: status.Accepted, Done: status.Done, Received: status.Received,
			Resent: status.Resent}
	}
	err = errors.Join(err, r.Reliable.replies.close())
	r.Printer.Sum.FinishPlain("WS-ReliableMessaging "+r.Reliable.Version, sequence, r.Network, time.Since(began))
	return errors.Join(err, r.Printer.End())
}

// sendAll has messages accepted in their order; queue gets what waits for their replies.
func (r *ReliableRun) sendAll(ctx context.Context, queue chan<- func() *sender.Incoming) error {
	if len(r.Files.Names) == 0 { // only what an earlier run left is sent
		return r.open(ctx, soap.None)
	}
	number := 0
	for m, err := range r.Files.All(ctx, r.Global, false) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.source == nil {
			version := soap.Recognize(m.Body).Version
			if version == soap.None {
				return exit.Withf(exit.Malformed, "--wrap 1.1 makes one of a body", "%s is no SOAP envelope", m.Name)
			}
			if err := r.open(ctx, version); err != nil {
				return err
			}
		}
		number++
		in := &sender.Incoming{Number: number, Sent: m, Began: time.Now()}
		sent, err := r.source.Send(ctx, soaprm.OutgoingEnvelope{Envelope: m.Body, Action: r.Files.Action,
			OneWay: m.OneWay})
		if err != nil {
			return fmt.Errorf("message %d (%s): %w", number, m.Name, err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			reply, err := sent.Reply(ctx)
			in.Took, in.Err = time.Since(in.Began), err
			answered(in, reply)
		}()
		queue <- func() *sender.Incoming { <-done; return in }
	}
	return nil
}

// open opens the sequence.
func (r *ReliableRun) open(ctx context.Context, v soap.Version) error {
	fields, err := sender.ParseFields(r.Client.Fields)
	if err != nil {
		return err
	}
	o := r.Reliable
	version, _ := soaprm.ParseProtocol(o.Version) // checked before
	cfg := soaprm.SourceConfig{
		URL: r.Client.URL, Version: version, Addressing: addressings[o.addressing], SOAP: v, Store: r.Store,
		Client: r.HTTP(), Fields: http.Header{}, GiveUp: r.Client.Reconnect, Late: r.lateReply, Log: r.Logger(),
	}
	for _, f := range fields {
		cfg.Fields[f.Name] = append(cfg.Fields[f.Name], f.Value)
	}
	if err := o.replies.open(ctx, r, &cfg); err != nil {
		return err
	}
	r.source, err = soaprm.OpenSource(ctx, cfg)
	if errors.Is(err, &soaprm.Error{Code: soaprm.BadConfig}) {
		return exit.Usage(err,
			"the same --callback, --poll and SOAP version as before go on with it; with another --store "+
				"a new one begins")
	}
	if e := (*soaprm.Error)(nil); errors.As(err, &e) && (e.Code == soaprm.Refused || e.Code == soaprm.Misaddressed) {
		return exit.With(exit.NoPeer, err, r.unlessRefused(e))
	}
	if errors.Is(err, &soaprm.Error{Code: soaprm.Unanswered}) {
		return exit.With(exit.NoPeer, err, "")
	}
	if err == nil {
		status := r.source.Status()
		r.Detail("sequence %s, replies %s: %s accepted before, %d of them acknowledged", status.Identifier,
			status.Replies, printing.Count(status.Accepted, "message"), status.Done)
	}
	return err
}

// unlessRefused is what may help where a service refused a sequence.
func (r *ReliableRun) unlessRefused(err *soaprm.Error) string {
	switch misaddressed := err.Code == soaprm.Misaddressed; {
	case err.Fault != "":
		return "the service knows WS-ReliableMessaging, and says why it takes no such sequence; where it has too " +
			"many, try again later"
	case r.Client.Kept():
		return "the service does not do what its policy says: --soap-rm VERSION --addressing VERSION asks in another " +
			"form, --assurance at-most-once sends plain SOAP"
	case misaddressed && r.Reliable.addressing != "":
		return "the service wants another WS-Addressing: leave --addressing " + r.Reliable.addressing + " out"
	case misaddressed:
		return "the service wants neither WS-Addressing 2004/08 nor 2005/08; --addressing asks with one alone"
	}
	return "the service may not know WS-ReliableMessaging: leave --soap-rm out"
}

// lateReply takes what came of a message that an earlier run sent.
func (r *ReliableRun) lateReply(number uint64, reply *soaprm.ReceivedReply, err error) {
	in := &sender.Incoming{Number: int(number), Sent: sender.MessageToSend{Name: results.EarlierRun}, Err: err}
	answered(in, reply)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = append(r.late, in)
}

func (r *ReliableRun) tellLate() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.late {
		if in.Err == nil && in.Body == nil {
			continue // it wanted no reply
		}
		err = errors.Join(err, r.print(in))
	}
	return err
}

// print handles one result. An error that concerns more than this message ends the command.
func (r *ReliableRun) print(in *sender.Incoming) error {
	switch {
	case errors.Is(in.Err, &soaprm.Error{Code: soaprm.FateUnknown}),
		errors.Is(in.Err, &soaprm.Error{Code: soaprm.ReplyLost}):
		return r.Printer.Unknown(in, in.Err)
	case errors.Is(in.Err, &soaprm.Error{Code: soaprm.Unanswered}):
		r.pending++
		r.Detail("message %d (%s): %v", in.Number, in.Sent.Name, in.Err)
		return nil
	}
	return r.Printer.Incoming(in)
}

// finish waits until everything is acknowledged, and ends the sequence.
func (r *ReliableRun) finish(ctx context.Context) error {
	err := r.source.Finish(ctx)
	status := r.source.Status()
	r.Detail("sequence: %s accepted, %d acknowledged, %d replies, %d sent again in this run",
		printing.Count(status.Accepted, "message"), status.Done, status.Received, status.Resent)
	if err == nil {
		return nil
	}
	if left := status.Accepted - status.Done; left > 0 {
		err = fmt.Errorf("%s not known to be handled: %w", printing.Count(left, "message"), err)
		return exit.With(exit.Partial, err, "the store has them: the same command without a FILE sends them")
	}
	return err
}

// answered notes the reply to a message; nil: there is none.
func answered(in *sender.Incoming, reply *soaprm.ReceivedReply) {
	if reply == nil {
		return
	}
	in.Head = httpmsg.ReplyHead(reply.Status, http.Header{"Content-Type": {reply.ContentType}})
	in.Body = reply.Envelope
}
