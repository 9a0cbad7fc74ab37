package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// echo is an application that replies with each message, unless it only takes replies.
type echo struct{ replies bool }

func (e echo) Deliver(_ context.Context, _ *wsrm.Tx, message []byte) ([]byte, error) {
	if e.replies {
		return nil, nil
	}
	return bytes.Clone(message), nil
}

// guarantees has two engines that hand each other what they want sent, until the message of one is
// done.
func guarantees(ctx context.Context) error {
	var ends [2]*wsrm.Engine
	var wire [2][]wsrm.Event
	for i := range ends {
		cfg := wsrm.Config{Assurance: wsrm.ExactlyOnce, Ordered: true}
		engine, err := wsrm.New(cfg, memory.New(memory.Config{}), "urn:x:sequence")
		if err != nil {
			return err
		}
		ends[i] = engine
		wire[i] = []wsrm.Event{{Kind: wsrm.Connected}}
	}
	wire[0] = append(wire[0], wsrm.Event{Kind: wsrm.Send, Message: []byte("one")})
	now := time.Now()
	for range 20 {
		now = now.Add(20 * time.Millisecond)
		for i, engine := range ends {
			events := append(wire[i], wsrm.Event{Kind: wsrm.Wake})
			wire[i] = nil
			for _, ev := range events {
				actions, err := engine.Step(ctx, now, ev)
				if err != nil {
					return err
				}
				sent, err := carry(ctx, engine, now, actions, echo{replies: i == 0})
				if err != nil {
					return err
				}
				wire[1-i] = append(wire[1-i], sent...)
			}
		}
	}
	_, done, received := ends[0].Positions()
	fmt.Println("wsrm:", done, received)
	return nil
}

// carry does what an engine wants, and returns what comes to its peer.
func carry(
	ctx context.Context, engine *wsrm.Engine, now time.Time, actions []wsrm.Action, to wsrm.Handler,
) (sent []wsrm.Event, err error) {
	for _, a := range actions {
		switch a.Kind {
		case wsrm.Transmit:
			sent = append(sent, wsrm.Event{Kind: wsrm.Arrived, Number: a.Number, Message: bytes.Clone(a.Message)})
		case wsrm.Say:
			sent = append(sent, wsrm.Event{Kind: wsrm.Heard, Message: bytes.Clone(a.Message)})
		case wsrm.Deliver:
			more, err := engine.Deliver(ctx, now, a, to)
			if err != nil {
				return nil, err
			}
			further, err := carry(ctx, engine, now, more, to)
			if err != nil {
				return nil, err
			}
			sent = append(sent, further...)
		default:
		}
	}
	return sent, nil
}
