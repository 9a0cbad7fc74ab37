package stream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

func (o *streamOptions) assure() wsrm.Assurance { return flags.ParseAssurance(o.assurance) }

// sequenced reports whether the messages are in a sequence.
func (o *streamOptions) sequenced() bool { return o.kept() || o.ordered }

// kept reports whether the sequence is in the store, and can be continued by a later run.
func (o *streamOptions) kept() bool { return o.assure() > wsrm.AtMostOnce }

func (o *streamOptions) checkAssurance() error {
	switch a := o.assure(); {
	case a == 0:
		return exit.Usagef("", "--assurance is %s, not %s", strings.Join(flags.Assurances(), ", "), o.assurance)
	case o.resume && !o.kept():
		return exit.Usagef("", "--resume goes with --assurance at-least-once or exactly-once")
	case a == wsrm.ExactlyOnce && o.store.Spec == "mem:":
		return exit.Usagef("name one: --store bolt:FILE", "exactly-once needs a store that outlives the process")
	case o.sequenced() && o.listen:
		return exit.Usagef("", "--listen goes with at-most-once, without --ordered: server-initiated messages "+
			"are in no sequence")
	}
	return nil
}

// begin reports what an earlier run left.
func (o *streamOptions) begin(g *command.Global, sess *session.Session) {
	status := sess.Sequence()
	if undone := status.Accepted - status.Done; undone > 0 || o.resume {
		g.Detail("continuing a sequence: %s accepted, %d of them not known to be committed",
			printing.Count(status.Accepted, "message"), undone)
	}
}

// IsAccepted reports whether a message was left out because an earlier run had accepted it.
func IsAccepted(err error) bool { return errors.Is(err, &negotiate.Error{Code: negotiate.Accepted}) }

// resumed reports the result of --resume. If everything was left out, or everything sent
// nevertheless, it is printed with -q, too.
func resumed(g *command.Global, sess *session.Session) {
	r := sess.Resumed()
	at := r.At.UTC().Format(time.RFC3339)
	switch {
	case r.Ended:
		g.Say("--resume: nothing is sent: a run of these messages (%d) came to its end at %s; "+
			"without --resume they are sent again", r.LeftOut, at)
	case r.Other:
		g.Say("--resume: no run to resume: the last one, of other messages, came to its end at %s; "+
			"all messages are sent", at)
	case r.LeftOut > 0:
		g.Note("--resume: %s left out, which the interrupted run had accepted", printing.Count(r.LeftOut, "message"))
	}
}

// finish waits until everything is committed. If nothing is in the store, the fate of each message
// is reported.
func (o *streamOptions) finish(ctx context.Context, g *command.Global, sess *session.Session) error {
	err := sess.Finish(ctx)
	status := sess.Sequence()
	g.Detail("sequence: %s accepted, %d committed, %d sent again in this run",
		printing.Count(status.Accepted, "message"), status.Done, status.Resent)
	switch {
	case err == nil || !o.kept() && ctx.Err() == nil:
		return nil
	case !o.kept() || !errors.Is(err, context.Cause(ctx)):
		return err
	}
	if status.Accepted == status.Done {
		err = fmt.Errorf("all is committed (%s), but the peer has not learned that nothing follows: %w",
			printing.Count(status.Accepted, "message"), err)
		return exit.With(exit.Partial, err, "the same command with --resume ends it")
	}
	err = fmt.Errorf("%s not known to be committed: %w", printing.Count(status.Accepted-status.Done, "message"), err)
	return exit.With(exit.Partial, err, "the store has them: the same command with --resume sends them")
}

// sequenceStats is the progress of a sequence's messages, of this run and of earlier ones that it
// continues; of the last sequence, if the peer lost one.
type sequenceStats struct {
	// messages accepted for sending, by all runs of the sequence; only of the last sequence, if the
	// peer lost one
	Accepted uint64 `json:"accepted"`
	// messages that the peer has committed, and under at-most-once those of unknown fate
	Done     uint64 `json:"done"`
	Received uint64 `json:"received"` // messages of the peer that this side has committed: replies
	Resent   int64  `json:"resent"`   // retransmissions of messages, in this run
}

// sequenceOf is nil for a session without a sequence.
func sequenceOf(sess *session.Session) *sequenceStats {
	if a := sess.Agreed(); a.Facts == nil || a.Facts.Sequence == "" {
		return nil
	}
	status := sess.Sequence()
	return &sequenceStats{status.Accepted, status.Done, status.Received, status.Resent}
}

// silent reports whether nothing came from the peer: datagrams are sent before anybody answers.
func silent(sess *session.Session, over *network.Network) bool {
	stream := sess.Stream()
	return stream != nil && stream.Stats().Received.Octets() == 0 && over.Plain.Total().Received == 0
}

// unfinished adds to the error of an incomplete run how to continue. silent: the peer said nothing.
func (o *streamOptions) unfinished(err error, silent bool) error {
	switch {
	case errors.Is(err, &sequence.Error{Code: sequence.Outdated}):
		return exit.With(exit.Failed, err, fmt.Sprintf("is %s an older copy, as from a backup? It cannot go on with "+
			"messages that the server has had since; with another --store, or without the entries urn:hhfr:outbox:… "+
			"of this one (hhfr context delete), a new sequence begins", o.store.Spec))
	case !errors.Is(err, &negotiate.Error{Code: negotiate.Kept}) &&
		!errors.Is(err, &sequence.Error{Code: sequence.Unsent}):
	case o.kept() && errors.Is(err, &ctxstore.Error{Code: ctxstore.Full}):
		return exit.With(exit.Partial, err, "with more space (--store-size) the same command with --resume goes on "+
			"with what is left")
	case !o.kept():
		return exit.With(exit.Partial, err, "messages that have no reply here, and no unknown fate, were not sent")
	case silent:
		return exit.Withf(exit.NoPeer, "is the server running, "+
			"and are host and port right? The same command with --resume goes on then: the store has what was accepted",
			"no connection: nobody answers: %w", err)
	default:
		return exit.With(exit.Partial, err, "the same command with --resume goes on with what is left: the store has "+
			"what was accepted")
	}
	return err
}

// lateReplies are answers to messages that an earlier run sent.
type lateReplies struct {
	mu   sync.Mutex
	list []*sender.Incoming
}

func (l *lateReplies) take(number uint64, reply *streamer.Message, err error) {
	in := &sender.Incoming{Number: int(number), Sent: sender.MessageToSend{Name: earlierRun}, Err: err}
	if err == nil {
		in.Head = reply.Head
		in.Body, in.Err = reply.ReadAll(input.MaxMessage)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, in)
}

// earlierRun is the name of messages from files that only an earlier run knew.
const earlierRun = "earlier run"

// tell prints the replies to messages of an earlier run, by the sequence numbers of these messages.
func (p *printer) tell() (err error) {
	p.late.mu.Lock()
	defer p.late.mu.Unlock()
	for _, in := range p.late.list {
		err = errors.Join(err, p.incoming(in))
	}
	return err
}
