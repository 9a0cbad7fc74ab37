package main

import (
	"context"
	"fmt"
	"net"

	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/coding"
)

// streams has an end that initiates and one that responds, over a connection of theirs.
func streams(ctx context.Context) error {
	here, there := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- respond(ctx, there) }()
	shapes := coding.In(memory.New(memory.Config{}))
	s, err := streamer.Over(ctx, here, streamer.Config{
		Initiator: true, Token: make([]byte, streamer.TokenLen), Representation: 1,
		Coder: shapes.Binary(streamer.Limits{}),
	})
	if err != nil {
		return err
	}
	for _, value := range []string{"one", "two"} {
		reply, err := s.Lane(0).Call(ctx, streamer.NewMessage(nil, fmt.Appendf(nil, envelope, value)))
		if err != nil {
			return err
		}
		text, err := reply.ReadAll(1 << 20)
		if err != nil {
			return err
		}
		fmt.Println("streamer:", string(text) == fmt.Sprintf(envelope, value))
	}
	if err := s.Close(); err != nil {
		return err
	}
	return <-ended
}

func respond(ctx context.Context, conn net.Conn) error {
	shapes := coding.In(memory.New(memory.Config{}))
	echo := func(ctx context.Context, x *streamer.Exchange) {
		text, err := x.Message().ReadAll(1 << 20)
		if err == nil {
			_ = x.Reply(ctx, streamer.NewMessage(nil, text))
		}
	}
	s, err := streamer.Over(ctx, conn, streamer.Config{
		Accept: func(context.Context, streamer.Hello) (streamer.Admission, error) {
			return streamer.Admission{Coder: shapes.Binary(streamer.Limits{}), Handler: echo}, nil
		},
	})
	if err != nil {
		return err
	}
	<-s.Done()
	return s.Close()
}
