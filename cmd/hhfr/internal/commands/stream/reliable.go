package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// addressings are the values of --addressing.
var addressings = map[string]string{"": "", "2004/08": addressing.V200408, "2005/08": addressing.V200508}

// checkReliable refuses what does not go with --soap-rm.
func (o *streamOptions) checkReliable() error {
	_, known := addressings[o.addressing]
	if !known {
		return exit.Usagef("", "--addressing is 2004/08 or 2005/08, not %s", o.addressing)
	}
	if o.soapRM == "" {
		if err := o.replies.check(o); err != nil {
			return err
		}
		if o.addressing != "" {
			return exit.Usagef("", "--addressing goes with --soap-rm")
		}
		return nil
	}
	if _, ok := soaprm.ParseProtocol(o.soapRM); !ok {
		return exit.Usagef("", "--soap-rm is 1.0, 1.1 or 1.2, not %s", o.soapRM)
	}
	for flag, given := range map[string]bool{
		"--assurance": o.sequenced() && !o.ordered, "--ordered": o.ordered, "--resume": o.resume,
		"--listen":       o.listen,
		"--require-hhfr": o.requireHHFR, "--transport": o.transport != "tcp", "--schema": o.schema.Name != "",
		"--reply-schema": o.replySchema != "", "--unchanging-header": len(o.headerFiles) > 0,
		"--common-store":   o.common.Store != "",
		"--representation": o.representation != "",
	} {
		if given {
			return exit.Usagef("", "%s does not go with --soap-rm, which uses plain SOAP", flag)
		}
	}
	return o.replies.check(o)
}

// reliableRun is what a run with --soap-rm works with.
type reliableRun struct {
	g      *command.Global
	store  ctxstore.Store
	secure *trust.Secured
	rec    *recording.TrafficRecording
	over   *network.Network

	source  *soaprm.SequenceSource
	printer *printer
	pending int // messages that the store keeps
	mu      sync.Mutex
	late    []*sender.Incoming
}

// sendReliably sends messages in a sequence of WS-ReliableMessaging.
func (o *streamOptions) sendReliably(ctx context.Context, r *reliableRun) (err error) {
	began := time.Now()
	r.printer = &printer{g: r.g, o: *o, told: true}
	sending, stop := context.WithCancel(ctx)
	defer stop()
	queue := make(chan func() *sender.Incoming, o.concurrency)
	var failed error // before queue is closed
	go func() {
		defer close(queue)
		failed = r.sendAll(sending, o, queue)
	}()
	for next := range queue {
		if in := next(); err == nil {
			if err = r.print(in); err != nil {
				stop()
			}
		}
	}
	err = errors.Join(err, failed)
	if r.source != nil {
		if err == nil {
			err = r.finish(ctx)
		}
		err = errors.Join(err, r.source.Close())
		err = errors.Join(err, r.tellLate())
	}
	err = errors.Join(err, o.replies.close())
	r.summarize(o, time.Since(began))
	return errors.Join(err, r.printer.end())
}

// sendAll has messages accepted in their order; queue gets what waits for their replies.
func (r *reliableRun) sendAll(ctx context.Context, o *streamOptions, queue chan<- func() *sender.Incoming) error {
	if len(o.files) == 0 { // only what an earlier run left is sent
		return r.open(ctx, o, soap.None)
	}
	number := 0
	for m, err := range messages(ctx, r.g, *o, false) {
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
			if err := r.open(ctx, o, version); err != nil {
				return err
			}
		}
		number++
		in := &sender.Incoming{Number: number, Sent: m, Began: time.Now()}
		sent, err := r.source.Send(ctx, soaprm.OutgoingEnvelope{Envelope: m.Body, Action: o.action, OneWay: m.OneWay})
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
func (r *reliableRun) open(ctx context.Context, o *streamOptions, v soap.Version) error {
	fields, err := sender.ParseFields(o.fields)
	if err != nil {
		return err
	}
	version, _ := soaprm.ParseProtocol(o.soapRM) // checked before
	cfg := soaprm.SourceConfig{
		URL: o.url, Version: version, Addressing: addressings[o.addressing], SOAP: v, Store: r.store,
		Client: &http.Client{
			Transport:     dialer{options: *o, secure: r.secure, recording: r.rec, network: r.over}.http(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		Fields: http.Header{}, GiveUp: o.reconnect, Late: r.lateReply, Log: r.g.Logger(),
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
		return exit.With(exit.NoPeer, err, o.unlessRefused(e))
	}
	if errors.Is(err, &soaprm.Error{Code: soaprm.Unanswered}) {
		return exit.With(exit.NoPeer, err, "")
	}
	if err == nil {
		status := r.source.Status()
		r.g.Detail("sequence %s, replies %s: %s accepted before, %d of them acknowledged", status.Identifier,
			status.Replies, printing.Count(status.Accepted, "message"), status.Done)
	}
	return err
}

// unlessRefused is what may help where a service refused a sequence.
func (o *streamOptions) unlessRefused(err *soaprm.Error) string {
	switch misaddressed := err.Code == soaprm.Misaddressed; {
	case err.Fault != "":
		return "the service knows WS-ReliableMessaging, and says why it takes no such sequence; where it has too " +
			"many, try again later"
	case o.kept():
		return "the service does not do what its policy says: --soap-rm VERSION --addressing VERSION asks in another " +
			"form, --assurance at-most-once sends plain SOAP"
	case misaddressed && o.addressing != "":
		return "the service wants another WS-Addressing: leave --addressing " + o.addressing + " out"
	case misaddressed:
		return "the service wants neither WS-Addressing 2004/08 nor 2005/08; --addressing asks with one alone"
	}
	return "the service may not know WS-ReliableMessaging: leave --soap-rm out"
}

// lateReply takes what came of a message that an earlier run sent.
func (r *reliableRun) lateReply(number uint64, reply *soaprm.ReceivedReply, err error) {
	in := &sender.Incoming{Number: int(number), Sent: sender.MessageToSend{Name: earlierRun}, Err: err}
	answered(in, reply)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = append(r.late, in)
}

func (r *reliableRun) tellLate() (err error) {
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
func (r *reliableRun) print(in *sender.Incoming) error {
	switch {
	case errors.Is(in.Err, &soaprm.Error{Code: soaprm.FateUnknown}),
		errors.Is(in.Err, &soaprm.Error{Code: soaprm.ReplyLost}):
		return r.printer.unknown(sentOf(in), in.Err)
	case errors.Is(in.Err, &soaprm.Error{Code: soaprm.Unanswered}):
		r.pending++
		r.g.Detail("message %d (%s): %v", in.Number, in.Sent.Name, in.Err)
		return nil
	}
	return r.printer.incoming(in)
}

// finish waits until everything is acknowledged, and ends the sequence.
func (r *reliableRun) finish(ctx context.Context) error {
	err := r.source.Finish(ctx)
	status := r.source.Status()
	r.g.Detail("sequence: %s accepted, %d acknowledged, %d replies, %d sent again in this run",
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

func (r *reliableRun) summarize(o *streamOptions, took time.Duration) {
	s := &r.printer.sum
	s.Version, s.Why, s.Millis = 1, "WS-ReliableMessaging "+o.soapRM, printing.Millis(took)
	s.HTTP = r.over.Plain.Total()
	if r.source != nil {
		status := r.source.Status()
		s.Sequence = &sequenceStats{status.Accepted, status.Done, status.Received, status.Resent}
	}
	if plain := s.Envelopes.Sum() + s.Heads.Sum(); plain > 0 {
		s.Ratio = float64(s.HTTP.Sum()) / float64(plain)
	}
}

// answered notes the reply to a message; nil: there is none.
func answered(in *sender.Incoming, reply *soaprm.ReceivedReply) {
	if reply == nil {
		return
	}
	in.Head = httpmsg.ReplyHead(reply.Status, http.Header{"Content-Type": {reply.ContentType}})
	in.Body = reply.Envelope
}
