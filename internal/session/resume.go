package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Resumed reports what became of the messages of a session with [Config].Resume.
type Resumed struct {
	// LeftOut is how many messages were left out because an earlier run had accepted them.
	LeftOut uint64
	// Ended: that run is complete, with these messages and no others. Nothing is sent.
	Ended bool
	// Other: the store knows a complete run whose first message is another. All messages are sent,
	// as a run of their own.
	Other bool
	// At is when that run was completed.
	At time.Time
}

// resumption compares the messages of a session with those of the runs that the store knows. It
// leaves out messages that are proved to have been accepted, and lets nothing be sent before that
// is clear. It stores no message meanwhile, so that input of any length can be compared. Input that
// begins like a run and then differs is refused, because the messages before are gone.
type resumption struct {
	o    *outbox
	last sequence.SentRun // the newest that the store knows; without messages there is none

	// Below: under outbox.entryMu.
	seen  sequence.SentRun  // the messages so far
	goal  *sequence.SentRun // the run that they begin like; nil: none yet
	past  bool              // the messages that follow are sent
	found Resumed
	err   error // nothing is sent, nor left out
}

// restoreRun finds the run that the session's messages continue, or come after. It returns the last
// run that the store has messages of.
func (o *outbox) restoreRun(ctx context.Context) (last sequence.SentRun, err error) {
	last, known := o.seq.Run()
	if !known {
		last = sequence.NewRun()
	}
	switch {
	case !o.d.cfg.Resume:
		o.fresh = true
		return last, o.interrupted(ctx, last, last.ID)
	case !known && o.seq.Status().Accepted > 0:
		return last, coded(negotiate.OldStore, nil)
	case !known || last.ID == o.entry.Behind:
		o.resume = &resumption{o: o}
	default:
		o.resume = &resumption{o: o, last: last}
	}
	return last, nil
}

// compares reports whether the next message is compared with those of earlier runs.
func (o *outbox) compares() bool {
	o.entryMu.Lock()
	defer o.entryMu.Unlock()
	return o.resume != nil && !o.resume.past && o.resume.err == nil
}

// take decides which run the next message belongs to, and reports whether it is left out.
func (o *outbox) take(ctx context.Context, m sequence.Stored, wanted bool) (leftOut bool, err error) {
	o.entryMu.Lock()
	defer o.entryMu.Unlock()
	if o.resume != nil {
		if leftOut, err = o.resume.take(ctx, m, wanted); leftOut || err != nil {
			return leftOut, err
		}
	}
	if o.fresh {
		o.fresh = false
		o.sequence().BeginRun(sequence.NewRun())
	}
	return false, nil
}

// take reports whether a message is left out; otherwise it is to be sent.
func (r *resumption) take(ctx context.Context, m sequence.Stored, wanted bool) (leftOut bool, err error) {
	if r.past || r.err != nil {
		return false, r.err
	}
	r.seen.Add(m, wanted)
	if r.goal == nil {
		r.choose()
	}
	if r.goal == nil {
		return false, r.err
	}
	r.compare(ctx)
	return true, r.err
}

// choose finds the run that begins with the first message, newest first.
func (r *resumption) choose() {
	e := &r.o.entry
	ended := r.last.Messages > 0 && r.last.ID == e.Ended
	known := make([]sequence.SentRun, 0, len(e.Interrupted)+1)
	for _, r := range e.Interrupted {
		known = append(known, sequence.SentRun(r))
	}
	known = append(known, r.last)
	for _, run := range slices.Backward(known) {
		if run.Messages > 0 && run.First == r.seen.First {
			r.goal = &run
			return
		}
	}
	if r.last.Messages > 0 && !ended {
		r.refuse("the interrupted run began with another message; %d of it were accepted", r.last.Messages)
		return
	}
	r.past, r.o.fresh = true, true
	if ended {
		r.found.Other, r.found.At = true, e.At
	}
}

// compare compares the messages so far with the run that they begin like.
func (r *resumption) compare(ctx context.Context) {
	e, n := &r.o.entry, r.goal.Messages
	ended := r.goal.ID == e.Ended
	switch {
	case r.seen.Messages < n:
	case r.seen.Messages > n:
		r.found = Resumed{}
		r.refuse("a run completed at %s was the same up to its last message, number %d, and there are more",
			e.At.Format(time.RFC3339), n)
	case r.seen.Digest != r.goal.Digest && ended:
		r.refuseLike()
	case r.seen.Digest != r.goal.Digest:
		r.refuse("the interrupted run began with the same message, "+
			"and was not the same in the %d that were accepted", n)
	case ended:
		r.found.LeftOut, r.found.Ended, r.found.At = n, true, e.At
	default:
		r.found.LeftOut, r.past = n, true
		if r.goal.ID == r.last.ID {
			return
		}
		if r.err = r.o.interrupted(ctx, r.last, [16]byte{}); r.err == nil {
			r.o.sequence().BeginRun(*r.goal)
		}
	}
}

// noMore judges the messages when no more will come.
func (o *outbox) noMore() error {
	o.entryMu.Lock()
	defer o.entryMu.Unlock()
	r := o.resume
	if r == nil {
		return nil
	}
	switch {
	case r.err != nil || r.goal == nil || r.seen.Messages >= r.goal.Messages:
	case r.goal.ID == o.entry.Ended:
		r.refuseLike()
	default:
		r.refuse("the interrupted run began with the same message; %d of it were accepted, and there are %d",
			r.goal.Messages, r.seen.Messages)
	}
	return r.err
}

// refuseLike refuses messages that begin like a complete run: whether they are to be sent cannot be
// decided.
func (r *resumption) refuseLike() {
	r.refuse("a run completed at %s began with the same message, and was not the same in all",
		r.o.entry.At.Format(time.RFC3339))
}

func (r *resumption) refuse(format string, args ...any) {
	r.err = coded(negotiate.OtherRun, fmt.Errorf(format, args...))
}

// interrupted records that a run is not continued now, unless it is complete or never began. behind
// is the run that another one follows, if it does. entryMu is locked.
func (o *outbox) interrupted(ctx context.Context, run sequence.SentRun, behind [16]byte) error {
	e := o.entry
	e.Behind = behind
	var forgotten *negotiate.Run
	if run.Messages > 0 && run.ID != e.Ended {
		forgotten = e.Remember(negotiate.Run(run))
	}
	if err := o.save(ctx, e); err != nil {
		return err
	}
	if forgotten != nil {
		o.d.cfg.Log.Warn("too many interrupted runs: the oldest can no longer be resumed",
			"messages", forgotten.Messages)
	}
	return nil
}

// finish records that all messages of a sequence are committed, and the run of the session's
// messages.
func (o *outbox) finish(q *sequence.Sequence) {
	o.entryMu.Lock()
	defer o.entryMu.Unlock()
	o.over = true
	if o.fresh || o.resume != nil && !o.resume.past {
		return
	}
	if run, known := q.Run(); known && run.Messages > 0 {
		o.finished = &run
	}
}

var errAccepted = coded(negotiate.Accepted, errors.New("by an earlier run"))
