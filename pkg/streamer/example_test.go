package streamer_test

import (
	"context"
	"fmt"
	"os"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Two ends over a pipe in memory: one serves, one calls.
func Example() {
	ctx := context.Background()
	here, there := inproc.Pipe(0)
	go func() {
		serve := func(ctx context.Context, x *streamer.Exchange) {
			_ = x.Reply(ctx, streamer.NewMessage(nil, []byte("pong")))
		}
		s, err := streamer.Over(ctx, there, streamer.Config{
			Accept: func(context.Context, streamer.Hello) (streamer.Admission, error) {
				return streamer.Admission{Coder: newRawCoder(), Handler: serve}, nil
			},
		})
		if err == nil {
			<-s.Done()
			_ = s.Close()
		}
	}()
	s, err := streamer.Over(ctx, here, streamer.Config{Initiator: true, Token: make([]byte, 16), Representation: 1,
		Coder: newRawCoder()})
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
