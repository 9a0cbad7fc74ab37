package flow_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/pcapng"
)

// ignored is a receiver that only counts.
type ignored struct{ octets int }

func (i *ignored) Octets(_ int, _ int64, b []byte, _ flow.Mark) error {
	i.octets += len(b)
	return nil
}
func (*ignored) Closed() error { return nil }

// The end that ends a connection first is told once, at once, and after the bytes before it.
func TestEndsAreToldAtOnce(t *testing.T) {
	for dir, name := range []string{"opened it", "accepted it"} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			now := time.Unix(1000, 0)
			rec := pcapng.NewRecorder(&b, func() time.Time { now = now.Add(time.Second); return now })
			here, there := inproc.Pipe(0)
			conn := rec.Conn(here)
			_, err := conn.Write([]byte("bytes"))
			require.NoError(t, err)
			if dir == 1 {
				require.NoError(t, there.Close())
				_, _ = conn.Read(make([]byte, 1))
			}
			require.NoError(t, conn.Close())
			require.NoError(t, rec.Close())
			f, err := flow.Open(&b)
			require.NoError(t, err)
			told, got := 0, &ignored{}
			ending := func(f *flow.Flow) error {
				told++
				assert.Equal(t, 5, got.octets)
				assert.Equal(t, dir, f.EndedBy)
				assert.True(t, f.First.Before(f.Answered) && f.Answered.Before(f.Ended))
				return nil
			}
			_, err = flow.Read(flow.Config{Flow: func(*flow.Flow) flow.Receiver { return got }, Ending: ending}, f)
			require.NoError(t, err)
			assert.Equal(t, 1, told)
		})
	}
}
