package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/session"

	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// assurances are the values of --assurance.
func assurances() (names []string) {
	for a := wsrm.AtMostOnce; a <= wsrm.ExactlyOnce; a++ {
		names = append(names, a.String())
	}
	return names
}

// parseAssurance reads a value of --assurance; 0 if it is none.
func parseAssurance(name string) wsrm.Assurance {
	for a := wsrm.AtMostOnce; a <= wsrm.ExactlyOnce; a++ {
		if a.String() == name {
			return a
		}
	}
	return 0
}

func (o *streamOptions) assure() wsrm.Assurance { return parseAssurance(o.assurance) }

// sequenced reports whether the messages are in a sequence.
func (o *streamOptions) sequenced() bool { return o.kept() || o.ordered }

// kept reports whether the sequence is in the store, and can be continued by a later run.
func (o *streamOptions) kept() bool { return o.assure() > wsrm.AtMostOnce }

func (o *streamOptions) checkAssurance() error {
	switch a := o.assure(); {
	case a == 0:
		return usage(errors.New("--assurance is "+strings.Join(assurances(), ", ")+", not "+o.assurance), "")
	case o.resume && !o.kept():
		return usage(errors.New("--resume goes with --assurance at-least-once or exactly-once"), "")
	case a == wsrm.ExactlyOnce && o.store.spec == "mem:":
		return usage(errors.New("exactly-once needs a store that outlives the process"), "name one: --store bolt:FILE")
	case o.sequenced() && o.listen:
		return usage(errors.New("--listen goes with at-most-once, without --ordered: server-initiated messages "+
			"are in no sequence"), "")
	}
	return nil
}

// begin reports what an earlier run left.
func (o *streamOptions) begin(g *global, sess *session.Session) {
	status := sess.Sequence()
	if undone := status.Accepted - status.Done; undone > 0 || o.resume {
		g.detail("continuing a sequence: %s accepted, %d of them not known to be committed",
			count(status.Accepted, "message"), undone)
	}
}

// isAccepted reports whether a message was left out because an earlier run had accepted it.
func isAccepted(err error) bool { return errors.Is(err, &negotiate.Error{Code: negotiate.Accepted}) }

// resumed reports the result of --resume. If everything was left out, or everything sent
// nevertheless, it is printed with -q, too.
func resumed(g *global, sess *session.Session) {
	r := sess.Resumed()
	at := r.At.UTC().Format(time.RFC3339)
	switch {
	case r.Ended:
		g.say("--resume: nothing is sent: a run of these messages (%d) came to its end at %s; "+
			"without --resume they are sent again", r.LeftOut, at)
	case r.Other:
		g.say("--resume: no run to resume: the last one, of other messages, came to its end at %s; "+
			"all messages are sent", at)
	case r.LeftOut > 0:
		g.note("--resume: %s left out, which the interrupted run had accepted", count(r.LeftOut, "message"))
	}
}

// finish waits until everything is committed. If nothing is in the store, the fate of each message
// is reported.
func (o *streamOptions) finish(ctx context.Context, g *global, sess *session.Session) error {
	err := sess.Finish(ctx)
	status := sess.Sequence()
	g.detail("sequence: %s accepted, %d committed, %d sent again in this run",
		count(status.Accepted, "message"), status.Done, status.Resent)
	switch {
	case err == nil || !o.kept() && ctx.Err() == nil:
		return nil
	case !o.kept() || !errors.Is(err, context.Cause(ctx)):
		return err
	}
	if status.Accepted == status.Done {
		err = fmt.Errorf("all is committed (%s), but the peer has not learned that nothing follows: %w",
			count(status.Accepted, "message"), err)
		return failure(exitPartial, err, "the same command with --resume ends it")
	}
	err = fmt.Errorf("%s not known to be committed: %w", count(status.Accepted-status.Done, "message"), err)
	return failure(exitPartial, err, "the store has them: the same command with --resume sends them")
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
func silent(sess *session.Session, over *network) bool {
	stream := sess.Stream()
	return stream != nil && stream.Stats().Received.Octets() == 0 && over.plain.total().Received == 0
}

// unfinished adds to the error of an incomplete run how to continue. silent: the peer said nothing.
func (o *streamOptions) unfinished(err error, silent bool) error {
	switch {
	case errors.Is(err, &sequence.Error{Code: sequence.Outdated}):
		return failure(exitFailed, err, fmt.Sprintf("is %s an older copy, as from a backup? It cannot go on with "+
			"messages that the server has had since; with another --store, or without the entries urn:hhfr:outbox:… "+
			"of this one (hhfr context delete), a new sequence begins", o.store.spec))
	case !errors.Is(err, &negotiate.Error{Code: negotiate.Kept}) &&
		!errors.Is(err, &sequence.Error{Code: sequence.Unsent}):
	case o.kept() && errors.Is(err, &ctxstore.Error{Code: ctxstore.Full}):
		return failure(exitPartial, err, "with more space (--store-size) the same command with --resume goes on "+
			"with what is left")
	case !o.kept():
		return failure(exitPartial, err, "messages that have no reply here, and no unknown fate, were not sent")
	case silent:
		return failure(exitNoPeer, fmt.Errorf("no connection: nobody answers: %w", err), "is the server running, "+
			"and are host and port right? The same command with --resume goes on then: the store has what was accepted")
	default:
		return failure(exitPartial, err, "the same command with --resume goes on with what is left: the store has "+
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
		in.Body, in.Err = reply.ReadAll(maxDocument)
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
