package results

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// TellBegin reports what an earlier run left.
func TellBegin(g *command.Global, sess *session.Session, resume bool) {
	status := sess.Sequence()
	if undone := status.Accepted - status.Done; undone > 0 || resume {
		g.Detail("continuing a sequence: %s accepted, %d of them not known to be committed",
			printing.Count(status.Accepted, "message"), undone)
	}
}

// IsAccepted reports whether a message was left out because an earlier run had accepted it.
func IsAccepted(err error) bool { return errors.Is(err, &negotiate.Error{Code: negotiate.Accepted}) }

// TellResumed reports the result of --resume. If everything was left out, or everything sent
// nevertheless, it is printed with -q, too.
func TellResumed(g *command.Global, sess *session.Session) {
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

// Finish waits until everything is committed. Of messages that are not pending in the store, the
// fate of each is reported.
func Finish(ctx context.Context, g *command.Global, sess *session.Session, pending bool) error {
	err := sess.Finish(ctx)
	status := sess.Sequence()
	g.Detail("sequence: %s accepted, %d committed, %d sent again in this run",
		printing.Count(status.Accepted, "message"), status.Done, status.Resent)
	switch {
	case err == nil || !pending && ctx.Err() == nil:
		return nil
	case !pending || !errors.Is(err, context.Cause(ctx)):
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

// SequenceStats is the progress of a sequence's messages, of this run and of earlier ones that it
// continues; of the last sequence, if the peer lost one.
type SequenceStats struct {
	// messages accepted for sending, by all runs of the sequence; only of the last sequence, if the
	// peer lost one
	Accepted uint64 `json:"accepted"`
	// messages that the peer has committed, and under at-most-once those of unknown fate
	Done     uint64 `json:"done"`
	Received uint64 `json:"received"` // messages of the peer that this side has committed: replies
	Resent   int64  `json:"resent"`   // retransmissions of messages, in this run
}

// sequenceOf is nil for a session without a sequence.
func sequenceOf(sess *session.Session) *SequenceStats {
	if a := sess.Agreed(); a.Facts == nil || a.Facts.Sequence == "" {
		return nil
	}
	status := sess.Sequence()
	return &SequenceStats{status.Accepted, status.Done, status.Received, status.Resent}
}

// IsSilent reports whether nothing came from the peer: datagrams are sent before anybody answers.
func IsSilent(sess *session.Session, over *network.Network) bool {
	stream := sess.Stream()
	return stream != nil && stream.Stats().Received.Octets() == 0 && over.Plain.Total().Received == 0
}

// Unfinished adds to the error of an incomplete run how to continue it. pending: the messages are
// in the store of this name. silent: the peer said nothing.
func Unfinished(err error, pending, silent bool, store string) error {
	switch {
	case errors.Is(err, &sequence.Error{Code: sequence.Outdated}):
		return exit.With(exit.Failed, err, fmt.Sprintf("is %s an older copy, as from a backup? It cannot go on with "+
			"messages that the server has had since; with another --store, or without the entries urn:hhfr:outbox:… "+
			"of this one (hhfr context delete), a new sequence begins", store))
	case !errors.Is(err, &negotiate.Error{Code: negotiate.Kept}) &&
		!errors.Is(err, &sequence.Error{Code: sequence.Unsent}):
	case pending && errors.Is(err, &ctxstore.Error{Code: ctxstore.Full}):
		return exit.With(exit.Partial, err, "with more space (--store-size) the same command with --resume goes on "+
			"with what is left")
	case !pending:
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

// LateReplies are answers to messages that an earlier run sent.
type LateReplies struct {
	mu   sync.Mutex
	list []*sender.Incoming
}

// Take takes one.
func (l *LateReplies) Take(number uint64, reply *streamer.Message, err error) {
	in := &sender.Incoming{Number: int(number), Sent: sender.MessageToSend{Name: EarlierRun}, Err: err}
	if err == nil {
		in.Head = reply.Head
		in.Body, in.Err = reply.ReadAll(input.MaxMessage)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, in)
}

// EarlierRun is the name of messages from files that only an earlier run knew.
const EarlierRun = "earlier run"

// Print prints the replies to messages of an earlier run, by the sequence numbers of these.
func (l *LateReplies) Print(p *ResultPrinter) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.list {
		err = errors.Join(err, p.Incoming(in))
	}
	return err
}
