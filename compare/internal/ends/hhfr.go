package ends

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/hhfr/hhfr"
)

// serveHHFR serves a service at an address of its own.
func serveHHFR(ctx context.Context, service http.Handler) (url string, end func() error, err error) {
	l, err := loopback(ctx)
	if err != nil {
		return "", nil, err
	}
	server := &hhfr.Server{Handler: service}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	return "http://" + l.Addr().String() + "/echo", func() error { return errors.Join(server.Close(), <-done) }, nil
}

// fields are those of every request.
var fields = http.Header{
	"Content-Type": {contentType}, "Soapaction": {soapAction}, "Authorization": {authorization},
}

// request is a message as applications make one.
func request(m []byte) *hhfr.Request { return &hhfr.Request{Header: fields, Body: bytes.NewReader(m)} }

// dialed is a client with a stream to a service, after its first calls.
func dialed(ctx context.Context, service http.Handler, messages [][]byte) (*hhfr.Client, func() error, error) {
	url, end, err := serveHHFR(ctx, service)
	if err != nil {
		return nil, nil, err
	}
	client, plain, err := dialHHFR(ctx, url, &hhfr.Config{})
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	stop := func() error { return errors.Join(client.Close(), end()) }
	for range 2 {
		err = errors.Join(err, call(ctx, client, messages[0]), plain())
	}
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return client, stop, nil
}

// dialHHFR opens a client; plain returns why it has no stream, once that is known.
func dialHHFR(ctx context.Context, url string, cfg *hhfr.Config) (c *hhfr.Client, plain func() error, err error) {
	var reason atomic.Pointer[error]
	cfg.OnPlain = func(why error) { reason.Store(&why) }
	c, err = hhfr.Dial(ctx, url, cfg)
	return c, func() error {
		if why := reason.Load(); why != nil {
			return *why
		}
		return nil
	}, err
}

// call sends a message and reads the reply.
func call(ctx context.Context, client *hhfr.Client, m []byte) error {
	reply, err := client.Call(ctx, request(m))
	if err != nil {
		return err
	}
	body, err := reply.ReadAll()
	if err == nil && !bytes.Equal(body, m) {
		err = errors.New("another message came back")
	}
	return err
}

// calling makes calls from so many goroutines.
func calling(callers int) func(context.Context, [][]byte) (*contestant, error) {
	return func(ctx context.Context, messages [][]byte) (*contestant, error) {
		client, end, err := dialed(ctx, echo, messages)
		if err != nil {
			return nil, err
		}
		return crowded(callers, messages, func(m []byte) error { return call(ctx, client, m) }, end), nil
	}
}

// sending sends one-way messages from so many goroutines, so many at a time: [inFlight] is a
// multiple of that.
func sending(producers, together int) func(context.Context, [][]byte) (*contestant, error) {
	return func(ctx context.Context, messages [][]byte) (*contestant, error) {
		var c arrivals
		client, end, err := dialed(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body := bodyOf(r)
			c.arrived()
			_, _ = w.Write(body) // only a call has a reply
		}), messages)
		if err != nil {
			return nil, err
		}
		send := func(i int) error { return client.Send(ctx, request(messages[i%len(messages)])) }
		if together > 1 {
			send = func(i int) error {
				all := make([]*hhfr.Request, together)
				for k := range all {
					all[k] = request(messages[(i*together+k)%len(messages)])
				}
				_, err := client.SendAll(ctx, all...)
				return err
			}
		}
		return &contestant{close: end, carry: func(n int) error {
			c.expect(n)
			if err := byAll(producers, n/together, send); err != nil {
				return err
			}
			return c.wait()
		}}, nil
	}
}

// openDropIn puts hhfr below an unchanged client, and around an unchanged service.
func openDropIn(callers int) func(context.Context, [][]byte) (*contestant, error) {
	return func(ctx context.Context, messages [][]byte) (*contestant, error) {
		h := &hhfr.Handler{Handler: echo}
		addr, end, err := serveHTTP(ctx, h)
		if err != nil {
			return nil, err
		}
		t := &hhfr.Transport{}
		client := &http.Client{Transport: t}
		return crowded(callers, messages, func(m []byte) error { return post(ctx, client, "http://"+addr+"/echo", m) },
			func() error { return errors.Join(t.Close(), h.Close(), end()) }), nil
	}
}
