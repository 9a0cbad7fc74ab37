package streamer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// An end that has more refused than it may send, and reads nothing of it, does not fill our memory.
func TestCancelsThatNobodyReadsAreBounded(t *testing.T) {
	here, there := inproc.Pipe(2000)
	go func() {
		d := newDirection(t)
		var b []byte
		write := func(f frame.Frame) bool {
			b = d.fill(f).AppendTo(b[:0])
			_, err := here.Write(b)
			return err == nil
		}
		if _, err := here.Write(handHello.AppendTo(nil)); err != nil {
			return
		}
		for i := uint64(1); ; i++ {
			if i%1000 == 0 && !write(frame.Sync{}) {
				return
			}
			if !write(frame.Data{First: true, Last: true, OneWay: true, Exchange: i, Payload: []byte{0}}) {
				return
			}
		}
	}()
	s, err := streamer.Over(context.Background(), there, streamer.Config{Limits: streamer.Limits{MaxExchanges: 1},
		Accept: func(context.Context, frame.Hello) (streamer.Admission, error) {
			return streamer.Admission{Coder: newRawCoder()}, nil
		}})
	require.NoError(t, err)
	<-s.Done()
	assert.ErrorIs(t, s.Close(), &streamer.Error{Code: streamer.BeyondLimits})
	require.NoError(t, here.Close())
}
