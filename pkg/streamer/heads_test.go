package streamer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// A head that came before on its lane is joined no more: messages share it. It is another one on
// another lane, after another head, and when the lane is another client's; one that is too long is
// not kept.
func TestHeadsThatRepeatAreShared(t *testing.T) {
	heads := make(chan []byte, 1)
	p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
		heads <- x.Message().Head
		assert.NoError(t, x.Reply(ctx, streamer.NewMessage(nil, nil)))
	}})
	head := func(name string) string {
		return fmt.Sprintf("POST /service HTTP/1.1\r\nX-Name: %s\r\n\r\n", name)
	}
	send := func(lane uint64, text string) []byte {
		t.Helper()
		reply, err := p.a.Lane(lane).Call(t.Context(), streamer.NewMessage([]byte(text), []byte("<a/>")))
		require.NoError(t, err)
		assert.Empty(t, body(t, reply))
		got := <-heads
		require.Equal(t, text, string(got))
		return got
	}
	one, other, long := head("one"), head("other"), head(strings.Repeat("x", 4<<10))
	for range 3 { // it is known which shapes there are
		send(0, one)
		send(0, other)
		send(1, one)
		send(0, long)
	}
	first := send(0, one)
	assert.Same(t, &first[0], &send(0, one)[0])
	assert.Equal(t, len(first), cap(first), "who appends to it does not write into that of others")
	assert.NotSame(t, &first[0], &send(1, one)[0], "another lane")
	assert.Same(t, &first[0], &send(0, one)[0])
	assert.Equal(t, other, string(send(0, other)))
	assert.NotSame(t, &first[0], &send(0, one)[0], "another head came between")
	kept := send(0, long)
	assert.NotSame(t, &kept[0], &send(0, long)[0])
	before := send(0, one)
	p.b.Lane(0).Restart()
	after := send(0, one)
	assert.NotSame(t, &before[0], &after[0], "the lane is another client's")
	assert.Same(t, &after[0], &send(0, one)[0])
}

// The client before on a lane is forgotten with the first bytes of the next one, whose sender says
// that it builds on nothing: this end may hear of the next one later.
func TestHeadsOfTheClientBeforeAreNotShared(t *testing.T) {
	const head, envelope = "POST /service HTTP/1.1\r\nX-Name: one\r\n\r\n", "<a><b>one</b><b>two</b></a>"
	heads := make(chan []byte, 1)
	p := connect(t, pairing{codera: learning(t, []byte(envelope)), coderb: learning(t),
		handlerb: func(_ context.Context, x *streamer.Exchange) { heads <- x.Message().Head }})
	send := func() []byte {
		t.Helper()
		require.NoError(t, p.a.Lane(3).Send(t.Context(), streamer.NewMessage([]byte(head), []byte(envelope))))
		got := <-heads
		require.Equal(t, head, string(got))
		return got
	}
	send()
	before := send()
	assert.Same(t, &before[0], &send()[0])
	p.a.Lane(3).Restart()
	after := send()
	assert.NotSame(t, &before[0], &after[0])
	assert.Same(t, &after[0], &send()[0])
}
