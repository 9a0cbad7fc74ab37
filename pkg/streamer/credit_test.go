package streamer_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// What a handler leaves of a one-way message is dropped; its sender goes on to the end of it.
func TestOneWayMessagesThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, pairing{handlerb: func(_ context.Context, x *streamer.Exchange) {
			_, _ = io.CopyN(io.Discard, x.Message().Body, 10)
		}})
		var posted []*streamer.Posted
		for range 10 {
			m := &streamer.Message{Body: strings.NewReader(strings.Repeat("0123456789abcdef", 1<<16))}
			one, err := p.a.Lane(1).Post(t.Context(), m)
			require.NoError(t, err)
			posted = append(posted, one)
		}
		end(t, p)
		for _, one := range posted {
			assert.NoError(t, one.Err())
		}
	})
}

// narrow are limits under which no shape gets a number: all that is sent is joined again, and goes
// as text.
var narrow = streamer.Config{Limits: streamer.Limits{MaxShapeBytes: 1, Window: 32 << 10}}

// Content that goes as text may take more than it was, or less: credit is what the peer counts.
func TestCreditOfWhatGoesAsText(t *testing.T) {
	flags := "<rows>" + strings.Repeat("<row><thisIsAFlagWithALongName>true</thisIsAFlagWithALongName></row>",
		1<<18) + "</rows>"
	t.Run("more", func(t *testing.T) {
		flag := []byte(flags[:10_000] + "</rows>")
		p := connect(t, pairing{b: narrow, codera: learning(t, flag), coderb: learning(t), handlerb: echo})
		r, err := p.a.Lane(1).Call(t.Context(), &streamer.Message{Body: strings.NewReader(flags)})
		require.NoError(t, err)
		assert.Equal(t, flags, body(t, r))
	})
	t.Run("less", func(t *testing.T) {
		counts := func(ctx context.Context, x *streamer.Exchange) {
			n, err := io.Copy(io.Discard, x.Message().Body)
			assert.NoError(t, err)
			_ = x.Reply(ctx, streamer.NewMessage(nil, fmt.Append(nil, n)))
		}
		talk := learning(t, []byte("<talk>some text</talk>"))
		p := connect(t, pairing{b: narrow, codera: talk, coderb: learning(t), handlerb: counts})
		call, w, err := p.a.Lane(1).Start(t.Context(), nil, -1)
		require.NoError(t, err)
		_, err = io.WriteString(w, "<talk>")
		require.NoError(t, err)
		const lines = 20_000
		for range lines {
			_, err = io.WriteString(w, "x")
			require.NoError(t, err)
			require.NoError(t, w.Flush())
		}
		_, err = io.WriteString(w, "</talk>")
		require.NoError(t, err)
		require.NoError(t, w.Close())
		r, err := call.Reply(t.Context())
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint(lines+len("<talk></talk>")), body(t, r))
	})
}

// A body in memory that is longer than a window does not keep Call from reading its reply.
func TestCallsReadWhileTheyWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := streamer.Config{Limits: streamer.Limits{Window: 32 << 10, MaxFragment: 512}}
		p := connect(t, pairing{a: small, b: small, handlerb: echo})
		long := strings.Repeat("0123456789abcdef", 4096)
		r, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte(long)))
		require.NoError(t, err)
		assert.Equal(t, long, body(t, r))
		end(t, p)
	})
}
