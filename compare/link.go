package main

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// oneWayLink is a real stream within the process, over which messages go one way on lane 0. Its
// peers share nothing, so shapes travel in full.
type oneWayLink struct {
	from, to *streamer.Stream
	coder    *binary.Coder
	stores   [2]ctxstore.Store
	back     chan []byte
}

// without are stages that it leaves out.
func openLink(ctx context.Context, without uint64) (*oneWayLink, error) {
	l := &oneWayLink{back: make(chan []byte)}
	var ends [2]*binary.Coder
	for i := range ends {
		l.stores[i] = memory.New(memory.Config{})
		ends[i] = binary.NewBook(ctxstore.Shapes{Store: l.stores[i]}).Coder(binary.Options{Without: without})
	}
	l.coder = ends[0]
	here, there := inproc.Pipe(256 << 10)
	var wg sync.WaitGroup
	var errs [2]error
	wg.Go(func() {
		l.to, errs[0] = streamer.Over(ctx, there,
			streamer.Config{Accept: func(context.Context, streamer.Hello) (streamer.Admission, error) {
				return streamer.Admission{Coder: ends[1], Handler: l.receive}, nil
			}})
	})
	wg.Go(func() {
		l.from, errs[1] = streamer.Over(ctx, here,
			streamer.Config{Initiator: true, Token: make([]byte, frame.TokenLen), Representation: frame.Binary,
				Coder: ends[0]})
	})
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return l, nil
}

// receive passes what arrived to send.
func (l *oneWayLink) receive(ctx context.Context, x *streamer.Exchange) {
	body, err := x.Message().ReadAll(1 << 30)
	if err != nil {
		body = nil
	}
	select {
	case l.back <- body:
	case <-ctx.Done():
	}
}

// sent is the size of one message on the wire: its frames, the sync frames before and in it, the
// frames of its shape.
type sent struct{ data, sync, shape int64 }

// send sends one message and compares what arrives.
func (l *oneWayLink) send(ctx context.Context, m []byte) (sent, error) {
	before := l.from.Stats().Sent
	if err := l.from.Lane(0).Send(ctx, streamer.NewMessage(nil, m)); err != nil {
		return sent{}, err
	}
	select {
	case got := <-l.back:
		if !bytes.Equal(got, m) {
			return sent{}, errors.New("a message did not come back as it was sent")
		}
	case <-l.to.Done():
		return sent{}, errors.Join(errors.New("the stream ended"), l.to.Err())
	case <-ctx.Done():
		return sent{}, ctx.Err()
	}
	after := l.from.Stats().Sent
	return sent{
		data:  after.Data.Octets - before.Data.Octets,
		sync:  after.Sync.Octets - before.Sync.Octets,
		shape: after.Shape.Octets - before.Shape.Octets,
	}, nil
}

func (l *oneWayLink) close() error {
	err := l.from.Close()
	<-l.to.Done()
	err = errors.Join(err, l.to.Close())
	for _, s := range l.stores {
		err = errors.Join(err, s.Close())
	}
	return err
}
