package transcode_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/transcode"
)

// cancelling is a file that cancels its writer when the first message is written.
type cancelling struct {
	bytes.Buffer
	cancel func()
}

func (c *cancelling) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("written")) {
		c.cancel()
	}
	return c.Buffer.Write(p)
}

// An interrupt in the middle of a message takes effect at once.
func TestInterruptedInAMessage(t *testing.T) {
	why := errors.New("interrupted")
	var messages iter.Seq2[transcode.Packable, error] = func(yield func(transcode.Packable, error) bool) {
		for yield(transcode.Packable{Name: "m", Body: strings.NewReader("written")}, nil) {
		}
	}
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			began := time.Now()
			_, err := transcode.Pack(ctx, &cancelling{cancel: func() {
				cancel(why)
			}}, messages, transcode.Config{}, nil)
			assert.Error(t, err)
			assert.Zero(t, time.Since(began))
		})
	}
}
