package streamer_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// A peer that is done gives no more credit, and cannot say what it did not take: what waits for
// that ends, whether it waited when the peer said so or comes to it later, and the stream ends in
// order without waiting for anything.
func TestWhatWaitsForCreditOfAPeerThatIsDone(t *testing.T) {
	for name, before := range map[string]bool{"it waits already": false, "it comes to it later": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
				body, feed := io.Pipe()
				sent := make(chan error, 1)
				go func() {
					_, err := h.s.Lane(0).Post(t.Context(), &streamer.Message{Body: body})
					sent <- err
				}()
				feeding := make(chan struct{})
				if !before {
					go func() { defer close(feeding); _, _ = feed.Write(make([]byte, 3<<20)) }()
				} else {
					go func() { _, _ = feed.Write(make([]byte, 100)) }()
				}
				until[frame.Data](h)
				go func() { _, _ = io.Copy(io.Discard, h.conn) }()
				synctest.Wait()
				h.write(frame.Close{})
				synctest.Wait()
				if before {
					go func() { defer close(feeding); _, _ = feed.Write(make([]byte, 3<<20)) }()
				}
				begun := time.Now()
				assert.ErrorIs(t, <-sent, &streamer.Error{Code: streamer.FateUnknown})
				<-h.s.Done()
				assert.NoError(t, h.s.Err())
				assert.Zero(t, time.Since(begun))
				<-feeding
			})
		})
	}
}
