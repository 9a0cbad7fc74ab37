package soapjms

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is no broker is an error that says so: it is silent, speaks something else, or is not there.
func TestNoBrokerThere(t *testing.T) {
	for name, c := range map[string]struct {
		says string // what the peer says; "-": nothing
		err  string
	}{
		"silent":          {"-", "it is over"},
		"of another kind": {"HTTP/1.1 400 Bad Request\r\n\r\n", ""},
		"gone at once":    {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = there.Read(make([]byte, 8)) // the header of AMQP
				if c.says == "-" {
					cancel(errors.New("it is over"))
					_, _ = there.Read(make([]byte, 8)) // until the end
				} else {
					_, _ = there.Write([]byte(c.says))
				}
				_ = there.Close()
			}()
			b, _, err := NewBroker("amqp://broker.example", "", nil,
				func(context.Context, string, string) (net.Conn, error) { return here, nil })
			require.NoError(t, err)
			_, err = b.Open(ctx, "q", 1, "")
			require.ErrorIs(t, err, &Error{Code: Unreachable})
			assert.ErrorContains(t, err, "broker.example:5672: ")
			assert.ErrorContains(t, err, c.err)
			<-done
		})
	}
}
