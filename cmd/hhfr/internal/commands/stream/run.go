package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/client"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/dial"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/queues"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/reliable"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/results"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/session"
)

func runStream(ctx context.Context, g *command.Global, o *streamOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not done within --timeout %v", o.timeout))
		defer cancel()
	}
	r := &streamRun{g: g, o: o}
	r.with, err = o.Open(ctx, g)
	defer func() { err = errors.Join(err, r.with.Close()) }()
	if err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	plainly := &reliable.ReliableRun{Global: g, OpenedClient: r.with, Client: &o.ClientOptions, Reliable: &o.reliable,
		Files: &o.files, Printer: r.printer}
	goesOn, err := plainly.GoesOn(ctx)
	if err != nil {
		return err
	}
	if goesOn || o.reliable.Version != "" {
		return plainly.Send(ctx)
	}
	r.began = time.Now()
	if err := r.dial(ctx); err != nil {
		if err := plainly.Instead(ctx, err); err != nil {
			return err
		}
		return plainly.Send(ctx)
	}
	return r.finish(ctx, r.send(ctx))
}

// streamRun is a run of hhfr stream.
type streamRun struct {
	g       *command.Global
	o       *streamOptions
	with    *client.OpenedClient
	printer *results.ResultPrinter
	pushed  *results.ServiceListener // nil without --listen

	began   time.Time
	told    bool // whether messages use plain SOAP is known, and reported if they do
	late    results.LateReplies
	drifted func() int64 // messages that were not as described
	before  int64        // those before any was sent, by looking at the FILEs
	session *session.Session
}

// open opens what results are written to.
func (r *streamRun) open() error {
	r.printer = &results.ResultPrinter{Global: r.g, Output: r.o.output, SaveDir: r.o.saveDir}
	if err := r.with.Record(&r.o.ClientOptions, r.g); err != nil {
		return err
	}
	if r.o.listen {
		r.g.Out = &command.Together{W: r.g.Out}
		r.o.RequireHHFR = true
		r.pushed = &results.ServiceListener{Out: r.g.Out, Output: r.o.output, SaveDir: r.o.saveDir}
	}
	if r.o.saveDir == "" {
		return nil
	}
	return os.MkdirAll(r.o.saveDir, 0o755)
}

// dial agrees with the service on a session.
func (r *streamRun) dial(ctx context.Context) error {
	cfg, book, err := dial.Config(r.g, &r.o.ClientOptions, r.with)
	if err != nil {
		return err
	}
	if cfg.RequestSchema == nil && r.o.Representation != "xml" {
		cfg.Shapes = r.o.files.Shapes(book, cfg.Headers, r.with.Described.Messages())
	}
	if r.o.queue.Address != nil {
		q, err := r.o.queue.Client(r.g, r.o.files.OneWay, r.with.Secure.Config, r.with.Dialer(),
			queues.QueueShapes{Named: r.o.Store.Spec, Store: r.with.Store, Book: book})
		if err != nil {
			return err
		}
		r.with.Closes(q.Close)
		r.with.Ends(func() { queues.TellSaved(r.g, q.Saved()) })
		cfg.HTTPClient = &http.Client{Transport: q}
	}
	if cfg.LateReply = r.late.Take; r.pushed != nil {
		cfg.Handler = r.pushed.Serve
	}
	if r.session, err = session.Dial(ctx, r.o.URL, cfg); err != nil {
		return err
	}
	r.drifted, r.before = book.Drifted, book.Drifted()
	return nil
}

// decided reports once that plain SOAP is used, as soon as that is known.
func (r *streamRun) decided() {
	if agreed := r.session.Agreed(); !r.told && !agreed.Undecided {
		r.told = true
		if r.o.queue.Address == nil && r.o.FastInfoset == "" { // where it is known
			dial.TellPlain(r.g, agreed)
		}
	}
}

// send sends the messages and prints the replies.
func (r *streamRun) send(ctx context.Context) (err error) {
	r.decided()
	sending, stop := context.WithCancel(ctx)
	r.with.Ends(stop) // what was sent may still wait for its fate
	tellResumed := sync.OnceFunc(func() { results.TellResumed(r.g, r.session) })
	results.TellBegin(r.g, r.session, r.o.Resume)
	all := r.o.files.All(sending, r.g, r.o.Kept())
	for in := range sender.Send(sending, r.session, all, r.o.Concurrency) {
		r.decided()
		if results.IsAccepted(in.Err) {
			continue
		}
		tellResumed()
		switch {
		case err == nil:
			if err = r.printer.Incoming(in); err != nil {
				stop() // nothing more is sent; the fate of messages in progress is still reported
			}
		case results.IsUnknown(in.Err) || in.Err == nil:
			err = errors.Join(err, r.printer.Incoming(in))
		}
	}
	tellResumed()
	return err
}

// finish waits for what is to come after the messages, ends the session and reports; err is why not
// all was sent.
func (r *streamRun) finish(ctx context.Context, err error) error {
	o, sess, p := r.o, r.session, r.printer
	finished := false
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case o.listen:
		err = r.pushed.Wait(ctx, sess)
	case o.Sequenced():
		err = results.Finish(ctx, r.g, sess, o.Kept())
		finished = err == nil
	}
	silent := p.Sum.Messages == 0 && results.IsSilent(sess, r.with.Network)
	err = results.Unfinished(err, o.Kept(), silent, o.Store.Spec)
	closed := sess.Close()
	if p.Sum.Messages > 0 {
		r.decided()
	}
	err = errors.Join(err, r.late.Print(p), p.Settle())
	if len(p.Sum.Unknown) > 0 || finished {
		closed = nil // the list is about the broken stream, or it no longer matters
	}
	p.Sum.Finish(sess, r.with.Network, time.Since(r.began))
	p.Sum.Drifted = r.drifted() - r.before
	p.Sum.Initiated, p.Sum.LeftOut = r.pushed.Heard(), sess.Resumed().LeftOut
	tellHeaders(r.g, sess, p.Sum.Messages)
	ended := p.End()
	if finished && err == nil { // after everything that is reported about it
		err = sess.EndRun(context.WithoutCancel(ctx))
	}
	return errors.Join(err, closed, ended)
}

// tellHeaders says why unchanging headers still travel with each message.
func tellHeaders(g *command.Global, sess *session.Session, messages int) {
	a := sess.Agreed()
	for _, d := range a.Refused {
		if d.Item == "UnchangingHeader" {
			g.Warn("unchanging headers travel with each message: refused: %s", d.Why)
		}
	}
	if a.HHFR && len(a.Facts.Headers) > 0 && messages > 0 && sess.HeadersTaken() == 0 {
		g.Warn("no message has one of the unchanging headers byte for byte: all traveled as they are")
	}
}
