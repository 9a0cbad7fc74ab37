package stream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/input"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

func runStream(ctx context.Context, g *command.Global, o streamOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if o.headers, err = flags.ReadHeaders(o.headerFiles); err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not done within --timeout %v", o.timeout))
		defer cancel()
	}
	r := &streamRun{g: g, o: &o}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.open(ctx); err != nil {
		return err
	}
	reliable := &reliableRun{g: g, store: r.store, secure: r.secure, rec: r.recording, over: r.network}
	goesOn, err := o.goesOn(ctx, reliable)
	if err != nil {
		return err
	}
	if goesOn || o.soapRM != "" {
		return o.sendReliably(ctx, reliable)
	}
	r.began = time.Now()
	if err := r.dial(ctx); err != nil {
		if err := o.reliableInstead(ctx, reliable, err); err != nil {
			return err
		}
		return o.sendReliably(ctx, reliable)
	}
	return r.finish(ctx, r.send(ctx))
}

// streamRun is a run of hhfr stream.
type streamRun struct {
	g *command.Global
	o *streamOptions

	secure    *trust.Secured
	store     ctxstore.Store
	common    *unchanging.CommonStore // nil: none
	recording *recording.TrafficRecording
	described description.DescribedMessages
	network   *network.Network
	closers   []func() error // of what is open

	began   time.Time
	book    *binary.Book
	drifted int64 // messages that were not as described before any was sent
	session *session.Session
	printer *printer
}

// open opens what the run works with.
func (r *streamRun) open(ctx context.Context) (err error) {
	if r.secure, err = r.o.tls.Open(r.g.System); err != nil {
		return err
	}
	r.closes(func() error { r.secure.Close(); return nil })
	if r.store, err = r.o.store.Open(ctx, r.g); err != nil {
		return err
	}
	r.closes(func() error { _ = r.store.Close(); return nil })
	var closeCommon func()
	if r.common, closeCommon, err = r.o.common.Open(ctx, r.g, &r.o.store); err != nil {
		return err
	}
	r.closes(func() error { closeCommon(); return nil })
	if r.recording, err = r.o.record.Open(r.store, r.g.Logger()); err != nil {
		return err
	}
	r.closes(r.recording.Close)
	if r.o.saveDir != "" {
		if err := os.MkdirAll(r.o.saveDir, 0o755); err != nil {
			return err
		}
	}
	if r.o.listen {
		r.g.Out = &command.Together{W: r.g.Out}
		r.o.requireHHFR = true
		r.o.listening = &serviceListener{out: r.g.Out, output: r.o.output, saveDir: r.o.saveDir}
	}
	if r.described, err = description.Read(ctx, r.g, r.o.schema); err != nil {
		return err
	}
	if r.network, err = network.Open(r.o.link, r.o.transport); err != nil {
		return err
	}
	r.closes(func() error { _ = r.network.Close(); return nil })
	return nil
}

// closes has [streamRun.close] call f, before what it was to call so far.
func (r *streamRun) closes(f func() error) { r.closers = append(r.closers, f) }

// close closes all, in the reverse order of opening.
func (r *streamRun) close() (err error) {
	for _, f := range slices.Backward(r.closers) {
		err = errors.Join(err, f())
	}
	return err
}

// dial agrees with the service on a session.
func (r *streamRun) dial(ctx context.Context) (err error) {
	late := &lateReplies{}
	r.book = binary.NewBook(ctxstore.Shapes{Store: r.store})
	r.session, err = dialer{
		options: *r.o, book: r.book, described: r.described, store: r.store, common: r.common, secure: r.secure,
		recording: r.recording, network: r.network, log: r.g.Logger(), late: late.take,
	}.dial(ctx)
	if err != nil {
		return err
	}
	r.drifted = r.book.Drifted() // by looking at the FILEs
	r.printer = &printer{g: r.g, o: *r.o, late: late}
	return nil
}

// send sends the messages and prints the replies.
func (r *streamRun) send(ctx context.Context) (err error) {
	r.printer.decided(r.session)
	sending, stop := context.WithCancel(ctx)
	r.closes(func() error { stop(); return nil }) // what was sent may still wait for its fate
	tellResumed := sync.OnceFunc(func() { resumed(r.g, r.session) })
	r.o.begin(r.g, r.session)
	all := messages(sending, r.g, *r.o, r.o.kept())
	for in := range sender.Send(sending, r.session, all, r.o.concurrency) {
		r.printer.decided(r.session)
		if IsAccepted(in.Err) {
			continue
		}
		tellResumed()
		switch {
		case err == nil:
			if err = r.printer.incoming(in); err != nil {
				stop() // nothing more is sent; the fate of messages in progress is still reported
			}
		case isUnknown(in.Err) || in.Err == nil:
			err = errors.Join(err, r.printer.incoming(in))
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
		err = o.listening.wait(ctx, sess)
	case o.sequenced():
		err = o.finish(ctx, r.g, sess)
		finished = err == nil
	}
	err = o.unfinished(err, p.sum.Messages == 0 && silent(sess, r.network))
	closed := sess.Close()
	if p.sum.Messages > 0 {
		p.decided(sess)
	}
	err = errors.Join(err, p.tell(), p.settle())
	if len(p.sum.Unknown) > 0 || finished {
		closed = nil // the list is about the broken stream, or it no longer matters
	}
	p.sum.finish(sess, r.network, time.Since(r.began))
	p.sum.Drifted = r.book.Drifted() - r.drifted
	p.sum.Initiated, p.sum.LeftOut = o.listening.heard(), sess.Resumed().LeftOut
	tellHeaders(r.g, sess, p.sum.Messages)
	ended := p.end()
	if finished && err == nil { // after everything that is reported about it
		err = sess.EndRun(context.WithoutCancel(ctx))
	}
	return errors.Join(err, closed, ended)
}

// longFile is the length from which on a FILE is read as it is sent, in bytes.
const longFile = 1 << 20

// messages reads what is to be sent. asSent: long files need not be read before they are.
func messages(
	ctx context.Context, g *command.Global, o streamOptions, asSent bool,
) iter.Seq2[sender.MessageToSend, error] {
	path := "/"
	if u, err := url.Parse(o.url); err == nil && u.RequestURI() != "" {
		path = u.RequestURI()
	}
	return func(yield func(sender.MessageToSend, error) bool) {
		give := func(name string, body []byte) bool {
			m, err := outgoing(o, path, name, body)
			return yield(m, err) && err == nil
		}
		for range o.repeat {
			for _, name := range o.files {
				if info, err := os.Stat(name); asSent && o.wrap == "" && name != "-" && err == nil &&
					info.Mode().IsRegular() && info.Size() > longFile {
					m, err := keptInFile(o, path, name, info.Size())
					if !yield(m, err) || err != nil {
						return
					}
					continue
				}
				if name != "-" {
					body, err := input.ReadMessage(ctx, name)
					if err != nil {
						yield(sender.MessageToSend{Name: name}, err)
						return
					}
					if !give(name, body) {
						return
					}
					continue
				}
				for doc, err := range input.Documents(ctx, g) {
					if err != nil {
						yield(sender.MessageToSend{Name: name}, err)
						return
					}
					if !give(name, doc) {
						return
					}
				}
			}
		}
	}
}

// keptInFile is a message that stays in its file.
func keptInFile(o streamOptions, path, name string, size int64) (m sender.MessageToSend, err error) {
	if size > input.MaxMessage {
		return sender.MessageToSend{Name: name}, input.TooLong(name, input.MaxMessage)
	}
	begin, err := input.ReadBeginning(name, soap.MaxRecognize)
	if err != nil {
		return sender.MessageToSend{Name: name}, err
	}
	m, err = outgoing(o, path, name, begin)
	m.File, m.Size = name, size
	return m, err
}

func outgoing(o streamOptions, path, name string, body []byte) (m sender.MessageToSend, err error) {
	m = sender.MessageToSend{Name: name, Body: body, OneWay: o.oneWay}
	if o.wrap != "" {
		version, err := soap.ParseVersion(o.wrap)
		if err != nil {
			return m, err
		}
		if m.Body, err = soap.Wrap(version, body); err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
	}
	m.Head, err = sender.RequestHead(path, m.Body, o.action, o.fields)
	return m, err
}
