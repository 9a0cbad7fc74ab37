package streamer_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// arrival is what a reader got at once, and when.
type arrival struct {
	text string
	at   time.Duration
}

// arrivals reads a body to its end; what comes at the same time is one.
func arrivals(t *testing.T, r io.Reader, began time.Time) (all []arrival) {
	buf := make([]byte, 1<<16)
	for {
		n, err := r.Read(buf)
		if at := time.Since(began); n > 0 && len(all) > 0 && all[len(all)-1].at == at {
			all[len(all)-1].text += string(buf[:n])
		} else if n > 0 {
			all = append(all, arrival{string(buf[:n]), at})
		}
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			return all
		}
	}
}

// coders are pairs of coders of every kind.
func coders(t *testing.T, run func(t *testing.T, a, b streamer.Coder)) {
	t.Run("text", func(t *testing.T) { run(t, newRawCoder(), newRawCoder()) })
	t.Run("learning", func(t *testing.T) { run(t, learning(t), learning(t)) })
	t.Run("known kind", func(t *testing.T) {
		known := []byte(parts[0] + parts[1] + parts[2])
		run(t, learning(t, known), learning(t, known))
	})
}

// parts are a message in three writes; the second ends within a text.
var parts = []string{
	"<feed><event><number>17</number><text>one</text></event>",
	"<event><number>4</number><text>half of a te",
	"xt</text></event></feed>",
}

// What is written and flushed arrives then, in requests and replies, whatever the coder makes of
// it.
func TestWhatIsFlushedArrives(t *testing.T) {
	coders(t, func(t *testing.T, a, b streamer.Coder) {
		synctest.Test(t, func(t *testing.T) {
			came := make(chan []arrival, 1)
			p := connect(t, pairing{codera: a, coderb: b, handlerb: func(ctx context.Context, x *streamer.Exchange) {
				if x.Number() == 1 {
					came <- arrivals(t, x.Message().Body, time.Now())
					_ = x.Reply(ctx, streamer.NewMessage(nil, nil))
					return
				}
				w, err := x.Respond(ctx, []byte("head"), -1)
				if assert.NoError(t, err) {
					writeParts(t, w)
				}
			}})
			call, w, err := p.a.Lane(1).Start(t.Context(), nil, -1)
			require.NoError(t, err)
			writeParts(t, w)
			want := []arrival{{parts[0], 0}, {parts[1], time.Second}, {parts[2], 2 * time.Second}}
			assert.Equal(t, want, <-came)
			r, err := call.Reply(t.Context())
			require.NoError(t, err)
			assert.Empty(t, body(t, r))

			began := time.Now()
			r, err = p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte("now you")))
			require.NoError(t, err)
			assert.Equal(t, "head", string(r.Head))
			assert.Equal(t, want, arrivals(t, r.Body, began))
			end(t, p)
		})
	})
}

// end closes a pair within a bubble.
func end(t *testing.T, p *pair) {
	require.NoError(t, p.a.Close())
	require.NoError(t, p.b.Close())
	synctest.Wait()
}

func writeParts(t *testing.T, w *streamer.Writer) {
	for i, part := range parts {
		if i > 0 {
			time.Sleep(time.Second)
		}
		_, err := io.WriteString(w, part)
		assert.NoError(t, err)
		assert.NoError(t, w.Flush())
	}
	assert.NoError(t, w.Close())
}

// A body that pauses goes on its way without a word: after 20 ms if the link is idle, a short one
// of a known length after 200 ms.
func TestPausesCutBodies(t *testing.T) {
	coders(t, func(t *testing.T, a, b streamer.Coder) {
		for length, want := range map[int64]time.Duration{-1: 20 * time.Millisecond, 1000: 200 * time.Millisecond,
			100_000: 200 * time.Millisecond, 2_000_000: 20 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				came := make(chan []arrival, 1)
				p := connect(t, pairing{codera: a, coderb: b, handlerb: func(ctx context.Context,
					x *streamer.Exchange) {
					came <- arrivals(t, x.Message().Body, time.Now().Add(-want))
					_ = x.Reply(ctx, streamer.NewMessage(nil, nil))
				}})
				call, w, err := p.a.Lane(1).Start(t.Context(), nil, length)
				require.NoError(t, err)
				_, err = io.WriteString(w, parts[0])
				require.NoError(t, err)
				time.Sleep(time.Second)
				_, err = io.WriteString(w, parts[1])
				require.NoError(t, err)
				time.Sleep(time.Second)
				_, err = io.WriteString(w, parts[2])
				require.NoError(t, err)
				require.NoError(t, w.Close())
				assert.Equal(t, []arrival{{parts[0], want}, {parts[1], time.Second + want}, {parts[2],
					2 * time.Second}}, <-came)
				_, err = call.Reply(t.Context())
				require.NoError(t, err)
				end(t, p)
			})
		}
	})
}

// A body that is read from a reader which pauses is cut as well.
func TestReadersThatPauseAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, pairing{codera: learning(t), coderb: learning(t), handlerb: echo})
		r, w := io.Pipe()
		pending, err := p.a.Lane(1).Open(t.Context(), &streamer.Message{Body: r,
			Head: []byte("POST / HTTP/1.1\r\n\r\n")})
		require.NoError(t, err)
		go func() {
			for _, part := range parts {
				_, _ = io.WriteString(w, part)
				time.Sleep(time.Second)
			}
			_ = w.Close()
		}()
		began := time.Now()
		reply, err := pending.Reply(t.Context())
		require.NoError(t, err)
		got := arrivals(t, reply.Body, began)
		var text strings.Builder
		for i, a := range got {
			text.WriteString(a.text)
			if i < len(parts) {
				assert.Less(t, a.at-time.Duration(i)*time.Second, 100*time.Millisecond)
			}
		}
		assert.Equal(t, strings.Join(parts, ""), text.String())
		assert.GreaterOrEqual(t, len(got), 3)
		end(t, p)
	})
}

// A kind that was cut before it was known travels as text, and is learned when it is whole: the
// next of it has a shape.
func TestCutMessagesAreLearned(t *testing.T) {
	p := connect(t, pairing{codera: learning(t), coderb: learning(t), handlerb: echo})
	for i := range 2 {
		call, w, err := p.a.Lane(1).Start(t.Context(), nil, -1)
		require.NoError(t, err)
		for _, part := range parts {
			_, err := io.WriteString(w, part)
			require.NoError(t, err)
			require.NoError(t, w.Flush())
		}
		require.NoError(t, w.Close())
		r, err := call.Reply(t.Context())
		require.NoError(t, err)
		assert.Equal(t, strings.Join(parts, ""), body(t, r))
		assert.EqualValues(t, i, p.a.Stats().Sent.Shape.Frames)
	}
}

// Both bodies of an exchange are open at the same time: each line is answered before the next is
// sent.
func TestConversationInOneExchange(t *testing.T) {
	coders(t, func(t *testing.T, a, b streamer.Coder) {
		p := connect(t, pairing{codera: a, coderb: b, handlerb: func(ctx context.Context, x *streamer.Exchange) {
			w, err := x.Respond(ctx, nil, -1)
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, w.Flush()) // nothing is there yet
			buf := make([]byte, 1000)
			for {
				n, err := x.Message().Body.Read(buf)
				if err != nil {
					assert.NoError(t, w.Close())
					return
				}
				_, err = fmt.Fprintf(w, "<heard>%s</heard>", buf[:n])
				assert.NoError(t, err)
				assert.NoError(t, w.Flush())
			}
		}})
		call, w, err := p.a.Lane(1).Start(t.Context(), nil, -1)
		require.NoError(t, err)
		var reply *streamer.Message
		for i := range 20 {
			said := fmt.Sprintf("<line>%d %s</line>", i, strings.Repeat("x", i*10))
			_, err := io.WriteString(w, said)
			require.NoError(t, err)
			require.NoError(t, w.Flush())
			if reply == nil {
				reply, err = call.Reply(t.Context())
				require.NoError(t, err)
			}
			heard := make([]byte, len(said)+len("<heard></heard>"))
			_, err = io.ReadFull(reply.Body, heard)
			require.NoError(t, err)
			assert.Equal(t, "<heard>"+said+"</heard>", string(heard))
		}
		require.NoError(t, w.Close())
		assert.Empty(t, body(t, reply))
	})
}

// Replies before the one that counts arrive before it, each at its time, and who does not ask for
// them does not see them.
func TestInterimReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, pairing{codera: learning(t), coderb: learning(t), handlerb: func(ctx context.Context,
			x *streamer.Exchange) {
			for i := range 3 {
				assert.NoError(t, x.Interim(ctx, &streamer.Message{Head: fmt.Appendf(nil, "HTTP/1.1 10%d\r\n\r\n", i)}))
				time.Sleep(time.Second)
			}
			assert.NoError(t, x.Reply(ctx, x.Message()))
			assert.ErrorIs(t, x.Interim(ctx, &streamer.Message{}), &streamer.Error{Code: streamer.NoReply})
		}})
		began := time.Now()
		call, err := p.a.Lane(1).Begin(t.Context(), streamer.NewMessage(nil, []byte("<a>1</a>")))
		require.NoError(t, err)
		for i := range 3 {
			m, err := call.Next(t.Context())
			require.NoError(t, err)
			assert.True(t, m.Interim)
			assert.Equal(t, fmt.Sprintf("HTTP/1.1 10%d\r\n\r\n", i), string(m.Head))
			assert.Empty(t, body(t, m))
			assert.Equal(t, time.Duration(i)*time.Second, time.Since(began))
		}
		m, err := call.Next(t.Context())
		require.NoError(t, err)
		assert.False(t, m.Interim)
		assert.Equal(t, "<a>1</a>", body(t, m))
		r, err := p.a.Lane(1).Call(t.Context(), streamer.NewMessage(nil, []byte("<a>2</a>")))
		require.NoError(t, err)
		assert.Equal(t, "<a>2</a>", body(t, r))
		end(t, p)
	})
}

// Bodies that nobody reads, requests and replies, wait for their credit and hinder nobody; when
// they are read they go on.
func TestBodiesThatNobodyReads(t *testing.T) {
	const bodies, size = 40, 1 << 20
	long := strings.Repeat("0123456789abcdef", size/16)
	read := make(chan struct{})
	got := make(chan int, bodies)
	p := connect(t, pairing{buffer: 64 << 10, handlerb: func(ctx context.Context, x *streamer.Exchange) {
		switch x.Lane() {
		case 1: // the request waits
			<-read
			b, err := x.Message().ReadAll(2 * size)
			assert.NoError(t, err)
			got <- len(b)
			_ = x.Reply(ctx, streamer.NewMessage(nil, nil))
		case 2: // the reply will
			_ = x.Reply(ctx, &streamer.Message{Body: strings.NewReader(long)})
		default:
			echo(ctx, x)
		}
	}})
	var requests []*streamer.Pending
	var replies []*streamer.Message
	for range bodies {
		call, err := p.a.Lane(1).Open(t.Context(), &streamer.Message{Body: strings.NewReader(long)})
		require.NoError(t, err)
		requests = append(requests, call)
		r, err := p.a.Lane(2).Call(t.Context(), streamer.NewMessage(nil, []byte("long")))
		require.NoError(t, err)
		replies = append(replies, r)
	}
	for i := range 100 {
		r, err := p.a.Lane(3).Call(t.Context(), streamer.NewMessage(nil, fmt.Append(nil, "small ", i)))
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprint("small ", i), body(t, r))
	}
	for _, s := range []*streamer.Stream{p.a, p.b} {
		assert.Less(t, s.Stats().Sent.Data.Octets, int64(bodies*(300<<10)), "a window each")
	}
	close(read)
	for i := range bodies {
		assert.Equal(t, len(long), <-got)
		_, err := requests[i].Reply(t.Context())
		require.NoError(t, err)
		assert.Equal(t, long, body(t, replies[i]))
	}
}

// Fragments of an exchange's replies, and what says that their sender waits, are told from those of
// the message before by their keys; a hand-written peer that breaks the order is refused.
func TestInterimRepliesOneByOne(t *testing.T) {
	h := meetInitiator(t, 1<<20, streamer.Config{}, newRawCoder(), handHello.Limits)
	call, err := h.s.Lane(0).Begin(t.Context(), streamer.NewMessage(nil, []byte("x")))
	require.NoError(t, err)
	until[frame.Data](h)
	h.write(
		frame.Data{First: true, Reply: true, Interim: true, NamesExchange: true, Exchange: 1,
			Payload: []byte("\x00ear")},
		frame.Data{First: true, Reply: true, NamesExchange: true, Exchange: 1, Payload: []byte("\x00twice")})
	assert.Equal(t, frame.CloseProtocol, until[frame.Close](h).Code)
	for err == nil {
		var m *streamer.Message
		if m, err = call.Next(t.Context()); err == nil {
			_, err = m.ReadAll(100)
		}
	}
	assert.ErrorIs(t, err, &streamer.Error{Code: streamer.FateUnknown})
}
