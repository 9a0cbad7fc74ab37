package streamer_test

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/coding"
)

// Two ends over a connection: one serves, one calls.
func Example() {
	ctx := context.Background()
	here, there := net.Pipe()
	go func() {
		serve := func(ctx context.Context, x *streamer.Exchange) {
			_ = x.Reply(ctx, streamer.NewMessage(nil, []byte("pong")))
		}
		s, err := streamer.Over(ctx, there, streamer.Config{
			Accept: func(context.Context, streamer.Hello) (streamer.Admission, error) {
				shapes := coding.In(memory.New(memory.Config{}))
				return streamer.Admission{Coder: shapes.Binary(streamer.Limits{}), Handler: serve}, nil
			},
		})
		if err == nil {
			<-s.Done()
			_ = s.Close()
		}
	}()
	s, err := streamer.Over(ctx, here, streamer.Config{Initiator: true, Token: make([]byte, 16), Representation: 1,
		Coder: coding.In(memory.New(memory.Config{})).Binary(streamer.Limits{})})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	reply, err := s.Lane(0).Call(ctx, streamer.NewMessage(nil, []byte("ping")))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	text, _ := reply.ReadAll(1 << 20)
	fmt.Println(string(text), s.Close())
	// Output: pong <nil>
}
