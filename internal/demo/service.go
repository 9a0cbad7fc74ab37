package demo

import (
	"bytes"
	"context"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// whole is a service that reads a request to its end before it replies, as most do. The echo
// service alone replies while it reads: then both directions of the link work at once, and a
// session is faster than its bytes and round trips imply.
type whole struct{ peer.Service }

// Serve reads the request, and passes it on.
func (w whole) Serve(ctx context.Context, request *streamer.Message, reply func(*streamer.Message) error) error {
	body, err := request.ReadAll(1 << 30)
	if err != nil {
		return err
	}
	return w.Service.Serve(ctx, &streamer.Message{Head: request.Head, Body: bytes.NewReader(body)}, reply)
}
