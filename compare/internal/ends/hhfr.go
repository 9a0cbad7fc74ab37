package ends

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// openSession serves exchanges below net/http, and opens a session with a stream.
func openSession(
	ctx context.Context, serve func(context.Context, string, *streamer.Exchange),
) (*session.Session, func() error, error) {
	l, err := loopback(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := responder.New(responder.Config{Serve: serve, Addresses: map[string]string{"tcp": l.Addr().String()}})
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	done := make(chan error, 1)
	go func() { done <- r.ServeStreams(ctx, l) }()
	addr, stop, err := serveHTTP(ctx, r.Handler(echo))
	if err != nil {
		return nil, nil, errors.Join(err, r.Close(), <-done)
	}
	end := func() error { return errors.Join(r.Close(), <-done, stop()) }
	s, err := session.Dial(ctx, "http://"+addr+"/echo", session.Config{})
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return s, func() error { return errors.Join(s.Close(), end()) }, nil
}

func giveBack(ctx context.Context, _ string, x *streamer.Exchange) {
	_ = x.Reply(ctx, &streamer.Message{Body: x.Message().Body}) // the client detects it
}

// call sends a message and reads the reply.
func call(ctx context.Context, s *session.Session, m []byte) error {
	reply, err := s.Call(ctx, streamer.NewMessage(nil, m))
	if err != nil {
		return err
	}
	return check(reply, m)
}

func check(reply *streamer.Message, m []byte) error {
	body, err := reply.ReadAll(longestMessage)
	if err == nil && !bytes.Equal(body, m) {
		err = errors.New("another message came back")
	}
	return err
}

func openStream(ctx context.Context, messages [][]byte) (*contestant, error) {
	s, end, err := openSession(ctx, giveBack)
	if err != nil {
		return nil, err
	}
	c := each(messages, func(m []byte) error { return call(ctx, s, m) }, end)
	return c, streams(s, c)
}

// streams checks that a session has a stream once something was sent.
func streams(s *session.Session, c *contestant) error {
	if err := c.carry(2); err != nil {
		return err
	}
	if s.Stream() == nil {
		return fmt.Errorf("there is no stream: %+v", s.Agreed())
	}
	return nil
}

func openPipeline(ctx context.Context, messages [][]byte) (*contestant, error) {
	s, end, err := openSession(ctx, giveBack)
	if err != nil {
		return nil, err
	}
	single := each(messages, func(m []byte) error { return call(ctx, s, m) }, end)
	if err := streams(s, single); err != nil {
		return nil, err
	}
	type begun struct {
		pending *session.PendingReply
		message []byte
	}
	at := 0
	return &contestant{close: end, carry: func(n int) error {
		flight := make(chan begun, inFlight)
		read := make(chan error, 1)
		go func() {
			var failed error
			for b := range flight {
				reply, err := b.pending.Reply(ctx)
				if err == nil {
					err = check(reply, b.message)
				}
				failed = errors.Join(failed, err)
			}
			read <- failed
		}()
		var err error
		for range n {
			b := begun{message: messages[at%len(messages)]}
			at++
			if b.pending, err = s.Begin(ctx, streamer.NewMessage(nil, b.message)); err != nil {
				break
			}
			flight <- b
		}
		close(flight)
		return errors.Join(err, <-read)
	}}, nil
}

// sendBy sends one-way messages from so many goroutines.
func sendBy(producers int) func(context.Context, [][]byte) (*contestant, error) {
	return func(ctx context.Context, messages [][]byte) (*contestant, error) {
		var c arrivals
		s, end, err := openSession(ctx, func(_ context.Context, _ string, x *streamer.Exchange) {
			body, err := x.Message().ReadAll(longestMessage)
			if x.OneWay() && err == nil && len(body) > 0 {
				c.arrived()
				return
			}
			_ = x.Reply(x.Context(), streamer.NewMessage(nil, body)) // the client detects it
		})
		if err != nil {
			return nil, err
		}
		if err := streams(s, each(messages, func(m []byte) error { return call(ctx, s, m) }, end)); err != nil {
			return nil, err
		}
		return &contestant{close: end, carry: func(n int) error {
			c.expect(n)
			var wg sync.WaitGroup
			errs := make([]error, producers)
			for p := range producers {
				wg.Go(func() {
					for i := p; i < n && errs[p] == nil; i += producers {
						errs[p] = s.Send(ctx, streamer.NewMessage(nil, messages[i%len(messages)]))
					}
				})
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				return err
			}
			return c.wait()
		}}, nil
	}
}

// serveHHFR serves the echo service at an address of its own.
func serveHHFR(ctx context.Context) (url string, end func() error, err error) {
	l, err := loopback(ctx)
	if err != nil {
		return "", nil, err
	}
	server := &hhfr.Server{Handler: echo}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	return "http://" + l.Addr().String() + "/echo", func() error { return errors.Join(server.Close(), <-done) }, nil
}

func openClient(ctx context.Context, messages [][]byte) (*contestant, error) {
	url, end, err := serveHHFR(ctx)
	if err != nil {
		return nil, err
	}
	client, err := hhfr.Dial(ctx, url, nil)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return each(messages, func(m []byte) error {
		reply, err := client.Call(ctx, &hhfr.Request{Body: hhfr.Body(m)})
		if err != nil {
			return err
		}
		body, err := reply.ReadAll()
		if err == nil && !bytes.Equal(body, m) {
			err = errors.New("another message came back")
		}
		return err
	}, func() error { return errors.Join(client.Close(), end()) }), nil
}

// openDropIn puts hhfr below an unchanged client, and around an unchanged service.
func openDropIn(ctx context.Context, messages [][]byte) (*contestant, error) {
	h := &hhfr.Handler{Handler: echo}
	addr, end, err := serveHTTP(ctx, h)
	if err != nil {
		return nil, err
	}
	t := &hhfr.Transport{}
	client := &http.Client{Transport: t}
	return each(messages, func(m []byte) error { return post(ctx, client, "http://"+addr+"/echo", m) },
		func() error { return errors.Join(t.Close(), h.Close(), end()) }), nil
}
