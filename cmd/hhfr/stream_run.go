package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"time"

	"github.com/hhfr/hhfr/internal/codec/binary"

	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxDocument bounds one message from stdin or a file, in bytes.
const maxDocument = 1 << 30

func runStream(ctx context.Context, env Env, g *global, o streamOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if o.headers, err = readHeaders(o.headerFiles); err != nil {
		return err
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not done within --timeout %v", o.timeout))
		defer cancel()
	}
	secure, err := o.tls.open(env.System)
	if err != nil {
		return err
	}
	defer secure.close()
	store, err := g.openStore(ctx, o.store)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	common, closeCommon, err := o.common.open(ctx, g)
	if err != nil {
		return err
	}
	defer closeCommon()
	rec, err := o.record.open(store, g.logger())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.close()) }()
	if o.saveDir != "" {
		if err := os.MkdirAll(o.saveDir, 0o755); err != nil {
			return err
		}
	}
	if o.listen {
		env.Out = &together{w: env.Out}
		o.requireHHFR, o.listening = true, &serviceListener{out: env.Out, output: o.output, saveDir: o.saveDir}
	}
	described, err := readDescription(ctx, g, o.schema)
	if err != nil {
		return err
	}
	over, err := openNetwork(o.link, o.transport)
	if err != nil {
		return err
	}
	defer func() { _ = over.close() }()
	reliable := &reliableRun{env: env, g: g, store: store, secure: secure, rec: rec, over: over}
	goesOn, err := o.goesOn(ctx, reliable)
	if err != nil {
		return err
	}
	if goesOn || o.soapRM != "" {
		return o.sendReliably(ctx, reliable)
	}
	began := time.Now()
	late := &lateReplies{}
	book := binary.NewBook(ctxstore.Shapes{Store: store})
	sess, err := dialer{
		options:   o,
		book:      book,
		described: described,
		store:     store,
		common:    common,
		secure:    secure,
		recording: rec,
		network:   over,
		log:       g.logger(),
		late:      late.take,
	}.dial(
		ctx,
	)
	if err != nil {
		if err := o.reliableInstead(ctx, reliable, err); err != nil {
			return err
		}
		return o.sendReliably(ctx, reliable)
	}
	before := book.Drifted() // by looking at the FILEs
	p := &printer{env: env, g: g, o: o, late: late}
	p.decided(sess)
	sending, stop := context.WithCancel(ctx)
	defer stop()
	finished, told := false, false
	o.begin(g, sess)
	for in := range sender.Send(sending, sess, messages(sending, env, g, o, o.kept()), o.concurrency) {
		p.decided(sess)
		if isAccepted(in.Err) {
			continue
		}
		if !told {
			told = true
			resumed(g, sess)
		}
		switch {
		case err == nil:
			if err = p.incoming(in); err != nil {
				stop() // nothing more is sent; the fate of messages in progress is still reported
			}
		case isUnknown(in.Err) || in.Err == nil:
			err = errors.Join(err, p.incoming(in))
		}
	}
	if !told {
		resumed(g, sess)
	}
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case o.listen:
		err = o.listening.wait(ctx, sess)
	case o.sequenced():
		err = o.finish(ctx, g, sess)
		finished = err == nil
	}
	err = o.unfinished(err, p.sum.Messages == 0 && silent(sess, over))
	closed := sess.Close()
	if p.sum.Messages > 0 {
		p.decided(sess)
	}
	err = errors.Join(err, p.tell(), p.settle())
	if len(p.sum.Unknown) > 0 || finished {
		closed = nil // the list is about the broken stream, or it no longer matters
	}
	p.sum.finish(sess, over, time.Since(began))
	p.sum.Drifted = book.Drifted() - before
	p.sum.Initiated, p.sum.LeftOut = o.listening.heard(), sess.Resumed().LeftOut
	tellHeaders(g, sess, p.sum.Messages)
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
	ctx context.Context, env Env, g *global, o streamOptions, asSent bool,
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
					body, err := readMessage(ctx, name)
					if err != nil {
						yield(sender.MessageToSend{Name: name}, err)
						return
					}
					if !give(name, body) {
						return
					}
					continue
				}
				for doc, err := range documents(ctx, env, g) {
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
	if size > maxDocument {
		return sender.MessageToSend{Name: name}, tooLong(name, maxDocument)
	}
	begin, err := readBeginning(name, soap.MaxRecognize)
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
