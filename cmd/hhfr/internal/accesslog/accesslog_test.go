package accesslog

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/internal/meter"
)

// BenchmarkAccessLog is what a line costs a call.
func BenchmarkAccessLog(b *testing.B) {
	for _, format := range []string{"", "text", "json"} {
		b.Run("format="+format, func(b *testing.B) {
			m := meter.New(time.Now())
			if format != "" {
				o := AccessLogOptions{File: filepath.Join(b.TempDir(), "calls")}
				a, err := o.Open(&command.Global{}, m, slog.New(slog.DiscardHandler))
				require.NoError(b, err)
				defer func() { require.NoError(b, a.Close()) }()
			}
			up, name, i := m.Near.Upstream("http://far.example:8082/service"), []byte("poll"), 0
			b.ReportAllocs()
			for b.Loop() {
				var c meter.Call
				up.Begin(&c, time.Now())
				c.Name(name)
				c.Request(1000)
				c.Wire().Sent.Add(40)
				c.Reply(2000)
				c.Status(200)
				c.Done(time.Now(), true)
				i++
			}
		})
	}
}
